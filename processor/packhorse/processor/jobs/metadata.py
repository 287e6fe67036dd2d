"""Who the job in hand is, and what its body may say and ask without waiting for the database."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any
from uuid import UUID

from packhorse.core.errors import OwnershipLost, PackhorseError, UsageError
from packhorse.core.logs import Log
from packhorse.core.message import TypedMessage
from packhorse.core.text import inert
from packhorse.processor.jobs.values import MOST_CHECKPOINT, MOST_PROGRESS, json_of
from packhorse.processor.metadata import Metadata
from packhorse.processor.record import Delivery

if TYPE_CHECKING:
    from packhorse.processor.jobs.driving import Work
    from packhorse.processor.jobs.runs import JobRun
    from packhorse.processor.jobs.tools import JobTools
    from packhorse.producer import Outgoing


class JobCancelled(PackhorseError):
    """Raised by `check` where somebody wants the job to stop; let it out of the body, and the job is cancelled or given back."""


class JobMetadata(Metadata):
    """What contexts of both kinds know and say without asking the database."""

    __slots__ = ("_run", "_tools")

    def __init__(self, delivery: Delivery, run: JobRun, tools: JobTools, *, group: str, log: Log) -> None:
        super().__init__(delivery, group=group, attempt=run.attempt, log=log)
        self._run = run
        self._tools = tools

    @property
    def state(self) -> Any:
        """Return what was given to `checkpoint` last, in whatever run of the job; None when nothing was."""
        return self._run.state

    @property
    def request_key(self) -> str | None:
        """Return the request key that the job was submitted with."""
        return self._run.request_key

    @property
    def cancelled(self) -> bool:
        """Return whether the body should stop: the job is cancelled, its time is over, the process ends, or its lease is lost."""
        return self._run.cancel is not None or self._run.lost

    @property
    def stopping(self) -> bool:
        """Return whether the process ends: keep a checkpoint, and call `check`; the job then goes on elsewhere, uncharged."""
        return self._run.cancel == "stopping"

    def check(self) -> None:
        """
        Go on, or end the body here when it should stop; call it where stopping is safe.

        Raises:
            JobCancelled: It should stop. Let it out: a cancelled job is then cancelled, one whose time is over has failed, and one
                whose process ends is given back to be gone on with elsewhere.
            OwnershipLost: Another worker has taken the job over.
        """
        self._run.check_held()
        if self._run.cancel is not None:
            raise JobCancelled(self._run.cancel)

    def progress(self, done: int, total: int | None = None, text: str | None = None) -> None:
        """
        Say how far the body is, for whoever looks; it is written within a second or two, and costs nothing here.

        Args:
            done: Of `total`, in units of the body's own.
            total: None: unknown.
            text: For people, at most 200 characters; no personal data.

        Raises:
            UsageError: A number is below zero or no whole one.
        """
        from packhorse.processor.jobs.runs import Progress

        for name, value in (("done", done), ("total", total)):
            if value is not None and (
                isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 1 << 62
            ):
                raise UsageError(f"progress({name}={value!r}) is not allowed: a whole number from 0")
        if text is not None and not isinstance(text, str):
            raise UsageError(f"progress(text=…) is {type(text).__name__}; pass text")
        self._run.progress = Progress(done, total, None if text is None else inert(text, limit=MOST_PROGRESS))

    def emit(
        self,
        message: TypedMessage,
        *,
        key: str | None,
        headers: Mapping[str, str] | None = None,
        expires_at: datetime | None = None,
    ) -> UUID:
        """
        Write a follow-up in the transaction of the job's success, and return its id; a run that fails writes none.

        The id is derived from the job's, the group and how many follow-ups came before it in this run, as `Context.emit` does.
        """
        draft: Outgoing = self._follow_up(message, key, headers, expires_at)
        self._run.drafts.append(draft)
        return draft.id or self.id

    def _checkpointed(self, state: object) -> Work[None]:
        """Keep *state*, with patience while the database is away."""
        from packhorse.processor.jobs.driving import patiently

        run = self._run
        run.check_held()
        text = json_of(state, what="checkpoint", most=MOST_CHECKPOINT)
        store = self._tools.store
        if not (yield from patiently(lambda: store.checkpoint_job(run.job_id, run.token, text))):
            run.lost = True
            raise OwnershipLost(
                f"job {run.job_id} was taken over by another worker; its checkpoint is not written"
            )
        run.state = state
