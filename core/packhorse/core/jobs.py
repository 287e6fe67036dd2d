"""The states of a job and which may follow which; the one table that code, database and documentation are held to."""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final, Literal

from packhorse.core.errors import PackhorseError


class JobState(StrEnum):
    """How a job stands; "accepted" is never shown as "done"."""

    ACCEPTED = "accepted"
    """It is on record and waits for its first run: to be due, to be published, or for a worker."""
    RUNNING = "running"
    """A worker has it under a lease."""
    RETRYING = "retrying"
    """A run has failed, or a person has sent it back, and the next one waits."""
    SUCCEEDED = "succeeded"
    """Its work is done, and its result was written with that fact."""
    QUARANTINED = "quarantined"
    """It failed for good, and rests until a person decides."""
    UNCERTAIN = "uncertain"
    """An outside effect may or may not have happened, and a person must say which."""
    DISCARDED = "discarded"
    """A person gave it up; restorable for a while."""
    CANCELLED = "cancelled"
    """Somebody took it back before it was done."""
    EXPIRED = "expired"
    """Its time had passed before it was done."""


_S = JobState

ALLOWED: Final[Mapping[JobState | None, frozenset[JobState]]] = MappingProxyType(
    {
        None: frozenset({_S.ACCEPTED}),
        _S.ACCEPTED: frozenset(
            {_S.RUNNING, _S.RETRYING, _S.QUARANTINED, _S.UNCERTAIN, _S.CANCELLED, _S.EXPIRED}
        ),
        _S.RUNNING: frozenset(
            {
                _S.RUNNING,  # another worker takes over what a dead one left
                _S.ACCEPTED,  # given back before anything was charged
                _S.SUCCEEDED,
                _S.RETRYING,
                _S.QUARANTINED,
                _S.UNCERTAIN,
                _S.CANCELLED,
                _S.EXPIRED,
            }
        ),
        _S.RETRYING: frozenset({_S.RUNNING, _S.QUARANTINED, _S.UNCERTAIN, _S.CANCELLED, _S.EXPIRED}),
        _S.QUARANTINED: frozenset({_S.RETRYING, _S.DISCARDED}),
        _S.UNCERTAIN: frozenset({_S.RETRYING, _S.QUARANTINED, _S.DISCARDED}),
        _S.DISCARDED: frozenset({_S.QUARANTINED, _S.UNCERTAIN}),
        _S.SUCCEEDED: frozenset(),
        _S.CANCELLED: frozenset(),
        _S.EXPIRED: frozenset(),
    }
)
"""What may follow a state; None is the time before the job was there."""

ENDED: Final = frozenset({_S.SUCCEEDED, _S.DISCARDED, _S.CANCELLED, _S.EXPIRED})
"""States in which nothing is going to happen by itself or is waited for; a discarded job may be restored."""
NEEDS_PERSON: Final = frozenset({_S.QUARANTINED, _S.UNCERTAIN})
"""States that only a person ends."""
CANCELLABLE: Final = frozenset({_S.ACCEPTED, _S.RETRYING})
"""States that a cancelling ends at once; a running job is asked to stop."""


REFERENCE_SUBJECT: Final = "packhorse.job-packhorse.JobReference"
"""Under which the schema of every job's message is registered. No topic is named by it: it stands in those of the jobs."""
Priority = Literal["high", "normal", "low"]
PRIORITIES: Final[tuple[Priority, ...]] = ("high", "normal", "low")
"""How urgent jobs can be, the most urgent first."""


def topic_of(topic: str, priority: Priority) -> str:
    """
    Return where the jobs of a priority go: a class of work has a topic of its own, so that none waits behind another.

    >>> [topic_of("shop.report", priority) for priority in PRIORITIES]
    ['shop.report.high', 'shop.report', 'shop.report.low']
    """
    return topic if priority == "normal" else f"{topic}.{priority}"


class IllegalTransition(PackhorseError):
    """A job can't go from one state to the other; nothing was changed."""


def check_transition(before: JobState | None, after: JobState) -> None:
    """
    Check that *after* may follow *before*.

    >>> check_transition(JobState.ACCEPTED, JobState.RUNNING)
    >>> check_transition(JobState.SUCCEEDED, JobState.RETRYING)
    Traceback (most recent call last):
        ...
    packhorse.core.jobs.IllegalTransition: a job can't go from succeeded to retrying; succeeded is final

    Raises:
        IllegalTransition: It may not; says what may.
    """
    allowed = ALLOWED[before]
    if after not in allowed:
        may = f"only to {', '.join(sorted(allowed))}" if allowed else f"{before} is final"
        raise IllegalTransition(f"a job can't go from {before or 'nothing'} to {after}; {may}")


def pairs() -> tuple[str, ...]:
    """Return the allowed changes as the database's check has them: `accepted>running`; a job's first state is `>accepted`."""
    return tuple(sorted(f"{before or ''}>{after}" for before, found in ALLOWED.items() for after in found))
