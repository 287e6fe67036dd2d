"""What speaks against an order, what comes next for a hold, and which range goes again: decisions without a database."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from packhorse.core.errors import NotReady, OwnershipLost, SettingsError, UnknownId
from packhorse.relay.holds import Fault, Hold, Kind, Scope, Screen
from packhorse.relay.model import Position
from packhorse.relay.orders.follow import FAILED_AGAIN, INTERRUPTED, OK, UNPROVED, follow, progress_of
from packhorse.relay.orders.model import (
    SCANNED,
    HoldView,
    OutboxRow,
    chosen,
    undiscardable,
    unreleasable,
    waiting_of,
)
from packhorse.relay.orders.republish import (
    Found,
    Stretch,
    Wanted,
    aggregatetype_of,
    before,
    checked,
    edge_from,
    reason_of,
)

NOON = datetime(2026, 8, 1, 12, tzinfo=UTC)
KEY = Scope(kind=Kind.KEY, aggregatetype="orders", aggregateid="a-secret-key")
TOPIC = Scope(kind=Kind.TOPIC, aggregatetype="orders")


def hold(scope: Scope = KEY, *, heals: bool = False, **given: Any) -> Hold:
    row = None if scope is TOPIC else "row-1"
    fault = Fault(
        scope=scope, code="too_large", reason="it is too large", heals=heals, topic="shop.orders", seq=4, id=row
    )  # fmt: skip
    return Hold(fault=fault, position=Position(horizon="5:5:"), **given)


def view(of: Hold | None = None, **given: Any) -> HoldView:
    values: dict[str, Any] = {
        "id": 12, "shard": 0, "hold": of or hold(), "state": "held", "asked_at": None, "made_at": NOON, "changed_at": NOON,
        "ended_at": None, "owned": True,
    }  # fmt: skip
    return HoldView(**{**values, **given})


def row(**given: Any) -> OutboxRow:
    values: dict[str, Any] = {
        "id": "row-2", "seq": 5, "aggregatetype": "orders", "aggregateid": "a-secret-key", "type": "t", "created_at": NOON,
        "passed": True, "waits": True, "discarded": False,
    }  # fmt: skip
    return OutboxRow(**{**values, **given})


@pytest.mark.parametrize(
    ("found", "person", "next_"),
    [
        (view(), True, "packhorse relay hold release 12`; or give up that row"),
        (view(hold(TOPIC)), True, "packhorse relay hold release 12`"),
        (view(hold(heals=True)), False, "looks by itself"),
        (view(hold(asked=True)), False, "begins the release within seconds"),
        (view(hold(releasing=True), state="releasing"), False, "leave in order"),
        (view(owned=False), True, "no relay owns the shard"),
        (view(state="ended"), False, "nothing"),
    ],
)
def test_a_hold_says_whether_a_person_is_needed_and_what_comes_next(
    found: HoldView, person: bool, next_: str
) -> None:
    assert found.waits_for_a_person is person
    assert next_ in found.next


def test_nobody_is_shown_a_key() -> None:
    """Fails when a hold is told with the key that it holds."""
    said = f"{view().lines()}{view().as_dict()}{progress_of(view(), view()).said}"
    assert "a-secret-key" not in said


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (view(state="ended"), "hold 12 has ended already: release by ann"),
        (view(state="releasing"), "on its way already: release by ann"),
        (view(hold(asked=True)), "ordered already: release by ann"),
    ],
)
def test_the_second_person_is_told_who_was_first(found: HoldView, said: str) -> None:
    refusal = unreleasable(found, "release by ann")
    assert isinstance(refusal, OwnershipLost)
    assert said in str(refusal)


def test_what_is_held_can_be_released() -> None:
    assert unreleasable(view(), None) is None
    assert unreleasable(view(hold(heals=True)), None) is None, "a person may make the relay try at once"


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([], "no committed outbox row"),
        ([row(), row(seq=6)], "2 outbox rows have the id"),
        ([row(aggregateid="other")], "does not wait in hold 12"),
        ([row(discarded=True)], "discarded already"),
        ([row(waits=False)], "is published by hold 12 already"),
        ([row(passed=False)], "has not come so far"),
    ],
)
def test_only_a_row_that_waits_in_the_hold_can_be_given_up(rows: list[OutboxRow], said: str) -> None:
    refusal = undiscardable(view(), Screen([hold()]), "row-2", rows)
    assert said in str(refusal)


def test_a_row_is_given_up_from_the_narrowest_hold() -> None:
    assert undiscardable(view(), Screen([hold()]), "row-2", [row()]) is None
    wide = undiscardable(view(hold(TOPIC)), Screen([hold(TOPIC), hold()]), "row-2", [row()])
    assert "waits in a narrower hold" in str(wide)


def test_what_waits_in_a_narrower_hold_is_not_counted_twice() -> None:
    groups = [("a-secret-key", None, 3, NOON), ("b", None, 2, NOON), (None, "row-9", 1, None)]
    first = [("row-1", 4, "a-secret-key"), *((f"row-{n}", n, "b") for n in range(5, 20))]
    wide = waiting_of(view(hold(TOPIC)), Screen([hold(TOPIC), hold()]), groups, first, scanned=6)
    assert (wide.rows, wide.oldest, wide.whole) == (3, NOON, True)
    assert [id_ for id_, _ in wide.first] == ["row-5", "row-6", "row-7", "row-8", "row-9"]
    assert "a-secret-key" not in f"{wide.lines()}{wide.as_dict()}"
    narrow = waiting_of(view(), Screen([hold(TOPIC), hold()]), groups, scanned=SCANNED)
    assert (narrow.rows, narrow.whole) == (3, False)
    assert "there may be more" in str(narrow)


def test_an_unknown_hold_is_named() -> None:
    with pytest.raises(UnknownId, match="no hold 99, 100"):
        chosen([view()], [12, 99, 100])
    assert [found.id for found in chosen([view(), view(id=13)], [13, 12, 13])] == [13, 12]


@pytest.mark.parametrize(
    ("looks", "code", "told"),
    [
        ([view(state="ended")], OK, ["hold 12: ended; what waited is published"]),
        ([view(hold(tries=1))], FAILED_AGAIN, ["hold 12: held again, too_large: it is too large"]),
        ([view(hold(sent=3), state="releasing")], UNPROVED, ["hold 12: releasing, 3 rows published"]),
    ],
)
def test_an_order_is_followed_to_its_end(looks: list[HoldView], code: int, told: list[str]) -> None:
    heard: list[str] = []
    assert follow([view()], lambda ids: looks, seconds=0, heard=heard.append) == code
    assert heard == told


def test_ctrl_c_ends_the_looking_alone() -> None:
    def interrupted(ids: Any) -> Any:
        raise KeyboardInterrupt

    heard: list[str] = []
    assert follow([view()], interrupted, seconds=9, heard=heard.append) == INTERRUPTED
    assert "the orders stand" in heard[0]


@pytest.mark.parametrize(
    "text", ["yesterday", "2026-01-02T03:04:05", "-3", "4.5", "", "0001-01-01T00:00+14:00"]
)
def test_an_edge_is_a_seq_or_a_time_with_its_zone(text: str) -> None:
    with pytest.raises(SettingsError, match="--from"):
        edge_from(text, "--from")


def test_a_range_has_its_edges_in_order_and_a_topic_of_the_namespace() -> None:
    with pytest.raises(SettingsError, match="before --from"):
        Wanted(aggregatetype="orders", first=5, last=4)
    with pytest.raises(SettingsError, match="no topic of namespace"):
        aggregatetype_of("other.orders", "shop")
    assert Wanted(aggregatetype="orders", first=5, last=NOON).last == NOON


@pytest.mark.parametrize(
    ("horizon", "xid", "expected"),
    [("10:20:12,15", 14, "12:14:12"), ("10:20:12,15", 5, "5:5:"), ("10:20:", 30, "20:20:"), ("3:9:3,8", 9, "3:9:3,8")],
)  # fmt: skip
def test_a_hold_is_set_back_and_never_forward(horizon: str, xid: int, expected: str) -> None:
    """Fails when a transaction that the hold had not published counts as published afterwards."""
    assert before(horizon, xid) == expected


def stretch(**given: Any) -> Stretch:
    values: dict[str, Any] = {
        "shard": 0, "first": 4, "last": 9, "until": 9, "xid": 700, "horizon": "800:800:", "rows": 6, "unpublished": 1, "discarded": 2,
        "begins": NOON, "ends": NOON, "owner": "host:1",
    }  # fmt: skip
    return Stretch(**{**values, **given})


def found(*stretches: Stretch, first: Any = 4, oldest: Any = (1, NOON)) -> Found:
    return Found(
        wanted=Wanted(aggregatetype="orders", first=first, last=9), stretches=stretches, oldest=oldest
    )


def test_a_range_says_what_goes_and_what_does_not() -> None:
    said = dict(found(stretch()).lines()[:1])["again"]
    assert said == "4 rows of orders"
    assert "2 of them discarded" in str(found(stretch()).lines())
    assert found(stretch()).gone is None
    assert "begins at seq 7" in (found(stretch(), oldest=(7, NOON)).gone or "")
    assert "begins at seq 7" in (found(stretch(), first=NOON.replace(hour=1), oldest=(7, NOON)).gone or "")
    assert "empty" in (found(stretch(), oldest=None).gone or "")
    assert reason_of(stretch(until=None), "ann") == "rows from seq 4 on are sent again, ordered by ann"


def test_a_hold_in_the_way_is_refused_while_a_relay_works_on_it_and_set_back_when_none_does() -> None:
    """Fails when a hold is changed that an owner has in its memory: it would write it back as it was."""
    busy = stretch(open_holds=(3,))
    with pytest.raises(NotReady, match="hold 3 of this topic is open and host:1 works on it"):
        checked(found(busy))
    idle = found(replace(busy, owner=None))
    assert checked(idle) is idle
    assert "set back before the range" in str(idle.lines())
    with pytest.raises(NotReady, match="no row of orders"):
        checked(found())
