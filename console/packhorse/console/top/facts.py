"""One look at everything that flows, and what two looks say of its speed. Plain values and pure functions: no I/O, no clock."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from packhorse.console.truth.around import Mark

Place = tuple[str, int]

COUNTED = 10_000
"""Rows that one count goes through at most; a number as high means "at least"."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shard:
    """
    One shard of the outbox and its relay.

    Attributes:
        owner: Who holds its lease; None: nobody.
        published: Rows confirmed by the broker, ever.
        oldest: Age of the oldest row that is committed and not published; None: none waits.
        trouble: What keeps it from sending.
        holds, people: Open holds, and those of them that wait for a person.
    """

    shard: int
    owner: str | None
    published: int
    oldest: timedelta | None
    trouble: str | None = None
    holds: int = 0
    people: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """
    One process of a group, as it says itself.

    Attributes:
        version: Of Packhorse; None: it does not say.
        stalls: What does not move: place and cause.
        wrong: Why it says that it is not well.
        stopped: Handlers that brake or breaker have stopped.
    """

    group: str
    host: str
    pid: int
    seen_at: datetime
    version: str | None
    partitions: int
    stalls: tuple[str, ...] = ()
    wrong: tuple[str, ...] = ()
    stopped: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """
    What waits in a group; counts go up to COUNTED.

    Attributes:
        due_at: When the next retry is due, or was.
        oldest_quarantined: Since when the oldest message rests in quarantine.
    """

    group: str
    retries: int = 0
    due_at: datetime | None = None
    parked_keys: int = 0
    paused_keys: int = 0
    followers: int = 0
    oldest_quarantined: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Failing:
    """How many messages of a type rest in quarantine for one reason; exact."""

    group: str
    type: str
    reason: str
    messages: int
    last_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Paused:
    """What a person has paused, in words."""

    group: str
    what: str
    by: str
    why: str | None
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """
    A redrive or a replay that is not over.

    Attributes:
        kind: redrive or replay.
        done, total: How far it is, in messages or offsets.
        runner: Who works on it, if its lease runs.
        said: Why it was halted or paused.
    """

    kind: str
    id: int
    state: str
    group: str | None
    done: int
    total: int
    runner: str | None
    live: bool
    by: str
    said: str | None

    @property
    def is_left(self) -> bool:
        """Return whether it is running and nobody works on it."""
        return self.state == "running" and not self.live


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """How large a table is with its indexes, and about how many rows the database believes it has."""

    table: str
    bytes: int
    rows: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Jobs:
    """
    How many jobs are in a state, up to COUNTED.

    Attributes:
        left: Of those that run: how many have been without a sign of life of their worker for longer than their lease.
    """

    state: str
    jobs: int
    left: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """
    All of it in one snapshot.

    Attributes:
        at: By the database's clock.
        drawn: The highest sequence number in the outbox: what two looks differ by was written, or nearly.
        jobs: Those that are not over, by state.
        relays: Relay processes that live.
        took: Seconds that the slowest statement took, and its name.
    """

    at: datetime
    drawn: int | None
    shards: tuple[Shard, ...]
    marks: tuple[Mark, ...]
    waiting: tuple[Waiting, ...]
    failing: tuple[Failing, ...]
    processes: tuple[Process, ...]
    paused: tuple[Paused, ...]
    runs: tuple[Run, ...]
    sizes: tuple[Size, ...]
    jobs: tuple[Jobs, ...] = ()
    relays: int = 0
    took: tuple[str, float] = ("", 0.0)

    @property
    def groups(self) -> tuple[str, ...]:
        """Return the names of all groups that anything is known of."""
        rows: list[Mark | Waiting | Process | Paused | Failing] = [
            *self.marks,
            *self.waiting,
            *self.processes,
            *self.paused,
            *self.failing,
        ]
        return tuple(sorted({row.group for row in rows}))


@dataclass(frozen=True, slots=True, kw_only=True)
class Ends:
    """Where source topics end; `said` is why that is not known, of all or of some."""

    of: Mapping[Place, int]
    said: str | None = None


NO_BROKER = Ends(of={}, said="broker not set")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """What went on between two looks, a second; None: there was no earlier look, or a counter went back."""

    written: float | None = None
    published: float | None = None
    done: Mapping[str, float] | None = None


def rates(before: Look | None, now: Look) -> Rates:
    """
    Return the rates between two looks.

    What is done counts offsets below the watermarks of partitions that both looks know. The numbers in the outbox skip those of
    transactions that were rolled back, so what is written is nearly so.
    """
    if before is None or now.at <= before.at:
        return Rates()
    seconds = (now.at - before.at).total_seconds()
    earlier = {(mark.group, mark.topic, mark.partition): mark.offset for mark in before.marks}
    done: dict[str, float] = {}
    for mark in now.marks:
        was = earlier.get((mark.group, mark.topic, mark.partition))
        if was is not None:
            done[mark.group] = done.get(mark.group, 0.0) + max(0, mark.offset - was) / seconds
    return Rates(
        written=_rate(before.drawn, now.drawn, seconds),
        published=_rate(_published(before.shards), _published(now.shards), seconds),
        done=done,
    )


def _published(shards: Iterable[Shard]) -> int:
    return sum(shard.published for shard in shards)


def _rate(before: int | None, now: int | None, seconds: float) -> float | None:
    if before is None or now is None or now < before:
        return None
    return (now - before) / seconds
