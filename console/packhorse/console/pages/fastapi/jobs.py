"""Pages: jobs by state, and the whole way of one."""

from datetime import datetime, timedelta
from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Request
from fastapi.responses import Response
from pydantic import BeforeValidator, Field

from packhorse.console.api.fastapi.joints import behind
from packhorse.console.api.models.base import NO_NUL, WHOLE, Cursor, Name
from packhorse.console.jobs.model import MAX_TEXT, STUCK_AFTER, Counts, Filter, Shown, position_from
from packhorse.console.pages import job_offers, jobs
from packhorse.console.pages.fastapi.answers import page
from packhorse.console.pages.fastapi.gate import LIVE
from packhorse.console.pages.fastapi.joints import Asked, Asking, At, Query, come_back, joined, read
from packhorse.console.sharing import Shared
from packhorse.console.truth.moments import utc
from packhorse.core.clock import SYSTEM_CLOCK
from packhorse.core.errors import SettingsError
from packhorse.core.ids import time_of
from packhorse.core.jobs import CANCELLABLE, NEEDS_PERSON, JobState
from packhorse.core.moments import span_from
from packhorse.core.rights import Right
from packhorse.processor.durations import seconds_of

router = APIRouter(prefix="/jobs")
LIMIT = 50
"""Jobs on one page."""
STUCK = (("true", "5 minutes"), ("1m", "a minute"), ("30m", "half an hour"), ("2h", "two hours"))
"""What the list offers to call long; an address may say any duration."""


def _parted(value: object) -> object:
    return value.split(",") if isinstance(value, str) else value


def _long(value: object) -> object:
    """Return how long a job has to wait to be called stuck; `true` is as long as the command line means."""
    if value == "true":
        return STUCK_AFTER
    try:
        return timedelta(seconds=seconds_of(value, what="stuck")) if isinstance(value, str) else value
    except SettingsError as error:
        raise ValueError(str(error)) from None


class JobsPage(Asked):
    """
    Which jobs are listed.

    Attributes:
        state: In one of these, parted by commas.
        since, until: Accepted from then on; before then: a time, UTC where no zone is given, or how long ago, as 2h.
        text: The recorded error holds it, in capitals or not.
        stuck: Accepted for longer than this and due, running with the lease over, or uncertain; `true`: than five minutes.
    """

    state: Annotated[
        tuple[JobState, ...], BeforeValidator(_parted), Field(max_length=len(JobState), default=())
    ]
    type: Name | None = None
    tenant: Name | None = None
    topic: Name | None = None
    since: Annotated[str, Field(max_length=40)] | None = None
    until: Annotated[str, Field(max_length=40)] | None = None
    text: Annotated[str, Field(min_length=1, max_length=MAX_TEXT, pattern=NO_NUL), WHOLE] | None = None
    stuck: Annotated[timedelta, BeforeValidator(_long)] | None = None
    after: Cursor | None = None

    def filter(self, now: datetime) -> Filter:
        """Return what the service is asked for; raises UsageError for what can't be meant."""
        since, until = span_from(self.since, self.until, now=now)
        return Filter(
            states=frozenset(self.state),
            type=self.type,
            tenant=self.tenant,
            topic=self.topic,
            since=since,
            until=until,
            text=self.text,
            stuck=self.stuck,
        )


class JobPage(Asked):
    """
    What is shown of a job.

    Attributes:
        input: Decode the input; fields that its schema marks personal are masked.
        show_key: Show the names that the application gave, which may say who somebody is.
    """

    input: bool = False
    show_key: bool = False


@router.get("")
def list_jobs(service: Asking, desk: At, request: Request) -> Response:
    """Count jobs by state, and list those that are wanted, the newest first."""
    come_back(request, "/jobs")
    fields = joined(request, "state")
    asked, now = read(JobsPage, fields), SYSTEM_CLOCK.now()
    wanted = asked.filter(now)
    desk.standing.check(Right.SEE, doing="look")
    shared: Shared[Counts] = request.app.state.job_counts
    counts = shared.get(service.jobs.counts)
    found = service.jobs.page(wanted, after=behind(asked.after, position_from), limit=LIMIT)
    filters = {name: value for name, value in fields.items() if name != "after"}
    return page(
        "jobs.html",
        desk,
        room="/jobs",
        now=now,
        tally=jobs.tally_of(counts),
        found=found,
        next=found.next and found.next.token(),
        looked_at=None if found.looked_to is None else time_of(found.looked_to),
        asked=asked,
        filters=filters,
        is_filtered=wanted != Filter(),
        is_first=asked.after is None,
        states=list(JobState),
        stuck_choices=_choices(fields.get("stuck")),
    )


def _choices(given: str | None) -> tuple[tuple[str, str], ...]:
    """Return what the list offers to call long, with what the address says besides."""
    known = given is None or given in dict(STUCK)
    return STUCK if known else (*STUCK, (given or "", given or ""))


@router.get("/{job_id}")
def show_job(service: Asking, desk: At, request: Request, job_id: UUID, query: Query) -> Response:
    """Show one job: how it stands, what it waits for, and its whole way."""
    asked = read(JobPage, query)
    # What the page asks for by itself shows no input: it is outside of what is live, and to decode it may ask the registry.
    with_input = asked.input and LIVE not in request.headers
    shown = service.jobs.show(job_id, local=utc, with_input=with_input)
    return page("jobs-one.html", desk, **shown_values(shown), asked=asked, may_act=desk.may_act)


def shown_values(shown: Shown) -> dict[str, Any]:
    """Return what pages of one job show."""
    facts, now = shown.facts, shown.status.around.now
    assert now is not None, "a job is shown with the database's time"
    headline, kind = jobs.headline_of(facts, now)
    job = facts.job
    return {
        "room": "/jobs",
        "shown": shown,
        "facts": facts,
        "job": job,
        "now": now,
        "headline": headline,
        "kind": kind,
        "lease_over": facts.lease_over(now),
        "share": jobs.share_of(facts),
        "progress": tuple(jobs.progress_words(facts)),
        "way": jobs.way_of(facts, shown.status.acts),
        "stands_of": jobs.stands_of,
        "decidable": jobs.decidable(facts),
        "resolve_path": job_offers.resolve_path,
        "cancellable": job.state in CANCELLABLE or job.state is JobState.RUNNING,
        "rests": job.state in NEEDS_PERSON,
        "cause": _message_id(job.causation_id),
    }


def _message_id(text: str | None) -> UUID | None:
    try:
        return None if text is None else UUID(text)
    except ValueError:
        return None
