"""
Which partition has work and does not move, and which handler runs for too long; pure.

A partition moves when its watermark does, or when a handler begins another of its messages. What explains itself is told
apart: a pause that a person ordered, a copy that is not due, something underneath that is away and has an alarm of its
own, a handler that still runs. What is left is a fault of ours or of the client's, and health says so.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from types import MappingProxyType

from packhorse.processor.watching.hands import Hand

Place = tuple[str, int]
Subject = tuple[str, str, int, int | None]

GAP_TIMES = 5
"""A watermark may stand so many times longer while other messages of its partition are begun: one slow key is no stall."""


class Cause(StrEnum):
    """Why something does not move; UNEXPLAINED is the one that nobody would otherwise see."""

    UNEXPLAINED = "unexplained"
    PAUSED = "paused"
    NOT_DUE = "not-due"
    LEAVING = "leaving"
    TROUBLE = "trouble"
    BROKER_AWAY = "broker-away"
    HANDLER = "handler"
    LANES = "lanes"
    HELD = "held"


QUIET = frozenset({Cause.PAUSED, Cause.NOT_DUE, Cause.LEAVING})
"""What needs no alarm: a person or the clock wanted it so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionSample:
    """
    How one assigned partition stands at one moment.

    Attributes:
        generation: The ownership; another one starts anew.
        phase: Its phase, by name.
        position: The watermark; None while it is not read.
        pending, size: Records read and not dealt with, and their bytes.
        running: Chunks that are with lanes.
        end: Where its topic ends, as far as is known.
        source: The topic whose messages it carries: what waits behind a finished head of it is run from here too.
        unreachable: Why the broker could not say so.
        held: A person's pause, in words.
        trouble: What is away or refused, in words.
        until: Monotonic time at which a wait ends: the partition's, or that of the first message that waits alone.
        full: It carries what comes again, and that has all the lanes that it may have while new messages come.
        committed: Position that the group's coordinator has confirmed.
    """

    topic: str
    partition: int
    generation: int
    phase: str
    position: int | None = None
    pending: int = 0
    size: int = 0
    running: int = 0
    end: int | None = None
    source: str = ""
    unreachable: str = ""
    held: str = ""
    trouble: str = ""
    until: float | None = None
    full: bool = False
    committed: int | None = None

    @property
    def lag(self) -> int | None:
        """Return the offsets from the watermark to the end; None when either is not known."""
        return None if self.end is None or self.position is None else max(0, self.end - self.position)

    @property
    def waits_for_share(self) -> bool:
        """Return whether its records wait for a lane because others that come again have all of theirs."""
        return self.full and self.phase == "reading" and self.pending > 0 and not self.running

    @property
    def has_work(self) -> bool:
        """Return whether there is something to do, the reading of the watermark included."""
        return self.position is None or bool(self.pending or self.running or self.lag)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stall:
    """
    Something that does not move.

    Attributes:
        offset, type: The message that a handler runs for; None of a partition as a whole.
        since: Monotonic time of its last move.
        cause: Why, as far as it explains itself.
        text: All that is known, for people; no value of a message.
        hand: What holds it, whose stack can be looked at.
    """

    topic: str
    partition: int
    offset: int | None = None
    type: str | None = None
    since: float
    cause: Cause
    text: str
    hand: Hand | None = None

    @property
    def subject(self) -> Subject:
        """Return what it is about: alarms of one subject are one alarm."""
        return ("partition" if self.offset is None else "handler", self.topic, self.partition, self.offset)

    @property
    def where(self) -> str:
        """Return the place, for people."""
        at = "" if self.offset is None else f" at offset {self.offset}"
        return f"{self.topic}[{self.partition}]{at}"

    @property
    def unexplained(self) -> bool:
        """Return whether health turns bad with it."""
        return self.cause is Cause.UNEXPLAINED


@dataclass(frozen=True, slots=True, kw_only=True)
class _Track:
    generation: int
    position: int | None
    moved: float
    marked: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Tracks:
    """What earlier looks have seen; empty before the first."""

    of: Mapping[Place, _Track] = field(default_factory=lambda: MappingProxyType({}))


