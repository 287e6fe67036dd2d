"""Replays and offsets, as the API is asked and answers."""

from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from pydantic import Field, StrictBool

from packhorse.console.api.models.base import NO_NUL, WHOLE, Answer, Asked, Count, Key, Moment, Name, Why
from packhorse.console.paging import MOST
from packhorse.console.replaying.checks import Check
from packhorse.console.replaying.ranges import Range
from packhorse.console.replaying.wanted import MOST_RATE, Wanted

Offset = Annotated[int, Field(ge=0, le=2**53)]
RunId = Annotated[int, Field(ge=1, le=2**63 - 1)]
_Names = Annotated[list[Name], Field(max_length=1_000)]
_Keys = Annotated[list[Key], Field(max_length=1_000)]


class PlanBody(Asked):
    """
    Which messages of a topic are to be handed to which handlers of a group.

    Attributes:
        partitions: These alone; empty: all.
        from_offset, to_offset: The range of the one partition, the second not included.
        since, until: The range by the records' times, the second not included.
        types, keys: These alone; empty: all.
        left_out: Keys that are not replayed.
        again: Also messages that are done are done once more: every effect happens again.
        with_discarded: Of `again`: also what a person has discarded.
        beyond: Also those of keys that have messages done beyond the range, or since; needs an admin to run.
        handler: A handler for replays by name, instead of those that live messages go to.
        rate: Messages a second.
        most_failures: How many may fail before the run halts by itself.
        dry: Only decode and count; nothing is kept.
    """

    group: Name
    topic: Name
    partitions: Annotated[list[Count], Field(max_length=1_000)] = Field(default_factory=list)
    from_offset: Offset | None = None
    to_offset: Offset | None = None
    since: Moment | None = None
    until: Moment | None = None
    types: _Names = Field(default_factory=list)
    keys: _Keys = Field(default_factory=list)
    left_out: _Keys = Field(default_factory=list)
    again: StrictBool = False
    with_discarded: StrictBool = False
    beyond: StrictBool = False
    handler: Name | None = None
    rate: Annotated[float, Field(ge=0.1, le=MOST_RATE)] = 500.0
    most_failures: Count = 10
    dry: StrictBool = False

    def wanted(self) -> Wanted:
        """Return what the service is asked for."""
        values = {name: value for name, value in self if name != "dry"}
        lists = {name: tuple(values[name]) for name in ("partitions", "types", "keys", "left_out")}
        return Wanted(**{**values, **lists})


class PlanAnswer(Answer):
    """
    What a replay would do.

    Attributes:
        replay: Its number, to confirm it by; null: it was a dry run.
        counts: What the range holds, and how the group stands with it.
        checks: What a person should know before it runs, what matters most first.
        seconds: How long it takes at its rate, at least; of a dry run how long it took.
    """

    replay: int | None
    group: str
    topic: str
    topic_id: UUID
    wanted: dict[str, Any]
    ranges: list[Range]
    counts: dict[str, Any]
    checks: list[Check]
    seconds: float


class PartAnswer(Answer):
    """One partition's range, and how far it is."""

    partition: int
    first: int
    position: int
    past: int
    gone: int
    matches: int | None
    counts: dict[str, int]


class ReplayAnswer(Answer):
    """
    One replay; handed over and proved by an outcome are two different things.

    Attributes:
        expired: It was planned and not run in time.
        alive: A runner works on it now.
        held_keys: Keys that it holds, since more of them is to come.
        live_messages_waiting: Live messages of these keys that wait for it.
    """

    replay: int
    state: str
    expired: bool
    said: str | None
    group: str
    topic: str
    topic_id: UUID
    wanted: dict[str, Any]
    counts: dict[str, Any]
    checks: list[Check]
    planned_by: str
    planned_at: datetime
    expires_at: datetime
    confirmed_by: str | None
    confirmed_at: datetime | None
    why: str | None
    runner: str | None
    alive: bool
    ended_at: datetime | None
    progress: dict[str, int]
    held_keys: int
    live_messages_waiting: int
    partitions: list[PartAnswer]


class ReplaysAsked(Asked):
    """Which replays are wanted; what is not given lets all pass."""

    group: Name | None = None
    topic: Name | None = None
    limit: Annotated[int, Field(ge=1, le=MOST)] = 50


class ReplaysAnswer(Answer):
    """The latest replays."""

    replays: list[ReplayAnswer]


class ResumeReplayBody(Asked):
    """
    Why it goes on.

    Attributes:
        most_failures: How many may fail altogether before it halts; null: as many more as before.
    """

    why: Why
    most_failures: Count | None = None


class OffsetsAsked(Asked):
    """Of which group, in which topic."""

    group: Name
    topic: Name


class StandingAnswer(Answer):
    """Where one partition of a group stands; null where there is nothing."""

    partition: int
    watermark: int | None
    committed: int | None
    first: int
    next: int
    lag: int | None


class OffsetsAnswer(Answer):
    """Where a group stands in a topic."""

    group: str
    topic: str
    partitions: list[StandingAnswer]


class ResetPreviewBody(Asked):
    """
    Where a stopped group is to stand.

    Attributes:
        to: committed, earliest, latest, a time with its zone, or an offset of the one partition.
    """

    group: Name
    topic: Name
    to: Annotated[str, Field(min_length=1, max_length=40, pattern=NO_NUL, examples=["earliest"]), WHOLE]
    partition: Count | None = None


class MoveBody(Asked):
    """One partition's reset as it was previewed."""

    partition: Count
    watermark: Offset | None
    committed: Offset | None
    to: Offset
    skips: Offset
    repeats: Offset


class MoveAnswer(Answer):
    """
    One partition's reset.

    Attributes:
        skips: Offsets that are not done and count as done from then on.
        repeats: Offsets that are done and are delivered again.
    """

    partition: int
    watermark: int | None
    committed: int | None
    to: int
    skips: int
    repeats: int


class ResetOrderAnswer(Answer):
    """What was previewed: give it back with the act, so that exactly that is done or nothing."""

    group: str
    topic: str
    partitions: list[MoveAnswer]


class ResetPreviewAnswer(Answer):
    """What a reset would set."""

    order: ResetOrderAnswer


class ResetOrderBody(Asked):
    """A reset as it was previewed."""

    group: Name
    topic: Name
    partitions: Annotated[list[MoveBody], Field(min_length=1, max_length=100_000)]


class ResetBody(Asked):
    """The order of the preview, and the reason."""

    order: ResetOrderBody
    why: Why


class ResetAnswer(ResetOrderAnswer):
    """What was set, and who is on record with it."""

    by: str
