"""Jobs as operators ask for them: filters, pages, counts, and what of one job is shown. Pure: no I/O, no clock."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from uuid import UUID

from packhorse.console import paging
from packhorse.console.truth.explanation import Part
from packhorse.console.truth.jobs import Job, JobFacts
from packhorse.console.truth.status import Status
from packhorse.core.errors import UsageError
from packhorse.core.ids import uuid7_from
from packhorse.core.jobs import JobState
from packhorse.core.moments import zulu

MAX_TEXT = 200
STUCK_AFTER = timedelta(minutes=5)
STUCK_STATES = frozenset({JobState.ACCEPTED, JobState.RUNNING, JobState.UNCERTAIN})
"""States in which a job may be stuck: nobody begins it, nobody goes on with it, nobody decides."""
ID_SLACK = timedelta(days=1)
"""A job is looked for by the time in its id, which whoever gives ids of their own may have made earlier or later than this."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """
    Which jobs are wanted; None lets all pass.

    Attributes:
        states: In one of these; empty: in any.
        since, until: Accepted from then on; before then. Aware.
        text: What the recorded error holds, in capitals or not; never looked for in inputs or results.
        stuck: Accepted for longer than this and due, running with its lease over, or uncertain.

    Raises:
        UsageError: *text* is empty or too long, the time ends before it begins, or no state that is wanted can be stuck.
    """

    states: frozenset[JobState] = frozenset()
    type: str | None = None
    tenant: str | None = None
    topic: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    text: str | None = None
    stuck: timedelta | None = None

    def __post_init__(self) -> None:
        if self.text is not None and not 1 <= len(self.text) <= MAX_TEXT:
            raise UsageError(f"--text of {len(self.text)} characters; 1 to {MAX_TEXT} are allowed")
        if self.since is not None and self.until is not None and self.until <= self.since:
            raise UsageError(f"--until {zulu(self.until)} is not after --since {zulu(self.since)}")
        if self.stuck is not None and self.states and not self.states & STUCK_STATES:
            raise UsageError(
                f"a job that is {' or '.join(sorted(self.states))} is not called stuck; --stuck knows "
                f"{', '.join(sorted(STUCK_STATES))}"
            )

    @property
    def indexed(self) -> tuple[JobState, ...]:
        """Return the states that an index leads to, if all that are wanted are such; empty: they are not."""
        wanted = self.states or (STUCK_STATES if self.stuck is not None else frozenset())
        if self.stuck is not None:
            wanted &= STUCK_STATES
        return () if JobState.SUCCEEDED in wanted else tuple(sorted(wanted))

    @property
    def ids(self) -> tuple[UUID | None, UUID | None]:
        """Return between which ids jobs of the time lie, `ID_SLACK` around it."""
        try:
            return (
                None if self.since is None else uuid7_from(self.since - ID_SLACK, bytes(10)),
                None if self.until is None else uuid7_from(self.until + ID_SLACK, b"\xff" * 10),
            )
        except (ValueError, OverflowError):  # a time that no id can have
            return None, None


@dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    """The last job of a page; the order is the newest id first."""

    id: UUID

    def token(self) -> str:
        """Return the position as one word for a command line."""
        return paging.token_of(str(self.id))


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """
    Some jobs.

    Attributes:
        next: Where the next page goes on; None on the last page.
        looked_to: The page ends before it is full because enough were looked at: down to this one. None: it does not.
    """

    jobs: tuple[Job, ...]
    next: Position | None
    looked_to: UUID | None = None


def position_from(token: str) -> Position:
    """Return the position that *token* stands for; raises UsageError for what is no token of ours."""
    return paging.position_from(token, lambda job_id: Position(id=UUID(job_id)))


def page_of(rows: list[Job], *, limit: int, far: UUID | None = None) -> Page:
    """
    Return the page of the first *limit* of *rows*; one row more says that another page follows.

    *far* is how far was looked when that ended the look; more may fit behind it.
    """
    kept = tuple(rows[:limit])
    if len(rows) > limit:
        return Page(jobs=kept, next=Position(id=kept[-1].id))
    return Page(jobs=kept, next=None if far is None else Position(id=far), looked_to=far)


def joined(first: Page, second: Page) -> Page:
    """Return two pages that follow each other as one."""
    return Page(jobs=first.jobs + second.jobs, next=second.next, looked_to=second.looked_to)


@dataclass(frozen=True, slots=True, kw_only=True)
class Count:
    """
    How many jobs of a type are in a state.

    Attributes:
        type: None: of all types together.
        exact: False: there are at least so many, unless it is estimated.
        estimated: There are about so many.
    """

    state: JobState
    type: str | None
    jobs: int
    exact: bool
    estimated: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """Jobs by state and type; `said` is how those that were not counted one by one came about, None: all were."""

    counts: tuple[Count, ...]
    said: str | None


def counts_of(
    open_: list[tuple[str, str, int]], *, most: int, succeeded: int, looked: int, look: int, believed: int
) -> Counts:
    """
    Return the counts that these numbers add up to.

    *open_* has state, type and number of those that an index lists, each counted up to *most*. No index lists those that have
    *succeeded*, and there may be millions, or few among millions: they are counted among the *looked* newest jobs, *look* at most.
    *believed* are the rows that the planner believes the table to have.
    """
    found = [
        Count(state=JobState(state), type=kind, jobs=jobs, exact=jobs < most) for state, kind, jobs in open_
    ]
    said = [f"counted up to {most}"] if any(not each.exact for each in found) else []
    exact, rest = looked < look, believed - sum(each.jobs for each in found)
    # What is left of a belief is worth something only if what is taken from it was counted to its end.
    estimated = not exact and not said and rest >= succeeded
    if estimated:
        said.append("those that have succeeded are as many as the planner believes")
    elif not exact:
        said.append(f"those that have succeeded are counted among the newest {look:,} jobs")
    if succeeded or not exact:
        jobs = rest if estimated else succeeded
        found.append(Count(state=JobState.SUCCEEDED, type=None, jobs=jobs, exact=exact, estimated=estimated))
    order = list(JobState)
    found.sort(key=lambda each: (order.index(each.state), each.type or ""))
    return Counts(counts=tuple(found), said="; ".join(said) or None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """What an application put into a job, for who may see it; `answers` and `results` are by effect and by step."""

    input: bytes | None = None
    result: object = None
    checkpoint: object = None
    actor: str | None = None
    results: Mapping[str, object] = field(default_factory=dict)
    answers: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """
    One job with its history.

    Attributes:
        status: Of its message.
        words: What it waits for, what comes next and what a person can do.
        input: Decoded as JSON-able data, with personal fields masked unless `kept` is there; None unless it was asked for.
        input_said: Why there is no input to see.
        kept: Everything that was put into it; None: it is not shown. That it was is on record.
    """

    status: Status
    facts: JobFacts
    words: Part
    input: object | None = None
    input_said: str | None = None
    kept: Kept | None = None
