"""What the tables say of redrives of sets: plain values."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from uuid import UUID

from packhorse.core.text import counted


class RunState(StrEnum):
    """How a redrive of a set stands."""

    PREVIEWED = "previewed"
    RUNNING = "running"
    PAUSED = "paused"
    HALTED = "halted"
    ABORTED = "aborted"
    ENDED = "ended"


OPEN = frozenset({RunState.RUNNING, RunState.PAUSED, RunState.HALTED})
"""States of a run that was confirmed and has not ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """
    One thing that speaks for or against a redrive.

    Attributes:
        code: cause, side-effects, in-doubt, stale, order, expired, capped, same-bytes, purged.
        count: Members that it holds for; None where it holds for the whole set.
    """

    code: str
    count: int | None
    said: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One member, for eyes; `said` is why it is left out."""

    id: UUID
    group: str
    topic: str
    type: str | None
    reason: str
    site: str | None
    redrives: int
    quarantined_at: datetime
    state: str
    said: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RedriveRow:
    """
    One redrive of a set.

    Attributes:
        wanted: What was asked for, without the text of a key.
        members: How many the set has.
        stage: The stage in hand, from 0 on.
        expired: A preview that nobody confirmed in time.
        worked_on: A runner's lease is running.
        said: Why it was paused, halted or aborted.
    """

    id: int
    state: RunState
    wanted: dict[str, object]
    checks: tuple[Check, ...]
    members: int
    rate: float
    stages: tuple[int, ...]
    stage: int
    most_failures: int | None
    previewed_by: str
    previewed_at: datetime
    expires_at: datetime
    expired: bool
    confirmed_by: str | None
    confirmed_at: datetime | None
    why: str | None
    said: str | None
    runner: str | None
    worked_on: bool
    changed_at: datetime
    ended_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Frozen:
    """What a preview has frozen: the set's row, some of its members, and how many will be asked for."""

    redrive: RedriveRow
    samples: tuple[Sample, ...]
    waiting: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """
    How far a set is; each member counts under one of the first seven.

    Attributes:
        waiting: Not asked for yet.
        asked: Ordered in the tables, without an outcome; `sent` and `parked` of them say more.
        good, bad: Proved by an outcome: done or skipped; failed again.
        moved: Not as they were previewed when their turn came: not redriven here.
        left: Not asked for, or waiting behind something that needs a person; each says why.
        sent: Of all that were asked for: the broker has the copy, or they were run without one.
        parked: Of those asked for: they wait behind another message of their key.
        refused: Of those asked for: the broker does not take them.
    """

    waiting: int = 0
    asked: int = 0
    good: int = 0
    bad: int = 0
    moved: int = 0
    left: int = 0
    sent: int = 0
    parked: int = 0
    refused: int = 0

    @property
    def total(self) -> int:
        """Return how many members there are."""
        return self.waiting + self.asked + self.good + self.bad + self.moved + self.left

    @property
    def line(self) -> str:
        """
        Return it as one line.

        >>> Progress(waiting=5, asked=3, good=2, sent=4, bad=1).line
        '11 members: 5 waiting, 6 asked (4 sent), 2 proved good, 1 failed again'
        """
        asked = self.asked + self.good + self.bad
        parts = [
            f"{self.waiting} waiting",
            f"{asked} asked ({self.sent} sent)",
            f"{self.good} proved good",
            f"{self.bad} failed again",
        ]
        more = (
            (self.moved, "moved"),
            (self.left, "left"),
            (self.parked, "behind another of their key"),
            (self.refused, "refused by the broker"),
        )
        return f"{counted(self.total, 'member')}: " + ", ".join(
            parts + [f"{count} {what}" for count, what in more if count]
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberRow:
    """
    One member of a set.

    Attributes:
        attempt, redrives: As they were frozen.
        outcome: What its inbox row says now.
        sent: The broker has the copy, or it was run without one; as `Progress` counts it.
        sent_at: When the broker had the copy of its last redrive; None after it stopped again.
        refused: Why the broker does not take it.
    """

    ordinal: int
    id: UUID
    group: str
    topic: str
    partition: int
    offset: int
    attempt: int
    redrives: int
    state: str
    stage: int | None
    asked_at: datetime | None
    said: str | None
    outcome: str | None
    sent_at: datetime | None
    refused: str | None
    sent: bool
