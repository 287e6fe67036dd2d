"""What becomes of a job that is delivered and was not had: it waits, or is over already; pure."""

from typing import NamedTuple
from uuid import UUID

from packhorse.core.jobs import JobState
from packhorse.processor.outcomes import Outcome, Reason

LOOK_AGAIN = 1.0
"""Longest wait, in seconds, until a job that another has is looked at again: it may end before its lease does."""
SHORTEST = 0.05
"""Shortest wait, in seconds: a row that is locked for a moment."""


class JobRow(NamedTuple):
    """
    How a job stands.

    Attributes:
        id: The job.
        state: Its state.
        group: The group that runs it; None until one has met it.
        lease_left: Seconds that a lease runs on; below zero: it is over. None without one.
        cancel_asked: Somebody wants it cancelled.
        token: The token of its lease.
        one_running: The name of which one at most runs.
        expired: Its time has passed.
    """

    id: UUID
    state: JobState
    group: str | None
    lease_left: float | None
    cancel_asked: bool
    token: UUID | None
    one_running: str | None
    expired: bool = False


class Wait(NamedTuple):
    """Look again after so many *seconds*."""

    seconds: float


class End(NamedTuple):
    """Record the message so, without running anything; *text* is why, for people."""

    outcome: Outcome
    reason: str
    text: str


def not_had(row: JobRow | None, group: str) -> Wait | End:
    """
    Return what becomes of the message of a job that could not be claimed.

    What is over is no work for anybody: the message is skipped, and the state stands (the first final state does). A cancelled
    job's message is skipped too. One that another has, or whose row is locked for a moment, or of whose name another runs, waits.

    >>> not_had(None, "reports").outcome
    <Outcome.QUARANTINE: 'quarantine'>
    """
    if row is None:
        return End(
            Outcome.QUARANTINE,
            Reason.NO_JOB.value,
            "no job of this id is in this database; submit jobs with outbox.submit, and run their workers on that database",
        )
    if row.group is not None and row.group != group:
        return End(
            Outcome.SKIPPED, Reason.OTHER_GROUP.value, f"group {row.group} has the workers of this job"
        )
    is_free = row.state is not JobState.RUNNING or row.lease_left is None or row.lease_left <= 0
    match row.state:
        case JobState.ACCEPTED | JobState.RETRYING | JobState.RUNNING if is_free and row.cancel_asked:
            return End(Outcome.SKIPPED, Reason.CANCELLED.value, "it was cancelled")
        case JobState.ACCEPTED | JobState.RETRYING | JobState.RUNNING if is_free and row.expired:
            return End(Outcome.SKIPPED, Reason.EXPIRED.value, "its time has passed")
        case JobState.ACCEPTED | JobState.RETRYING:
            return Wait(LOOK_AGAIN if row.one_running is not None else SHORTEST)
        case JobState.RUNNING:
            return Wait(min(max(row.lease_left or 0.0, SHORTEST), LOOK_AGAIN))
        case JobState.CANCELLED:
            return End(Outcome.SKIPPED, Reason.CANCELLED.value, "it was cancelled")
        case _:
            return End(Outcome.SKIPPED, Reason.JOB_OVER.value, f"its job is {row.state}")


def state_after(outcome: Outcome, reason: str | None) -> JobState:
    """
    Return the state of a job whose message is recorded with *outcome*.

    >>> state_after(Outcome.DONE, None), state_after(Outcome.SKIPPED, "expired"), state_after(Outcome.SKIPPED, None)
    (<JobState.SUCCEEDED: 'succeeded'>, <JobState.EXPIRED: 'expired'>, <JobState.CANCELLED: 'cancelled'>)
    """
    match outcome:
        case Outcome.DONE:
            return JobState.SUCCEEDED
        case Outcome.SKIPPED:
            return JobState.EXPIRED if reason == Reason.EXPIRED.value else JobState.CANCELLED
        case Outcome.RETRY:
            return JobState.RETRYING
        case _:
            return JobState.UNCERTAIN if reason == Reason.UNCERTAIN.value else JobState.QUARANTINED
