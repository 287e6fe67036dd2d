"""The fence of a job's run: each write of it holds only while the job runs under its token; no I/O here."""

from typing import Protocol
from uuid import UUID

from packhorse.core.errors import OwnershipLost
from packhorse.processor.storing.steps import Answer


class Run(Protocol):
    """
    One run of a job.

    Attributes:
        job_id: The job.
        token: Of its lease.
        attempt: Number of the run, from 1.
        lost: Whether this process knows that somebody else has the job by now.
    """

    @property
    def job_id(self) -> UUID: ...
    @property
    def token(self) -> UUID: ...
    @property
    def attempt(self) -> int: ...
    @property
    def lost(self) -> bool: ...


def written(run: Run, answer: Answer) -> bool:
    """
    Return whether a fenced statement found what it was to change.

    Raises:
        OwnershipLost: The run has lost its job, and nothing was written.
    """
    owned, wrote = answer.rows[0]
    check_owned(run, bool(owned))
    return bool(wrote)


def check_owned(run: Run, owned: bool) -> None:
    """
    Check what the database, or the run itself, says of its lease.

    Raises:
        OwnershipLost: The job was taken over, cancelled or ended.
    """
    if not owned:
        raise OwnershipLost(
            f"job {run.job_id}: another worker has it by now, or it has ended; this run writes nothing more"
        )
