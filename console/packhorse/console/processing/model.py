"""One group from inside. Pure: no I/O, no clock."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from packhorse.console.doctor.judge_processors import ALIVE
from packhorse.console.paging import position_from, token_of
from packhorse.processor.pausing.pauses import Pause, PausedKey
from packhorse.processor.watching.stall import QUIET

DUE_FIRST = 10_000
"""Retries that come due first: so many are looked at."""
KEYS = 100_000
"""Parked keys that are looked through for the oldest."""
BEHIND = 1_000
"""Followers of one key that are counted; a number as high means "at least"."""
MOST_PROCESSES = 60
"""Processes that are shown, the living first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tier:
    """
    What waits in one tier, of the DUE_FIRST retries of the group that come due first.

    Attributes:
        unsent: Retries whose copy is not known to be confirmed.
        due_at: When the first is due, or was.
        overdue: How many are due.
    """

    topic: str
    tier: str
    messages: int
    unsent: int
    due_at: datetime
    overdue: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Stalled:
    """Something that does not move, as a process says: why, for how long, and what it knows of it."""

    topic: str
    partition: int
    offset: int | None
    cause: str
    seconds: int
    text: str

    @property
    def is_quiet(self) -> bool:
        """Return whether a person or the clock wanted it so."""
        return self.cause in QUIET


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """
    One process of the group, as it says itself.

    Attributes:
        alive: It was seen lately.
        pending, in_hand: Messages that it has read and not dealt with, and chunks that run.
        wrong: Why it says that it is not well.
        stopped: Handlers that brake or breaker have stopped.
        troubled: Partitions with trouble, in words.
    """

    host: str
    pid: int
    version: str | None
    started_at: datetime
    seen_at: datetime
    alive: bool
    partitions: int
    pending: int
    in_hand: int
    wrong: tuple[str, ...]
    stalls: tuple[Stalled, ...]
    stopped: tuple[str, ...]
    troubled: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Inside:
    """
    A group from inside, in one snapshot.

    Attributes:
        known: Anything of it is known in this database.
    """

    at: datetime
    known: bool
    tiers: tuple[Tier, ...]
    processes: tuple[Process, ...]
    pauses: tuple[Pause, ...]
    paused_keys: tuple[PausedKey, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ParkedKey:
    """
    A key of the group that is parked.

    Attributes:
        head: The message that keeps it; None: a person paused it, or its followers are on their way.
        head_outcome: How the group stands with the head; None: it is finished.
        followers: What waits behind it, counted up to BEHIND.
    """

    topic: str
    key_hash: str
    partition: int
    parked_at: datetime
    head: UUID | None
    head_outcome: str | None
    head_reason: str | None
    head_due_at: datetime | None
    paused: bool
    paused_by: str | None
    followers: int


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyPosition:
    """Where a page of parked keys begins: behind this one."""

    parked_at: datetime
    topic: str
    key_hash: str

    def token(self) -> str:
        """Return it as one word."""
        return token_of(self.parked_at.isoformat(), self.topic, self.key_hash)


@dataclass(frozen=True, slots=True, kw_only=True)
class ParkedPage:
    """
    Parked keys, the oldest first.

    Attributes:
        whole: All keys of the group were looked through; False: KEYS of them.
    """

    keys: tuple[ParkedKey, ...]
    whole: bool
    next: str | None


def process_of(row: Mapping[str, Any], *, now: datetime) -> Process:
    """Return what *row* says; what another version writes otherwise counts as not said."""
    status = row["status"] if isinstance(row["status"], dict) else {}
    places = [each for each in _list(status.get("partitions")) if isinstance(each, dict)]
    more = status.get("partitions_not_shown")
    return Process(
        host=row["host"],
        pid=row["pid"],
        version=_text(status.get("version")),
        started_at=row["started_at"],
        seen_at=row["seen_at"],
        alive=now - row["seen_at"] <= ALIVE,
        partitions=len(places) + _number(more),
        pending=sum(_number(each.get("pending")) for each in places),
        in_hand=sum(_number(each.get("in_flight")) for each in places),
        wrong=tuple(map(str, _list(status.get("wrong")))),
        stalls=tuple(_stalled(each) for each in _list(status.get("stalls")) if isinstance(each, dict)),
        stopped=tuple(map(str, _list(status.get("stopped handlers")))),
        troubled=tuple(
            f"{each.get('topic')}[{each.get('partition')}]: {each['trouble']}"
            for each in places
            if each.get("trouble")
        ),
    )


def key_page(keys: Sequence[ParkedKey], *, limit: int, looked: int) -> ParkedPage:
    """Return the page of *keys*, which has one more than *limit* where there are more, after *looked* were looked through."""
    shown = tuple(keys[:limit])
    last = shown[-1] if len(keys) > limit else None
    return ParkedPage(
        keys=shown,
        whole=looked < KEYS,
        next=None
        if last is None
        else KeyPosition(parked_at=last.parked_at, topic=last.topic, key_hash=last.key_hash).token(),
    )


def key_position(token: str | None) -> KeyPosition | None:
    """
    Return the position that *token* stands for.

    Raises:
        UsageError: It is none of ours.
    """
    return None if token is None else position_from(token, _position)


def _position(at: str, topic: str, key_hash: str) -> KeyPosition:
    moment = datetime.fromisoformat(at)
    if moment.tzinfo is None or not all(isinstance(each, str) for each in (topic, key_hash)):
        raise ValueError
    return KeyPosition(parked_at=moment, topic=topic, key_hash=key_hash)


def _stalled(each: Mapping[str, Any]) -> Stalled:
    offset = each.get("offset")
    return Stalled(
        topic=str(each.get("topic")),
        partition=_number(each.get("partition")),
        offset=offset if isinstance(offset, int) else None,
        cause=str(each.get("cause")),
        seconds=_number(each.get("seconds")),
        text=str(each.get("text", "")),
    )


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _number(value: object) -> int:
    return value if isinstance(value, int) else 0


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None
