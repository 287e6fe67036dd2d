"""What an outbox does with jobs: each call runs its steps on the caller's own connection."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Unpack
from uuid import UUID

from packhorse.producer.connections import async_driver, sync_driver
from packhorse.producer.jobs.cancelling import cancelled
from packhorse.producer.jobs.drafts import Cancelling, JobDraft, JobExtra, JobHandle, M

if TYPE_CHECKING:
    from packhorse.producer.connections import Async, Sync
    from packhorse.producer.jobs.submitting import Submitter


class JobCalls:
    """Submit and cancel jobs in the caller's own transaction: with its commit they are there, with its rollback they never were."""

    __slots__ = ()
    _submitter: Submitter

    def submit(self, connection: Sync, job: M, **extra: Unpack[JobExtra]) -> JobHandle[M]:
        """
        Accept a job in the transaction of *connection*, and return its id at once; the work is done after the commit.

        The input is encoded, and everything checked, before anything is written: after an InvalidMessage or
        SchemaNotRegistered the transaction is as usable as before. One round trip; one or two more for the first job of a
        type, and where the request key or name is taken.

        With a request key, callers that race wait for each other, and all are given one job. In REPEATABLE READ and
        SERIALIZABLE the database tells them to try again instead, with the driver's own error. With *one_waiting* the job
        that is given back does not begin before this transaction ends, so its run sees what the caller has written.

        Args:
            connection: As for `emit`.
            job: What is to be done: an object of a class that `packhorse schemas generate` wrote.
            extra: request_key, tenant, priority, not_before, expires_at, one_waiting, one_running, actor, correlation_id,
                causation_id, headers, id: see `JobExtra`.

        Raises:
            RequestKeyConflict: The request key stands for a job with another input; nothing was written.
            InvalidMessage, ValueMismatch, PayloadTooLarge: Something about the job breaks a rule.
            SchemaNotRegistered, UsageError, NotReady: As `emit`.
        """
        return self._submit(connection, [JobDraft(input=job, **extra)])[0]

    async def asubmit(self, connection: Async, job: M, **extra: Unpack[JobExtra]) -> JobHandle[M]:
        """Accept a job in the transaction of an async *connection*; promises and raises what `submit` does."""
        return (await self._asubmit(connection, [JobDraft(input=job, **extra)]))[0]

    def submit_many(self, connection: Sync, jobs: Iterable[JobDraft[M]]) -> list[JobHandle[M]]:
        """
        Accept *jobs*, all or none, and return their handles in the same order.

        One round trip; three where some have request keys or names. Raises what `submit` does.
        """
        drafts = list(jobs)
        return self._submit(connection, drafts) if drafts else []

    async def asubmit_many(self, connection: Async, jobs: Iterable[JobDraft[M]]) -> list[JobHandle[M]]:
        """Accept *jobs* on an async *connection*; promises and raises what `submit_many` does."""
        drafts = list(jobs)
        return await self._asubmit(connection, drafts) if drafts else []

    def cancel(
        self, connection: Sync, job_id: UUID, *, why: str | None = None, actor: str | None = None
    ) -> Cancelling:
        """
        Cancel a job in the transaction of *connection*: it is so with the commit, and was never so with a rollback.

        A job that waits is cancelled at once. The worker of one that runs is told, and stops where its code looks; how it
        ends shows in its state. A job that was cancelled before stays so.

        Args:
            connection: As for `emit`.
            job_id: Its id.
            why: For the record; 1 to 500 characters, without anything personal.
            actor: Who asks; the current `message_context` says it if this is left out.

        Raises:
            UnknownId: This database has accepted no such job.
            IllegalTransition: It has ended otherwise, or waits for a person, who may discard it.
            InvalidMessage, UsageError, NotReady: An argument is not allowed; as `emit`.
        """
        from packhorse.producer import postgres

        driver = sync_driver(connection)
        steps = cancelled(self._submitter, postgres.database_of(driver), job_id, why=why, actor=actor)
        return postgres.run(driver, steps)

    async def acancel(
        self, connection: Async, job_id: UUID, *, why: str | None = None, actor: str | None = None
    ) -> Cancelling:
        """Cancel a job on an async *connection*; promises and raises what `cancel` does."""
        from packhorse.producer import postgres

        driver = await async_driver(connection)
        steps = cancelled(self._submitter, postgres.database_of(driver), job_id, why=why, actor=actor)
        return await postgres.arun(driver, steps)

    def _submit(self, connection: Sync, drafts: Sequence[JobDraft[M]]) -> list[JobHandle[M]]:
        from packhorse.producer import postgres

        with self._submitter.span(drafts):
            driver = sync_driver(connection)
            return postgres.run(driver, self._submitter.submitted(postgres.database_of(driver), drafts))

    async def _asubmit(self, connection: Async, drafts: Sequence[JobDraft[M]]) -> list[JobHandle[M]]:
        from packhorse.producer import postgres

        with self._submitter.span(drafts):
            driver = await async_driver(connection)
            steps = self._submitter.submitted(postgres.database_of(driver), drafts)
            return await postgres.arun(driver, steps)
