"""Redrives of sets, as the API is asked and answers."""

from datetime import datetime
from typing import Annotated
from uuid import UUID

from pydantic import Field, StrictBool

from packhorse.console.api.models.base import NO_NUL, WHOLE, Answer, Asked, Count, Key, Moment, Name
from packhorse.console.paging import MOST
from packhorse.console.redriving.records import Check, MemberRow, Progress, RunState, Sample
from packhorse.console.redriving.tallying import Member
from packhorse.console.redriving.wanted import (
    DEFAULT_CAP,
    DEFAULT_LIMIT,
    DEFAULT_RATE,
    DEFAULT_STAGES,
    MOST_MEMBERS,
    MOST_RATE,
    How,
    Picked,
    Wanted,
)

_FILTERS = ("group", "topic", "type", "reason", "failure", "tenant", "key", "text", "since", "until")


class PickedBody(Asked):
    """One message in quarantine: an id alone may rest there in several groups."""

    id: UUID
    group: Name
    topic: Name


class RedrivePreviewBody(Asked):
    """
    Which quarantined messages are to be in the set, and how it is redriven; what is not given lets all pass.

    Attributes:
        failure: Print of a group of failures, or its first eight digits or more.
        text: Part of the recorded error, in capitals or not.
        since, until: When they came to quarantine: from, and before.
        ids: Exactly these messages; empty: all that fit.
        picked: The same by id, group and topic; if one of them is not in quarantine any more, nothing is frozen.
        everything: Without a filter: yes, all of them.
        limit: Members that the set may have at most; more is refused, not cut.
        rate: Messages that are asked for in a second, at most.
        stages: How many are asked for before all of them must be proved, rising; then five times as many each time.
        most_failures: Failures in one stage that are borne; null: none in stages of fewer than 20, else a tenth.
        beyond_cap: Take in also what was redriven ten times or more.
    """

    group: Name | None = None
    topic: Name | None = None
    type: Name | None = None
    reason: Name | None = None
    failure: Annotated[str, Field(pattern="^[0-9a-f]{8,32}$")] | None = None
    tenant: Name | None = None
    key: Key | None = None
    text: Annotated[str, Field(min_length=1, max_length=1_000, pattern=NO_NUL), WHOLE] | None = None
    since: Moment | None = None
    until: Moment | None = None
    ids: Annotated[list[UUID], Field(max_length=20_000)] = Field(default_factory=list)
    picked: Annotated[list[PickedBody], Field(max_length=20_000)] = Field(default_factory=list)
    everything: StrictBool = False
    limit: Annotated[int, Field(ge=1, le=MOST_MEMBERS)] = DEFAULT_LIMIT
    rate: Annotated[float, Field(ge=0.1, le=MOST_RATE)] = DEFAULT_RATE
    stages: Annotated[
        list[Annotated[int, Field(ge=1, le=MOST_MEMBERS)]], Field(min_length=1, max_length=20)
    ] = Field(default=list(DEFAULT_STAGES))
    most_failures: Count | None = None
    beyond_cap: StrictBool = False

    def wanted(self) -> Wanted:
        """Return which messages the service is asked for."""
        values = {name: getattr(self, name) for name in _FILTERS}
        picked = (Picked(**one.model_dump()) for one in self.picked)
        return Wanted(**values, ids=tuple(dict.fromkeys(self.ids)), picked=tuple(dict.fromkeys(picked)))

    def how(self) -> How:
        """Return how the service is asked to do it."""
        return How(
            limit=self.limit,
            rate=self.rate,
            stages=tuple(self.stages),
            most_failures=self.most_failures,
            cap=None if self.beyond_cap else DEFAULT_CAP,
        )


class RedriveSetAnswer(Answer):
    """
    One redrive of a set.

    Attributes:
        standing: How it stands, in words.
        wanted: What was asked for, without the text of a key.
        checks: What speaks for or against it.
        members: How many the set has.
        stage: The stage in hand, from 0 on.
        expired: A preview that nobody confirmed in time.
        worked_on: A runner's lease is running.
        said: Why it was paused, halted or aborted.
    """

    id: int
    state: RunState
    standing: str
    wanted: dict[str, object]
    checks: list[Check]
    members: int
    rate: float
    stages: list[int]
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


class FrozenAnswer(RedriveSetAnswer):
    """
    A preview: exactly this set is redriven when it is confirmed by its id; what comes to quarantine later is not in it.

    Attributes:
        waiting: How many will be asked for.
        samples: Some members; `said` is why one is left out.
    """

    waiting: int
    samples: list[Sample]


class RedriveProgressAnswer(RedriveSetAnswer):
    """
    One redrive and how far it is: asked, sent and proved are three different things.

    Attributes:
        progress: Each member counts under one of waiting, asked, good, bad, moved and left.
    """

    progress: Progress


class RedrivesAsked(Asked):
    """
    Which redrives are wanted.

    Attributes:
        before: Older than this one.
    """

    limit: Annotated[int, Field(ge=1, le=MOST)] = 50
    before: Annotated[int, Field(ge=1, le=2**53)] | None = None


class RedrivesAnswer(Answer):
    """Redrives of sets, the newest first."""

    redrives: list[RedriveSetAnswer]


class MembersAsked(Asked):
    """
    Which members are wanted.

    Attributes:
        after: Behind this number, as `next` of the page before says it.
    """

    state: Member | None = None
    limit: Annotated[int, Field(ge=1, le=MOST)] = 50
    after: Annotated[int, Field(ge=0, le=2**53)] = 0


class MembersAnswer(Answer):
    """Members of a set, in the order in which they are asked for; `next` is null on the last page."""

    members: list[MemberRow]
    next: int | None