def look(
    tracks: Tracks,
    samples: Iterable[PartitionSample],
    hands: Sequence[Hand],
    *,
    lanes: int,
    now: float,
    after: float,
) -> tuple[Tracks, tuple[Stall, ...]]:
    """
    Return what is to be remembered, and what has not moved for *after* seconds; all times are monotonic seconds.

    Partitions that are gone are forgotten, and so is an earlier ownership of one that came back. *lanes* is how many
    handlers can run at once: while as many do, a partition without one waits for them.
    """
    of: dict[Place, list[Hand]] = {}
    for hand in sorted(hands, key=lambda one: one.since):
        of.setdefault((hand.topic, hand.partition), []).append(hand)
    found, stalls = {}, []
    free = len(hands) < lanes
    for sample in samples:
        place = sample.topic, sample.partition
        mine = _hands_of(sample, of)
        track = found[place] = _tracked(tracks.of.get(place), sample, mine, now)
        if (stall := _stalled(sample, track, mine, free=free, now=now, after=after)) is not None:
            stalls.append(stall)
    slow = [_slow(hand, now) for hand in hands if now - hand.since >= after]
    return Tracks(of=MappingProxyType(found)), (*stalls, *slow)


def _hands_of(sample: PartitionSample, of: Mapping[Place, list[Hand]]) -> list[Hand]:
    """Return what runs for the partition, the oldest first; for a tier also followers, which bear their own place."""
    mine = of.get((sample.topic, sample.partition), [])
    if not sample.running or sample.source in {"", sample.topic}:
        return mine
    return sorted([*mine, *of.get((sample.source, sample.partition), ())], key=lambda one: one.since)


def _tracked(before: _Track | None, sample: PartitionSample, mine: Sequence[Hand], now: float) -> _Track:
    anew = before is None or before.generation != sample.generation
    if before is None or anew or not sample.has_work or before.position != sample.position:
        return _Track(generation=sample.generation, position=sample.position, moved=now, marked=now)
    return replace(before, moved=max(before.moved, mine[-1].since)) if mine else before


def _stalled(
    sample: PartitionSample, track: _Track, mine: Sequence[Hand], *, free: bool, now: float, after: float
) -> Stall | None:
    gap = now - track.marked >= after * GAP_TIMES
    if not sample.has_work or not (gap or now - track.moved >= after):
        return None
    slow = [hand for hand in mine if now - hand.since >= after]
    cause, why = _cause(sample, slow, free=free, now=now, after=after)
    return Stall(
        topic=sample.topic,
        partition=sample.partition,
        since=track.marked if gap else track.moved,
        cause=cause,
        text=f"{_told(sample)}{f'; {why}' if why else ''}",
        hand=slow[0] if slow else None,
    )


def _cause(
    sample: PartitionSample, slow: Sequence[Hand], *, free: bool, now: float, after: float
) -> tuple[Cause, str]:
    if sample.held:
        return Cause.PAUSED, sample.held
    if sample.phase in {"draining", "closed"}:
        return Cause.LEAVING, ""
    if sample.trouble:
        return Cause.TROUBLE, sample.trouble
    if sample.until is not None and now < sample.until + after:
        wait = f"in {max(0.0, sample.until - now):.0f} s"
        if sample.phase == "waiting":
            return Cause.NOT_DUE, f"the next is due {wait}"
        return Cause.HELD, f"messages wait alone, the first is tried again {wait}"
    if slow:
        return Cause.HANDLER, f"the handler of {slow[0].type} runs at offset {slow[0].offset}"
    if not free or sample.waits_for_share:
        return Cause.LANES, f"all lanes{_SHARE if free else ''} are taken by other handlers"
    return (Cause.BROKER_AWAY if sample.unreachable else Cause.UNEXPLAINED), sample.unreachable


_SHARE = " that retry topics may have while new messages come (half of them)"


def _told(sample: PartitionSample) -> str:
    mark = "not read" if sample.position is None else str(sample.position)
    end = "not known" if sample.end is None else str(sample.end)
    return (
        f"{sample.phase}, watermark {mark}, end {end}, {sample.pending} read and not dealt with, "
        f"{sample.running} chunks with lanes"
    )


def _slow(hand: Hand, now: float) -> Stall:
    return Stall(
        topic=hand.topic,
        partition=hand.partition,
        offset=hand.offset,
        type=hand.type,
        since=hand.since,
        cause=Cause.HANDLER,
        text=f"the handler of {hand.type} has run for {now - hand.since:.0f} s",
        hand=hand,
    )
