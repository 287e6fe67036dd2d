"""
Judge what a group has done to a topic, from the topics and from the application's own tables alone.

A history is what was produced, what took effect, what stands in the group's topics, and a few looks at the committed
offsets meanwhile. Nothing here asks the product what it believes: no inbox, no watermark, no metric.

    for fault in faults(history):   # tests/support/history_rules.py
        print(fault)                # what is wrong, and all that happened to that key
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple
from uuid import UUID

WELL, FAILS_ONCE, FAILS_ALWAYS, SLOW = "", "once", "always", "slow"
"""What a message is meant to do; one that always fails does so until somebody mends it."""
FAILING = frozenset({FAILS_ONCE, FAILS_ALWAYS})


class Snapshot(NamedTuple):
    """What a transaction saw, as `pg_current_snapshot()` tells it."""

    xmin: int
    xmax: int
    running: frozenset[int]

    def sees(self, xid: int) -> bool:
        """Return whether what transaction *xid* wrote was committed by then."""
        return xid < self.xmin or (xid < self.xmax and xid not in self.running)


def snapshot_of(text: str) -> Snapshot:
    """
    Return the snapshot that Postgres writes as *text*.

    >>> snapshot_of("10:14:11,12").sees(13), snapshot_of("10:14:11,12").sees(12), snapshot_of("10:10:").sees(9)
    (True, False, True)
    """
    xmin, xmax, running = text.split(":")
    return Snapshot(int(xmin), int(xmax), frozenset(int(one) for one in running.split(",") if one))


class Sent(NamedTuple):
    """One record of the source topic; *digest* stands for key, value and headers, *at* is when the broker took it."""

    partition: int
    offset: int
    id: UUID
    key: bytes | None
    deed: str
    n: int
    digest: str
    at: float

    def told(self) -> str:
        """Say what happened."""
        return f"arrives at {self.partition}@{self.offset}, n={self.n} {self.deed}"


class Effect(NamedTuple):
    """One row that a handler wrote in its transaction; *order* is an identity, *seen* the snapshot of its INSERT."""

    order: int
    id: UUID
    n: int
    attempt: int
    xid: int
    seen: Snapshot
    at: float
    member: str

    def told(self) -> str:
        """Say what happened."""
        return (
            f"takes effect {self.order} in attempt {self.attempt}, transaction {self.xid}, in {self.member}"
        )


class Run(NamedTuple):
    """A handler began, written on a connection of its own; a witness only."""

    id: UUID
    attempt: int
    at: float
    member: str

    def told(self) -> str:
        """Say what happened."""
        return f"runs, attempt {self.attempt}, in {self.member}"


class Copy(NamedTuple):
    """One record of a tier or of quarantine; *digest* without the headers that a copy has on top."""

    topic: str
    quarantine: bool
    partition: int
    offset: int
    id: UUID
    attempt: int
    digest: str
    at: float

    def told(self) -> str:
        """Say what happened."""
        return f"stands in {self.topic}@{self.offset}, attempt {self.attempt}"


class Act(NamedTuple):
    """What an operator did: redrive or discard, or "discard?" when the answer was lost."""

    act: str
    id: UUID
    at: float

    def told(self) -> str:
        """Say what happened."""
        return f"{self.act} is ordered"


class Look(NamedTuple):
    """Offsets that were committed, and then, later, what the database showed."""

    at: float
    committed: Mapping[int, int]
    seen: Snapshot


@dataclass(frozen=True)
class History:
    """
    All that happened.

    Attributes:
        attempts: Runs that a failing message gets before quarantine.
        delays: Least seconds between attempt 1 and 2, 2 and 3, …
        parks: A quarantined message holds its key (`after_quarantine="park"`); else the key goes on behind it.
        ended: Everything was given time to end: what has no effect now must rest in quarantine or behind it.
    """

    sent: Sequence[Sent]
    effects: Sequence[Effect] = ()
    runs: Sequence[Run] = ()
    copies: Sequence[Copy] = ()
    acts: Sequence[Act] = ()
    looks: Sequence[Look] = ()
    attempts: int = 3
    delays: Sequence[float] = ()
    parks: bool = True
    ended: bool = True

    @cached_property
    def messages(self) -> dict[UUID, Sent]:
        """The first arrival of each message, in the order of partition and offset."""
        found: dict[UUID, Sent] = {}
        for one in sorted(self.sent):
            found.setdefault(one.id, one)
        return found

    @cached_property
    def effect(self) -> dict[UUID, Effect]:
        """The first effect of each message."""
        found: dict[UUID, Effect] = {}
        for one in sorted(self.effects):
            found.setdefault(one.id, one)
        return found

    @cached_property
    def quarantined(self) -> dict[UUID, list[int]]:
        """The attempts after which each message went to quarantine, in their order, each once: a copy may be repeated."""
        found: dict[UUID, set[int]] = {}
        for one in self.copies:
            if one.quarantine:
                found.setdefault(one.id, set()).add(one.attempt)
        return {message_id: sorted(attempts) for message_id, attempts in found.items()}

    @cached_property
    def redrives(self) -> dict[UUID, int]:
        """How often somebody ordered a message back."""
        return self._counted("redrive")

    @cached_property
    def discards(self) -> dict[UUID, int]:
        """How often somebody gave a message up, or may have."""
        return self._counted("discard") | self._counted("discard?")

    def _counted(self, act: str) -> dict[UUID, int]:
        found: dict[UUID, int] = {}
        for one in self.acts:
            if one.act == act:
                found[one.id] = found.get(one.id, 0) + 1
        return found

    @cached_property
    def keys(self) -> dict[tuple[int, bytes], list[Sent]]:
        """The messages of each key in the order of their first arrival."""
        found: dict[tuple[int, bytes], list[Sent]] = {}
        for one in self.messages.values():
            if one.key is not None:
                found.setdefault((one.partition, one.key), []).append(one)
        return found

    def open(self, message_id: UUID) -> bool:
        """Return whether the message rests in quarantine now: it has no effect, and nobody ordered it back since."""
        rounds = len(self.quarantined.get(message_id, ()))
        return message_id not in self.effect and rounds > self.redrives.get(message_id, 0)


def story(history: History, message_id: UUID, *, around: int = 60) -> str:
    """Return what happened to the key of *message_id*, in the order of time; only what is near it, if that is much."""
    sent = history.messages.get(message_id)
    if sent is None or sent.key is None:
        ids = {message_id}
    else:
        ids = {one.id for one in history.keys[sent.partition, sent.key]}
    told = sorted(_told(history, ids))
    places = [place for place, (_, one, _) in enumerate(told) if one == message_id]
    low, high = (places[0], places[-1]) if places else (0, 0)
    kept = told[max(0, low - around // 2) : min(high, low + around) + around // 2]
    left = [f"    … of {len(told)} events"] if len(kept) < len(told) else []
    lines = [f"    {at:.3f} {'>' if one == message_id else ' '} {text}" for at, one, text in kept]
    return "\n".join([*lines, *left])


def _told(history: History, ids: set[UUID]) -> Iterator[tuple[float, UUID, str]]:
    every: tuple[Sequence[Sent | Run | Effect | Copy | Act], ...] = (
        history.sent, history.runs, history.effects, history.copies, history.acts,
    )  # fmt: skip
    for events in every:
        for one in events:
            if one.id in ids:
                again = isinstance(one, Sent) and history.messages[one.id] is not one
                yield one.at, one.id, f"{one.id} {'again ' if again else ''}{one.told()}"
