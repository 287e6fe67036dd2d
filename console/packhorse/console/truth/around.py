"""What stands around a message: who waits for it and for whom, what people have stopped, who is at work. Plain values."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol, TypeVar
from uuid import UUID

from packhorse.console.truth.replays import Replayed, ReplayOf
from packhorse.core.naming import retry_topic
from packhorse.processor.pausing.pauses import widest

MOST_COUNTED = 100_000
"""Rows that one count goes through at most; a number as high means "at least"."""


class OfGroup(Protocol):
    """Something of one group and source topic."""

    @property
    def group(self) -> str: ...
    @property
    def topic(self) -> str: ...


class OfRun(Protocol):
    """That a redrive or replay has to do with a message: which, how it stands, and whether a runner holds its lease."""

    @property
    def run(self) -> int: ...
    @property
    def run_state(self) -> str: ...
    @property
    def live(self) -> bool: ...


T = TypeVar("T", bound=OfGroup)


def mine(found: Iterable[T], whose: OfGroup) -> Iterator[T]:
    """Yield those of *found* that are of the group and topic of *whose*."""
    return (each for each in found if (each.group, each.topic) == (whose.group, whose.topic))


def run_text(one: OfRun) -> str:
    """Return how a run stands, for people."""
    return one.run_state + ("" if one.live or one.run_state != "running" else ", but nobody runs it")


@dataclass(frozen=True, slots=True, kw_only=True)
class Retry:
    """
    A message that waits for its next attempt.

    Attributes:
        tier: The delay's name; its copy is on that tier's topic.
        sent_at: When the broker confirmed the copy; None: it is not known to be there, and whoever meets the row sends it.
        ahead: Offsets of the tier's partition that are read before the copy; None when that is not known.
    """

    group: str
    topic: str
    attempt: int
    tier: str
    due_at: datetime
    sent_at: datetime | None = None
    sent_partition: int | None = None
    sent_offset: int | None = None
    resends: int = 0
    ahead: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """
    A parked key: its head has failed, or a person has paused it, and later messages of it wait.

    Attributes:
        head: None when none is known: a person paused the key, or its followers are on their way.
        head_outcome: How the group stands with the head; None: it has no row (any more), so it is finished.
        head_reason: Why the head was stopped.
        paused_by, paused_why, paused_at: Of a person's pause; None when that is not on record.
        drainer: Which process runs its followers now; None: nobody.
        waiting: Followers, counted up to MOST_COUNTED.
        oldest: When the first of them was parked.
    """

    group: str
    topic: str
    key_hash: str
    partition: int
    head: UUID | None
    head_outcome: str | None
    head_reason: str | None
    head_due_at: datetime | None
    parked_at: datetime
    paused: bool
    paused_by: str | None = None
    paused_why: str | None = None
    paused_at: datetime | None = None
    drainer: str | None = None
    waiting: int = 0
    oldest: datetime | None = None

    @property
    def head_open(self) -> bool:
        """Return whether the head is not finished: what stands behind it has to wait."""
        return self.head_outcome in {"retry", "parked", "quarantine", "uncertain"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Queued:
    """Where a follower stands behind its key; position 1 is the next to run."""

    group: str
    topic: str
    key_hash: str
    position: int
    parked_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Pause:
    """What a person has paused: a group (no topic), a topic or a tier of it (partition -1), or one partition."""

    group: str
    topic: str
    partition: int
    by: str
    why: str | None
    at: datetime

    @property
    def what(self) -> str:
        """
        Return it for people.

        >>> Pause(group="g", topic="a.b", partition=3, by="ann", why=None, at=datetime.min).what
        'partition 3 of a.b'
        """
        if not self.topic:
            return f"group {self.group}"
        return self.topic if self.partition < 0 else f"partition {self.partition} of {self.topic}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Crew:
    """
    The processes of a group, as they say it themselves.

    Attributes:
        alive: How many were seen within the last seconds.
        seen_at: When any was seen last; None: none within the last days.
        stopped: Handlers that brake or breaker have stopped, in words.
        stalls: What the living ones say does not move: topic, partition, cause.
    """

    group: str
    alive: int
    seen_at: datetime | None
    stopped: tuple[str, ...] = ()
    stalls: tuple[tuple[str, int, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """The watermark of a group's source partition: all below it is durable."""

    group: str
    topic: str
    partition: int
    offset: int
    moved_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Membership:
    """
    That a message is a member of a redrive with a frozen set.

    Attributes:
        run_state: previewed, running, paused, halted, aborted or ended.
        state: waiting, asked, good, bad, moved or left.
        live: A runner holds its lease.
        as_frozen: It has not moved since; one that waits and has is not redriven.
    """

    run: int
    run_state: str
    state: str
    group: str
    topic: str
    previewed_by: str
    confirmed_by: str | None
    asked_at: datetime | None
    said: str | None
    run_said: str | None
    live: bool
    as_frozen: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Fate:
    """
    What became of a quarantined message besides: given up, erased, edited.

    Attributes:
        restorable_until: Until when it may be restored; None: nobody has said how long discarded messages are kept.
    """

    group: str
    topic: str
    discarded_at: datetime | None = None
    restorable_until: datetime | None = None
    purged_at: datetime | None = None
    edited_as: UUID | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Parent:
    """The quarantined message that this one is an edited copy of."""

    id: UUID
    group: str
    topic: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Carrier:
    """
    The relay of the shard that an outbox row belongs to.

    Attributes:
        owner: Who holds its lease; None: nobody.
        owned_until: When the lease ran out, where nobody holds it.
        trouble, trouble_since: What keeps it from sending.
        finish: A change of the number of shards is on its way, and no new row is sent meanwhile.
    """

    shard: int
    owner: str | None
    owned_until: datetime | None
    trouble: str | None
    trouble_since: datetime | None
    finish: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Around:
    """
    All of it, for one id, in the snapshot of its facts.

    Attributes:
        carrier: The relay that has to publish it, or had; None: it is not recorded here, or no relay has a row.
        now: The database's clock; None when nobody asked.
        rows: How many outbox rows bear the id.
        topics: Its topics, as far as they are known.
        replay_of: What it is the identity of, in a replay.
        keys: Parked keys of it: it is their head, waits behind them, or will once it is delivered.
    """

    now: datetime | None = None
    rows: int = 0
    carrier: Carrier | None = None
    topics: tuple[str, ...] = ()
    retries: tuple[Retry, ...] = ()
    keys: tuple[Key, ...] = ()
    queued: tuple[Queued, ...] = ()
    pauses: tuple[Pause, ...] = ()
    crews: tuple[Crew, ...] = ()
    marks: tuple[Mark, ...] = ()
    memberships: tuple[Membership, ...] = ()
    replays: tuple[Replayed, ...] = ()
    fates: tuple[Fate, ...] = ()
    parents: tuple[Parent, ...] = ()
    replay_of: ReplayOf | None = None

    def crew(self, group: str) -> Crew:
        """Return the processes of *group*."""
        found = (each for each in self.crews if each.group == group)
        return next(found, Crew(group=group, alive=0, seen_at=None))

    def key_of(self, group: str, topic: str) -> Key | None:
        """Return the parked key of the message in *group*."""
        return next((each for each in self.keys if (each.group, each.topic) == (group, topic)), None)

    def holding(
        self, group: str, topic: str, partition: int | None, *, tier: str | None = None
    ) -> Pause | None:
        """Return the widest pause that holds *partition* of the source *topic*, or of its *tier*'s topic; None: none is known to."""
        rows = (each for each in self.pauses if each.group == group)
        at = topic if tier is None else retry_topic(topic, group, tier)
        return widest(rows, at, partition, source=topic)


NOTHING_AROUND = Around()
