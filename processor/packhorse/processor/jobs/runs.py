"""
The runs of jobs that this process has in hand: what the lanes, the contexts of the bodies and the keeper of the leases share.

    claimed ─▶ RUNNING ──the body ends──▶ ENDED ──its end is recorded──▶ forgotten
                  │                        │
                  └──given back, not run───┴─▶ IDLE: its lease is on record, and nobody works under it

A run whose lease is another's by now is `lost`: nothing that is done in its name is written, and whoever asks is told.
"""

import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import UUID

from packhorse.core.errors import OwnershipLost
from packhorse.processor.running.work import Ran

if TYPE_CHECKING:
    from packhorse.producer import Outgoing, Tombstone


class Phase(StrEnum):
    """How far a run has come."""

    RUNNING = "running"
    ENDED = "ended"
    IDLE = "idle"


class Progress(NamedTuple):
    """How far a body says that it is; `total` and `text` may be unknown."""

    done: int
    total: int | None
    text: str | None


@dataclass(slots=True, eq=False)
class JobRun:
    """
    One run of one job, under its lease.

    Attributes:
        job_id: The job.
        token: The lease's.
        attempt: The number of the run, from 1.
        state: The checkpoint that the run begins with; None without one.
        left: Seconds until the job's deadline, as the body begins; None without one.
        request_key: The request key that the job was submitted with.
        phase: How far it has come.
        lost: The lease is another's by now.
        cancel: Why the body should stop: "cancelled", "timeout", "stopping"; None while it should go on.
        progress: What was said last and is not written yet.
        ran: How the body has ended.
        value: What it returned, as JSON text.
        writes: What is to be called in the transaction of the success.
        drafts: Follow-ups that are to be written in it.
        unrecorded: Renewals of the lease since the body has ended, without that being recorded.
    """

    job_id: UUID
    token: UUID
    attempt: int
    state: Any = None
    left: float | None = None
    request_key: str | None = None
    phase: Phase = Phase.RUNNING
    lost: bool = False
    cancel: str | None = None
    progress: Progress | None = None
    ran: Ran | None = None
    value: str | None = None
    writes: list[Callable[[Any], Any]] = field(default_factory=list)
    drafts: list["Outgoing | Tombstone"] = field(default_factory=list)
    unrecorded: int = 0

    @property
    def has_writes(self) -> bool:
        """Return whether something is to be written in the transaction of the success."""
        return bool(self.writes or self.drafts)

    def check_held(self) -> None:
        """
        Check that the lease is still this run's, as far as this process knows.

        Raises:
            OwnershipLost: Another worker has taken the job over.
        """
        if self.lost:
            raise OwnershipLost(
                f"job {self.job_id} was taken over by another worker; nothing more is written here"
            )

    def begin_again(self) -> None:
        """Forget what an earlier run of the body has left, before the body runs."""
        self.phase, self.ran, self.value = Phase.RUNNING, None, None
        self.writes.clear()
        self.drafts.clear()


def abandon(run: JobRun) -> None:
    """Let a run count for nothing whose body does not come back: its lease stays, for whoever records what becomes of it."""
    run.cancel, run.lost, run.phase = run.cancel or "timeout", True, Phase.IDLE


class Runs:
    """The runs in hand; for any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._runs: dict[UUID, JobRun] = {}
        self.stopping = False

    def enter(self, run: JobRun) -> None:
        """Take a run that was claimed."""
        if self.stopping:
            run.cancel = run.cancel or "stopping"
        with self._lock:
            self._runs[run.job_id] = run

    def of(self, job_id: UUID) -> JobRun | None:
        """Return the run of a job, if this process has one."""
        return self._runs.get(job_id)

    def forget(self, runs: Iterable[JobRun]) -> None:
        """Forget runs whose end is on record, or whose lease is gone."""
        with self._lock:
            for run in runs:
                if self._runs.get(run.job_id) is run:
                    del self._runs[run.job_id]

    def held(self) -> list[JobRun]:
        """Return the runs whose lease is to be renewed: all but those that nobody works on."""
        with self._lock:
            return [run for run in self._runs.values() if run.phase is not Phase.IDLE and not run.lost]

    def are_running(self) -> bool:
        """Return whether a body runs whose lease still stands."""
        return any(run.phase is Phase.RUNNING for run in self.held())

    def all(self) -> list[JobRun]:
        """Return all runs."""
        with self._lock:
            return list(self._runs.values())

    def stop(self) -> None:
        """Ask all bodies to stop, those that begin from now on too: the process ends."""
        self.stopping = True
        for run in self.all():
            run.cancel = run.cancel or "stopping"
