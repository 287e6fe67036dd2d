"""Groups of quarantined messages, as the API is asked and answers."""

from datetime import date, datetime
from typing import Annotated
from uuid import UUID

from pydantic import BeforeValidator, Field

from packhorse.console.api.models.base import NO_NUL, WHOLE, Answer, Asked, Cursor, Name, Why
from packhorse.console.api.models.quarantine import StateAsked
from packhorse.console.facts import State
from packhorse.console.paging import MOST
from packhorse.console.quarantine.groups.model import (
    MAX_NOTE,
    By,
    Failure,
    GroupFilter,
    Known,
    Note,
)


def _is_day(value: object) -> object:
    """Take no number for a day: seconds since 1970 are nobody's meaning here."""
    if isinstance(value, str) and (len(value) != len("2026-01-02") or "-" not in value):
        raise ValueError("a day looks like 2026-01-02")
    return value


Day = Annotated[date, BeforeValidator(_is_day)]


class FailuresAsked(Asked):
    """
    What is grouped by what; what is not given lets all pass.

    Attributes:
        since, until: Days in UTC, both included: counts are kept by the day.
    """

    by: By = By.FAILURE
    group: Name | None = None
    topic: Name | None = None
    type: Name | None = None
    tenant: Name | None = None
    reason: Name | None = None
    state: StateAsked = StateAsked.QUARANTINED
    since: Day | None = None
    until: Day | None = None
    limit: Annotated[int, Field(ge=1, le=MOST)] = 50
    after: Cursor | None = None

    def filter(self) -> GroupFilter:
        """Return what the service is asked for."""
        return GroupFilter(
            group=self.group,
            topic=self.topic,
            type=self.type,
            tenant=self.tenant,
            reason=self.reason,
            state=None if self.state is StateAsked.ALL else State(self.state.value),
            since=self.since,
            until=self.until,
        )


class FailureGroupAnswer(Answer):
    """
    One group and its counts, which are exact unless the answer has some uncounted.

    Attributes:
        name: What its messages share; of failures the print; empty where messages have none.
        share: Part of all that the filter lets pass, from 0 to 1.
        failure, known: Of failures alone.
    """

    name: str
    quarantined: int
    redriven: int
    discarded: int
    total: int
    share: float
    first_at: datetime
    last_at: datetime
    failure: Failure | None
    known: Known | None


class FailuresAnswer(Answer):
    """
    One page of groups, the largest first.

    Attributes:
        groups_in_all: Of all pages.
        uncounted: Changes that are not in the counts yet; 0: these are exact. They are added in the background: ask again. Where it
            is above 50000 there may be more.
        next: `after` of the next page; null on the last.
    """

    by: By
    groups: list[FailureGroupAnswer]
    groups_in_all: int
    uncounted: int
    next: str | None


class ForGoodAnswer(Answer):
    """Of messages that failed at least once: how many ended in quarantine; `said` says what that rests on."""

    share: float | None
    failed: int | None
    stopped: int | None
    since: datetime | None
    said: str


class DayAnswer(Answer):
    """How many messages came on one day (UTC), by how they stand now."""

    day: date
    quarantined: int
    redriven: int
    discarded: int


class TenantAnswer(Answer):
    """How many messages of one tenant are in quarantine."""

    tenant: str
    quarantined: int


class FailureShownAnswer(FailureGroupAnswer):
    """One group of failures, whole: days the newest first, tenants the largest first, samples the newest; `uncounted` as in a page."""

    failed_for_good: ForGoodAnswer
    days: list[DayAnswer]
    tenants: list[TenantAnswer]
    samples: list[UUID]
    notes: list[Note]
    uncounted: int


class NoteBody(Asked):
    """What others should know; no personal data."""

    text: Annotated[
        str, Field(min_length=1, max_length=MAX_NOTE, pattern=NO_NUL, examples=["fixed in 1.4.2"]), WHOLE
    ]


class WhyBody(Asked):
    """The reason."""

    why: Why


class NotedAnswer(Answer):
    """A note that stands on the record."""

    failure: str
    noted_at: datetime


class AcknowledgedAnswer(Answer):
    """A group of failures that somebody knows of: nobody is told of it any more."""

    failure: str
    acknowledged_at: datetime


class UnacknowledgedAnswer(Answer):
    """An acknowledgement that was taken back."""

    failure: str
    unacknowledged_at: datetime
