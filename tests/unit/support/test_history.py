"""The checker of histories is clean on a good one and bites on each planted fault."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest
from tests.support.history import (
    FAILS_ALWAYS,
    FAILS_ONCE,
    WELL,
    Act,
    Copy,
    Effect,
    History,
    Look,
    Run,
    Sent,
    Snapshot,
    snapshot_of,
)
from tests.support.history_rules import faults

A, B = b"a", b"b"


def uid(n: int) -> UUID:
    return UUID(int=n)


def sent(n: int, key: bytes | None = A, deed: str = WELL) -> Sent:
    """Message *n* stands at offset n, and came at second n."""
    return Sent(0, n, uid(n), key, deed, n, f"bytes of {n}", float(n))


def effect(n: int, order: int, **other: Any) -> Effect:
    """Message *n* took effect as the *order*-th, in a transaction of its own that saw all before it."""
    found = Effect(
        order, uid(n), n, 1, 100 + order, snapshot_of(f"{100 + order}:{100 + order}:"), 100.0 + order, "m"
    )
    return found._replace(**other)


def copy(n: int, attempt: int, *, quarantine: bool = True, at: float = 50.0) -> Copy:
    name = "quarantine" if quarantine else "retry.1s"
    return Copy(name, quarantine, 0, 0, uid(n), attempt, f"bytes of {n}", at)


def all_seen(at: float, **committed: int) -> Look:
    return Look(at, {0: committed["p0"]}, Snapshot(1_000, 1_000, frozenset()))


GOOD = History(
    sent=[sent(0), sent(1, B, FAILS_ONCE), sent(2), sent(3, B), sent(4, None), sent(5, A, FAILS_ALWAYS), sent(6)],
    effects=[effect(0, 1), effect(2, 2), effect(1, 3, attempt=2), effect(3, 4), effect(4, 5)],
    runs=[Run(uid(1), 1, 101.0, "m"), Run(uid(1), 2, 102.0, "m"), *(Run(uid(5), n, 110.0 + n, "m") for n in (1, 2, 3))],
    copies=[copy(1, 2, quarantine=False), copy(5, 3), copy(5, 3)],
    looks=[all_seen(200.0, p0=7)],
    delays=[0.5, 0.5],
)  # fmt: skip
"""0 2 5 6 of key a, 1 3 of key b, 4 of none; 1 fails once, 5 rests in quarantine, 6 waits behind it."""
MENDED = replace(
    GOOD,
    effects=[*GOOD.effects, effect(5, 6, attempt=4), effect(6, 7)],
    acts=[Act("redrive", uid(5), 300.0)],
    looks=[],
)
"""5 was redriven, and 6 came after it."""


def test_a_good_history_is_clean() -> None:
    assert faults(GOOD) == []
    assert faults(MENDED) == []
    assert faults(replace(GOOD, effects=[], looks=[], ended=False)) == []


def test_what_a_snapshot_sees() -> None:
    seen = snapshot_of("10:14:11,12")
    assert [seen.sees(xid) for xid in (9, 10, 11, 12, 13, 14)] == [True, True, False, False, True, False]


def without(n: int) -> Callable[[History], History]:
    return lambda good: replace(good, effects=[one for one in good.effects if one.id != uid(n)])


def changed(n: int, /, **other: Any) -> Callable[[History], History]:
    return lambda good: replace(
        good, effects=[one._replace(**other) if one.id == uid(n) else one for one in good.effects]
    )


def also(**other: Any) -> Callable[[History], History]:
    return lambda good: replace(good, **{name: [*getattr(good, name), more] for name, more in other.items()})  # type: ignore[arg-type]


def with_(**other: Any) -> Callable[[History], History]:
    return lambda good: replace(good, **other)


EARLY = (Run(uid(1), 1, 101.0, "m"), Run(uid(1), 2, 101.4, "m"))
BLIND = Snapshot(50, 50, frozenset())
PLANTED: list[tuple[str, str, Callable[[History], History], History]] = [
    ("P2", "took effect 2 times", also(effects=effect(0, 9)), GOOD),
    ("P2", "is lost or stuck", without(4), GOOD),
    ("P2", "is lost or stuck", without(2), GOOD),
    ("P2", "is lost or stuck", with_(copies=[copy(1, 2, quarantine=False)]), GOOD),
    ("P2", "is lost or stuck", also(acts=Act("redrive", uid(5), 300.0)), GOOD),
    ("P2", "was never sent", also(effects=effect(77, 9)), GOOD),
    ("P2", "no outcome", with_(looks=[Look(99.0, {0: 1}, BLIND)]), GOOD),
    ("P2", "no outcome", with_(looks=[Look(60.0, {0: 3}, snapshot_of("102:102:"))]), GOOD),
    ("P2", "no outcome", with_(looks=[Look(49.0, {0: 2}, snapshot_of("102:102:"))]), GOOD),
    ("P4", "was discarded and took effect", also(acts=Act("discard", uid(5), 300.0)), MENDED),
    ("P2", "took effect in attempt 3 and came to quarantine", changed(5, attempt=3), MENDED),
    ("P3", "took effect before", changed(0, order=8), GOOD),
    ("P3", "before it has none yet", also(effects=effect(6, 6)), GOOD),
    ("P3", "took effect before", changed(5, order=9), MENDED),
    ("P3", "was not committed", changed(2, seen=BLIND), GOOD),
    ("P4", "with n=8", changed(0, n=8), GOOD),
    ("P4", "was tried 4 times, 3 are allowed", also(runs=Run(uid(5), 4, 120.0, "m")), GOOD),
    ("P4", "0.100 s early", with_(runs=EARLY), GOOD),
    ("P4", "fails once and took effect in attempt 3", changed(1, attempt=3), GOOD),
    ("P4", "other bytes", also(copies=copy(5, 3)._replace(digest="others")), GOOD),
    ("P4", "stands in partition 1", also(copies=copy(5, 3)._replace(partition=1)), GOOD),
    ("P4", "nobody ordered it back", also(copies=copy(5, 4)), GOOD),
    ("P4", "(once) came to quarantine", also(copies=copy(1, 1)), GOOD),
    ("P4", "which was never sent", also(copies=copy(77, 3)), GOOD),
    ("P6", "(well) came to quarantine", also(copies=copy(0, 1)), GOOD),
    ("P6", "took effect in attempt 2", changed(0, attempt=2), GOOD),
    ("P6", "was charged", also(runs=Run(uid(0), 2, 120.0, "m")), GOOD),
]  # fmt: skip


@pytest.mark.parametrize(
    ("promise", "text", "plant", "good"), PLANTED, ids=[text for _, text, _, _ in PLANTED]
)
def test_each_planted_fault_is_found_and_told_with_its_key(
    promise: str, text: str, plant: Callable[[History], History], good: History
) -> None:
    found = faults(plant(good))
    assert any(one.promise == promise and text in one.text for one in found), [str(one) for one in found]
    told = next(one for one in found if text in one.text)
    assert "arrives at 0@" in told.story or "77" in told.text or "4d" in told.text


def test_one_transaction_may_hold_several_of_a_key() -> None:
    together = changed(2, xid=101, seen=BLIND)(GOOD)
    assert faults(together) == []


def test_a_follower_waits_below_the_committed_offset_only_while_its_head_was_not_done() -> None:
    """Message 3 came long after 1, which fails once, was done: nothing excuses that it has no outcome."""
    late = [one._replace(at=900.0) if one.id == uid(3) else one for one in GOOD.sent]
    look = Look(950.0, {0: 4}, snapshot_of("104:104:"))
    assert faults(replace(GOOD, looks=[look])) == []
    assert [one.text for one in faults(replace(GOOD, sent=late, looks=[look]))] == [
        f"offset 4 was committed at 950.000, {uid(3)} below it had no outcome"
    ]


def test_where_keys_go_on_a_quarantined_one_is_out_of_order() -> None:
    """With `after_quarantine="continue"`, 6 goes on behind 5, which comes later."""
    passed = replace(GOOD, effects=[*GOOD.effects, effect(6, 6)])
    assert [one.promise for one in faults(passed)] == ["P3"]
    assert faults(replace(passed, parks=False)) == []
    redriven = replace(
        passed, effects=[*passed.effects, effect(5, 7, attempt=4)], acts=[Act("redrive", uid(5), 300.0)]
    )
    assert faults(replace(redriven, parks=False)) == []


def test_what_was_discarded_is_not_lost() -> None:
    given_up = replace(GOOD, acts=[Act("discard", uid(5), 300.0)], effects=[*GOOD.effects, effect(6, 6)])
    assert faults(given_up) == []
