"""Standings of a message and of a key, from facts, and their explanations as text: `python -m tests.support.explained` prints all."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from typing import Any
from uuid import UUID

from tests.support.console_facts import ID, NOON, act, facts, hold, inbox_row, outbox_row, quarantined
from tests.support.explained_jobs import JOBS

from packhorse.console.facts import Discard, Facts, FailedAttempt, Forgotten, Outcome, Place, State
from packhorse.console.truth.around import (
    Around,
    Carrier,
    Crew,
    Fate,
    Key,
    Mark,
    Membership,
    Parent,
    Pause,
    Queued,
    Retry,
)
from packhorse.console.truth.explain_key import explain_key
from packhorse.console.truth.explaining import explain
from packhorse.console.truth.explanation import Explanation
from packhorse.console.truth.keys import KeyFacts
from packhorse.console.truth.moments import Viewer
from packhorse.console.truth.replays import Replayed, ReplayOf
from packhorse.console.truth.status import NOT_ASKED, Search, status_of
from packhorse.core.ids import uuid7_from

G, T = "figures", "airline.aircraft"
PAIR: dict[str, Any] = {"group": G, "topic": T}
HEAD, OTHER = UUID("019b76da-a800-7000-8000-000000000001"), UUID("019b76da-a800-7000-8000-000000000002")
HASH = "905e0d9635153efd5b2d96c542e7f1e9"
NOW = NOON + timedelta(hours=1)
MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)
VIEWER = Viewer(now=NOW, local=lambda at: at.astimezone(timezone(timedelta(hours=2), "CEST")))
PLACE = Place(topic=T, partition=2, offset=1234)
SEEN = Search(place=PLACE, said="found after 3 records")
WORKING = Crew(group=G, alive=2, seen_at=NOW)
GONE = Crew(group=G, alive=0, seen_at=NOW - 10 * MINUTE)
OWNED = Carrier(shard=0, owner="relay-1", owned_until=NOW + MINUTE, trouble=None, trouble_since=None)
RETRY = Retry(
    **PAIR,
    attempt=3,
    tier="5m",
    due_at=NOW + 4 * MINUTE,
    sent_at=NOW,
    sent_partition=2,
    sent_offset=7,
    ahead=3,
)
FAILED = FailedAttempt(
    **PAIR, attempt=2, failed_at=NOON, reason="failed", error="ValueError at handlers.py:12", due_at=None
)


def key(**given: Any) -> Key:
    values: dict[str, Any] = {
        **PAIR,
        "key_hash": HASH,
        "partition": 2,
        "head": HEAD,
        "head_outcome": "quarantine",
        "head_reason": "permanent",
        "head_due_at": None,
        "parked_at": NOON,
        "paused": False,
        "waiting": 17,
        "oldest": NOON,
    }
    return Key(**{**values, **given})


def around(**given: Any) -> Around:
    return Around(**{"now": NOW, "rows": 1, "topics": (T,), "crews": (WORKING,), **given})


def fixed(**given: Any) -> Facts:
    """Return facts with what stands around them at NOW."""
    return facts(**{"recorded": outbox_row(published=True), "around": around(), **given})


def waiting(**given: Any) -> Facts:
    """Return facts of a message that waits for its third attempt."""
    row = inbox_row(
        outcome=Outcome.RETRY,
        attempt=3,
        due_at=RETRY.due_at,
        reason="failed",
        error="ValueError at handlers.py:12",
    )
    return fixed(**{"inbox": (row,), "attempts": (FAILED,), "around": around(retries=(RETRY,)), **given})


def resting(**given: Any) -> Facts:
    """Return facts of a message in quarantine."""
    row = inbox_row(outcome=Outcome.QUARANTINE, attempt=5, reason="attempts-exhausted")
    return fixed(**{"inbox": (row,), "quarantined": (quarantined(),), **given})


def parked(**given: Any) -> Facts:
    """Return facts of the third follower of a key, as *given* says the key is."""
    queued = Queued(**PAIR, key_hash=HASH, position=3, parked_at=NOON)
    row = inbox_row(outcome=Outcome.PARKED, behind=given.get("head", HEAD))
    return fixed(inbox=(row,), around=around(keys=(key(**given),), queued=(queued,)))


def redriven(*, sent: datetime | None = None, attempt: int = 6) -> Facts:
    row = inbox_row(outcome=Outcome.RETRY, attempt=attempt, due_at=NOW + 4 * MINUTE if attempt > 6 else NOW)
    return fixed(
        inbox=(row,),
        quarantined=(quarantined(state=State.REDRIVEN, redrives=1, redrive_sent_at=sent),),
        acts=(act(at=NOW - MINUTE, detail={"attempt": 6}),),
    )


def discarded(**fate: Any) -> Facts:
    return fixed(
        inbox=(inbox_row(outcome=Outcome.DISCARDED),),
        quarantined=(quarantined(state=State.DISCARDED),),
        acts=(act(act="discard", why="a duplicate of order 17"),),
        around=around(fates=(Fate(**{**PAIR, "discarded_at": NOON, **fate}),)),
    )


MEMBER = Membership(
    run=7,
    run_state="running",
    state="waiting",
    **PAIR,
    previewed_by="ann (role ops)",
    confirmed_by="bob (role ops)",
    asked_at=None,
    said=None,
    run_said=None,
    live=True,
)
REPLAYED: dict[str, Any] = {
    "run": 4,
    "run_state": "running",
    **PAIR,
    "planned_by": "ann (role ops)",
    "live": False,
    "identity": ID,
    "handed_at": NOW - MINUTE,
    "outcome": None,
}

MESSAGES: Mapping[str, tuple[Facts, Search]] = {
    "unknown": (facts(around=around(rows=0)), NOT_ASKED),
    "unknown, and older than what is kept": (
        facts(around=around(rows=0), forgotten=(Forgotten(group=G, kept_from=NOON, days=22),)),
        NOT_ASKED,
    ),
    "unknown, of a time to come": (
        facts(id=uuid7_from(NOW + HOUR, bytes(10)), around=around(rows=0)),
        NOT_ASKED,
    ),
    "unknown, of another kind": (facts(id=UUID(int=4 << 76 | 2 << 62), around=around(rows=0)), NOT_ASKED),
    "recorded, and no relay has ever run": (
        fixed(
            recorded=outbox_row(relay_ran=False),
            around=around(
                carrier=Carrier(shard=0, owner=None, owned_until=None, trouble=None, trouble_since=None)
            ),
        ),
        NOT_ASKED,
    ),
    "recorded, a relay is at work": (fixed(recorded=outbox_row(), around=around(carrier=OWNED)), NOT_ASKED),
    "recorded, the relay is gone": (
        fixed(
            recorded=outbox_row(),
            around=around(
                carrier=Carrier(shard=1, owner=None, owned_until=NOON, trouble=None, trouble_since=None)
            ),
        ),
        NOT_ASKED,
    ),
    "recorded, the relay has trouble": (
        fixed(
            recorded=outbox_row(),
            around=around(
                carrier=Carrier(
                    shard=0,
                    owner="relay-1",
                    owned_until=NOW,
                    trouble="the broker is away",
                    trouble_since=NOON,
                )
            ),
        ),
        NOT_ASKED,
    ),
    "recorded twice": (fixed(recorded=outbox_row(), around=around(rows=2, carrier=OWNED)), NOT_ASKED),
    "held for a person": (fixed(holds=(hold(),), around=around(carrier=OWNED)), NOT_ASKED),
    "held until the broker is mended": (
        fixed(holds=(hold(scope="topic", heals=True, code="no_topic", reason="the topic does not exist"),)),
        NOT_ASKED,
    ),
    "given up before it was published": (
        fixed(discard=Discard(hold=12, actor="ann (role ops)", why="a test", at=NOON)),
        NOT_ASKED,
    ),
    "published, groups elsewhere": (fixed(), NOT_ASKED),
    "published, its place is not known": (
        fixed(around=around(marks=(Mark(**PAIR, partition=2, offset=1200, moved_at=NOON),))),
        NOT_ASKED,
    ),
    "published, not delivered yet": (
        fixed(around=around(marks=(Mark(**PAIR, partition=2, offset=1200, moved_at=NOON),))),
        SEEN,
    ),
    "published, not delivered yet, nobody works and its key is parked": (
        fixed(
            around=around(
                marks=(Mark(**PAIR, partition=2, offset=1200, moved_at=NOON),), keys=(key(),), crews=(GONE,)
            )
        ),
        SEEN,
    ),
    "published, below the watermark": (
        fixed(
            around=around(marks=(Mark(**PAIR, partition=2, offset=1235, moved_at=NOON),)),
            forgotten=(Forgotten(group=G, kept_from=NOON, days=22),),
        ),
        SEEN,
    ),
    "done": (fixed(inbox=(inbox_row(deliveries=3),), attempts=(FAILED,)), NOT_ASKED),
    "done by one group, on its way to another": (
        fixed(
            inbox=(inbox_row(),),
            around=around(marks=(Mark(group="billing", topic=T, partition=2, offset=1230, moved_at=NOON),)),
        ),
        NOT_ASKED,
    ),
    "done, written by another database": (facts(inbox=(inbox_row(),), around=around(rows=0)), NOT_ASKED),
    "skipped, expired": (fixed(inbox=(inbox_row(outcome=Outcome.SKIPPED, reason="expired"),)), NOT_ASKED),
    "skipped by the handler": (fixed(inbox=(inbox_row(outcome=Outcome.SKIPPED),)), NOT_ASKED),
    "retry, due soon": (waiting(), NOT_ASKED),
    "retry, overdue, nobody works": (
        waiting(
            around=around(
                retries=(Retry(**PAIR, attempt=3, tier="5m", due_at=NOW - 10 * MINUTE),), crews=(GONE,)
            )
        ),
        NOT_ASKED,
    ),
    "retry, put off by its handler": (
        waiting(inbox=(inbox_row(outcome=Outcome.RETRY, attempt=1, due_at=RETRY.due_at, reason="later"),)),
        NOT_ASKED,
    ),
    "retry, paused by a person, its handler stopped": (
        waiting(
            around=around(
                retries=(RETRY,),
                pauses=(Pause(group=G, topic=T, partition=2, by="ann (role ops)", why="it's bad", at=NOON),),
                crews=(
                    Crew(
                        group=G,
                        alive=1,
                        seen_at=NOW,
                        stopped=("moved: brake, after 3 tries",),
                        stalls=((T, 2, "trouble"), (T, 1, "trouble")),
                    ),
                ),
            )
        ),
        NOT_ASKED,
    ),
    "retry, the head of its key": (
        waiting(around=around(retries=(RETRY,), keys=(key(head=ID, head_outcome="retry"),))),
        NOT_ASKED,
    ),
    "parked behind a retry": (parked(head_outcome="retry", head_due_at=NOW + 4 * MINUTE), NOT_ASKED),
    "parked behind quarantine": (parked(), NOT_ASKED),
    "parked, the key paused": (
        parked(
            head=None,
            head_outcome=None,
            paused=True,
            paused_by="ann (role ops)",
            paused_why="bad import",
            paused_at=NOON,
        ),
        NOT_ASKED,
    ),
    "parked, drained now": (parked(head_outcome=None, drainer="box:42"), NOT_ASKED),
    "parked, about to go on": (parked(head_outcome="done"), NOT_ASKED),
    "parked, the key gone": (fixed(inbox=(inbox_row(outcome=Outcome.PARKED),)), NOT_ASKED),
    "quarantine": (resting(), NOT_ASKED),
    "quarantine, the head of its key, its copy not confirmed, redriven before": (
        resting(
            quarantined=(quarantined(copy_offset=None, redrives=2, reason="unknown-schema"),),
            inbox=(inbox_row(outcome=Outcome.QUARANTINE, attempt=5, reason="unknown-schema"),),
            around=around(keys=(key(head=ID),)),
        ),
        NOT_ASKED,
    ),
    "quarantine, erased": (
        resting(around=around(fates=(Fate(**PAIR, purged_at=NOON),))),
        NOT_ASKED,
    ),
    "quarantine, a member of a redrive": (resting(around=around(memberships=(MEMBER,))), NOT_ASKED),
    "discarded, after a redrive was previewed": (
        fixed(
            inbox=(inbox_row(outcome=Outcome.DISCARDED),),
            quarantined=(quarantined(state=State.DISCARDED),),
            around=around(memberships=(replace(MEMBER, run_state="previewed", as_frozen=False),)),
        ),
        NOT_ASKED,
    ),
    "quarantine, its bytes gone": (resting(quarantined=()), NOT_ASKED),
    "redrive asked": (redriven(), NOT_ASKED),
    "redrive sent": (redriven(sent=NOW), NOT_ASKED),
    "redriven, failed, goes again": (redriven(sent=NOW, attempt=7), NOT_ASKED),
    "done after a redrive": (
        fixed(inbox=(inbox_row(attempt=6),), quarantined=(quarantined(state=State.REDRIVEN, redrives=1),)),
        NOT_ASKED,
    ),
    "discarded": (discarded(restorable_until=NOON + 90 * 24 * HOUR), NOT_ASKED),
    "discarded and erased": (discarded(purged_at=NOON), NOT_ASKED),
    "edited: the parent": (
        fixed(
            inbox=(inbox_row(outcome=Outcome.DISCARDED),),
            quarantined=(quarantined(state=State.DISCARDED),),
            acts=(act(act="edit", why="the amount had a comma"),),
            around=around(fates=(Fate(**PAIR, discarded_at=NOON, edited_as=OTHER),)),
        ),
        NOT_ASKED,
    ),
    "edited: the copy": (
        fixed(recorded=None, inbox=(inbox_row(),), around=around(parents=(Parent(id=OTHER, **PAIR),))),
        NOT_ASKED,
    ),
    "uncertain": (fixed(inbox=(inbox_row(outcome=Outcome.UNCERTAIN),)), NOT_ASKED),
    "replayed": (fixed(inbox=(inbox_row(),), around=around(replays=(Replayed(**REPLAYED),))), NOT_ASKED),
    "replayed, done once more": (
        fixed(
            inbox=(inbox_row(),),
            around=around(
                replays=(
                    Replayed(
                        **{
                            **REPLAYED,
                            "run_state": "ended",
                            "identity": OTHER,
                            "handed_at": None,
                            "outcome": "done",
                        }
                    ),
                )
            ),
        ),
        NOT_ASKED,
    ),
    "the identity of another message in a replay": (
        facts(
            inbox=(inbox_row(),),
            around=around(rows=0, replay_of=ReplayOf(original=OTHER, run=4, group=G, topic=T)),
        ),
        NOT_ASKED,
    ),
    "discarded by a purge": (
        fixed(
            inbox=(inbox_row(outcome=Outcome.DISCARDED, reason="purged"),),
            around=around(fates=(Fate(**PAIR, discarded_at=NOON, purged_at=NOON),)),
        ),
        NOT_ASKED,
    ),
    "tried, no outcome on record": (fixed(attempts=(FAILED,)), NOT_ASKED),
    **JOBS,
}

_KEY: dict[str, Any] = {
    "now": NOW,
    **PAIR,
    "key_hash": HASH,
    "reads": True,
    "key": None,
    "pauses": (),
    "crew": WORKING,
}
KEYS: Mapping[str, KeyFacts] = {
    "key: not parked": KeyFacts(**_KEY),
    "key: of a topic that the group has never read": KeyFacts(**{**_KEY, "reads": False}),
    "key: behind quarantine": KeyFacts(**{**_KEY, "key": key()}),
    "key: behind a retry, nobody works": KeyFacts(
        **{**_KEY, "key": key(head_outcome="retry", head_due_at=NOW + 4 * MINUTE), "crew": GONE}
    ),
    "key: paused, nothing waits": KeyFacts(
        **{
            **_KEY,
            "key": key(
                head=None, head_outcome=None, paused=True, paused_by="ann (role ops)", waiting=0, oldest=None
            ),
        }
    ),
    "key: drained now": KeyFacts(**{**_KEY, "key": key(head_outcome="done", drainer="box:42")}),
    "key: its head finished": KeyFacts(**{**_KEY, "key": key(head_outcome="discarded", waiting=100_000)}),
    "key: its group paused": KeyFacts(
        **{
            **_KEY,
            "key": key(),
            "pauses": (Pause(group=G, topic="", partition=-1, by="ann (role ops)", why=None, at=NOON),),
        }
    ),
}


def explained(name: str) -> Explanation:
    """Return the explanation of the standing *name*."""
    if name in KEYS:
        return explain_key(KEYS[name], VIEWER)
    known, search = MESSAGES[name]
    return explain(status_of(known, search), VIEWER, schema="packhorse")


def text_of(explanation: Explanation) -> str:
    """Return *explanation* as lines, as a person reads it."""
    lines = []
    for part in explanation.parts:
        lines.append(part.about)
        for label, texts in (("stands", part.stands), ("waits", part.waits), ("next", part.next)):
            lines += [f"  {label:<7}{text}" for text in texts]
        lines += [f"  {'can':<7}{part.nothing}"] if not part.can else []
        for action in part.can:
            lines.append(f"  {'can':<7}{action.what}" + (f": {action.command}" if action.command else ""))
    return "\n".join(lines)


def all_texts() -> str:
    """Return all explanations, each under its name."""
    names = [*MESSAGES, *KEYS]
    return "\n\n".join(f"== {name}\n{text_of(explained(name))}" for name in names) + "\n"


if __name__ == "__main__":
    print(all_texts(), end="")
