"""Ask how jobs stand, and wait for them."""

import asyncio
import threading
from collections.abc import Callable
from itertools import count
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self
from uuid import UUID

from packhorse.core.backoff import Backoff, delay_after
from packhorse.core.clock import SYSTEM_CLOCK, Clock
from packhorse.core.errors import DatabaseUnavailable, SettingsError, UnknownId, UsageError
from packhorse.producer.jobs.reading import Effect, Job, Transition, effect_of, job_of, transition_of
from packhorse.producer.jobs.sql import job_queries_for
from packhorse.producer.rows import checked_id
from packhorse.schemas.conninfo import checked_conninfo

if TYPE_CHECKING:
    from packhorse.producer.jobs.postgres import Reader

POLLING: Final = Backoff(first=0.02, factor=2.0, longest=1.0, spread=0.0)
"""How often a waiting call looks: a quick job is seen at once, and a long one costs a query each second."""


class Jobs:
    """
    Say how jobs stand, from the database that accepted them, on connections of its own.

    Make one and share it between threads and tasks; it connects when it is first asked. A job is seen once the transaction
    that submitted it has committed. The async calls (`aget` and its like) run in a thread.

    Args:
        database_url: libpq URL or connection string; a role with the grants of a writer will do.
        schema: Database schema of the tables.
        connections: Most connections that are open at once.
        timeout: Seconds that one question may wait for a connection.
        clock: Where time comes from.

    Raises:
        SettingsError: An argument is not allowed.
    """

    def __init__(
        self,
        database_url: str,
        *,
        schema: str = "packhorse",
        connections: int = 4,
        timeout: float = 5.0,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        if connections < 1 or timeout <= 0:
            raise SettingsError(
                f"connections={connections} or timeout={timeout:g} is not allowed: connections >= 1, timeout > 0"
            )
        try:
            self._url = checked_conninfo(database_url)
        except ValueError as error:
            raise SettingsError(f"database_url of Jobs: {error}") from None
        self._queries = job_queries_for(schema)
        self._connections, self._timeout, self._clock = connections, timeout, clock
        self._lock = threading.Lock()
        self._made: Reader | None = None

    def get(self, job_id: UUID) -> Job:
        """
        Return how a job stands now.

        Raises:
            UsageError: *job_id* is no UUID.
            UnknownId: This database has accepted no such job, or it was removed since.
            DatabaseUnavailable, NotReady: The database does not answer; a table or right is missing.
        """
        rows = self._reader.rows(self._queries.get, checked_id(job_id))
        if not rows:
            raise _unknown(job_id)
        return job_of(rows[0])

    def wait(self, job_id: UUID, *, timeout: float) -> Job:
        """
        Return how a job stands once it has ended or needs a person; waits for that at most *timeout* seconds.

        Read the state of what comes back: a job that rests has not always succeeded. While the database is away it goes on
        asking. It looks after 20 ms, then less and less often, down to once a second.

        Raises:
            TimeoutError: It is on its way still; names the state.
            UsageError: *timeout* is no number of seconds, or as `get`.
            UnknownId, NotReady: As `get`.
            DatabaseUnavailable: The database did not answer, up to the end.
        """
        deadline = self._clock.monotonic() + _checked_wait(timeout)
        pause = threading.Event()
        for look in count(1):
            delay = self._looked(job_id, look, deadline, timeout)
            if isinstance(delay, Job):
                return delay
            pause.wait(delay)
        raise AssertionError("never gets here")

    def history(self, job_id: UUID) -> list[Transition]:
        """
        Return every change of a job's state, oldest first.

        Raises:
            UsageError, UnknownId, DatabaseUnavailable, NotReady: As `get`.
        """
        rows = self._reader.rows(self._queries.history, checked_id(job_id))
        if not rows:
            raise _unknown(job_id)
        return [transition_of(row) for row in rows]

    def effects(self, job_id: UUID) -> list[Effect]:
        """
        Return the outside effects of a job, in the order of their intents; empty where there is none.

        Raises:
            UsageError, UnknownId, DatabaseUnavailable, NotReady: As `get`.
        """
        rows = self._reader.rows(self._queries.effects, checked_id(job_id))
        if not rows:
            self.get(job_id)  # of a job that is not there nobody knows that it did nothing
        return [effect_of(row) for row in rows]

    async def aget(self, job_id: UUID) -> Job:
        """Return how a job stands now, without blocking the loop; promises and raises what `get` does."""
        return await asyncio.to_thread(self.get, job_id)

    async def await_end(self, job_id: UUID, *, timeout: float) -> Job:
        """Return how a job stands once it rests, without blocking the loop; promises and raises what `wait` does."""
        deadline = self._clock.monotonic() + _checked_wait(timeout)
        for look in count(1):
            delay = await asyncio.to_thread(self._looked, job_id, look, deadline, timeout)
            if isinstance(delay, Job):
                return delay
            await asyncio.sleep(delay)
        raise AssertionError("never gets here")

    async def ahistory(self, job_id: UUID) -> list[Transition]:
        """Return every change of a job's state, without blocking the loop; promises and raises what `history` does."""
        return await asyncio.to_thread(self.history, job_id)

    async def aeffects(self, job_id: UUID) -> list[Effect]:
        """Return the outside effects of a job, without blocking the loop; promises and raises what `effects` does."""
        return await asyncio.to_thread(self.effects, job_id)

    def close(self) -> None:
        """Close the connections."""
        with self._lock:
            if self._made is not None:
                self._made.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def _reader(self) -> "Reader":
        with self._lock:
            if self._made is None:
                from packhorse.producer.jobs.postgres import Reader

                self._made = Reader(self._url, connections=self._connections, timeout=self._timeout)
            return self._made

    def _looked(self, job_id: UUID, look: int, deadline: float, timeout: float) -> Job | float:
        return looked(
            lambda: self.get(job_id), look, left=lambda: deadline - self._clock.monotonic(), timeout=timeout
        )


def looked(get: Callable[[], Job], look: int, *, left: Callable[[], float], timeout: float) -> Job | float:
    """
    Return the job if it rests, or else the seconds until look number *look* + 1; *left* tells those until the deadline.

    The last look falls on the deadline, not before it.

    Raises:
        TimeoutError: No time is left; names the state and *timeout*.
        DatabaseUnavailable: No time is left, and the database did not answer.
    """
    job: Job | None = None
    trouble: DatabaseUnavailable | None = None
    try:
        job = get()
    except DatabaseUnavailable as error:
        trouble = error
    if job is not None and job.rests:
        return job
    if (remaining := left()) > 0:
        return min(delay_after(look, POLLING, jitter=0.0), remaining)
    if trouble is not None:
        raise trouble
    assert job is not None
    raise TimeoutError(
        f"job {job.id} is {job.state} after {timeout:g} s, and on its way; ask again later with its id"
    )


def _checked_wait(timeout: object) -> float:
    if isinstance(timeout, (int, float)) and timeout >= 0:  # NaN is neither
        return timeout
    raise UsageError(
        f"timeout={timeout!r} is not allowed: seconds, 0 or more; nobody can promise that a job ends"
    )


def _unknown(job_id: UUID) -> UnknownId:
    return UnknownId(
        f"job {job_id} is not known here: it was accepted by another database, its transaction has not committed, or it was "
        "removed after its time"
    )
