"""What the pages need: reports are asked for, looked up and cancelled, each for the person whose they are."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from uuid import UUID

from psycopg_pool import AsyncConnectionPool

from examples.reports import render, tables
from examples.reports.messages import ReportRequest, Shows
from examples.reports.ordering import OUTBOX, ask, ask_by_api
from examples.reports.people import Sessions
from packhorse.core.clock import SYSTEM_CHANCE
from packhorse.core.errors import InvalidMessage
from packhorse.core.jobs import IllegalTransition
from packhorse.producer import Jobs
from packhorse.producer.jobs.web import Caller, JobsApp


class Desk:
    """
    What the pages do; each call is for one request.

    Attributes:
        sessions: Who is signed in.
        api: The same over JSON, to be mounted at /jobs.
    """

    def __init__(self, database_url: str, *, late_after: float) -> None:
        self.sessions = Sessions()
        self._jobs = Jobs(database_url)
        self._pool = AsyncConnectionPool(database_url, min_size=0, max_size=4, open=False)
        self.api = JobsApp(
            database_url,
            submit={"reports": ask_by_api},
            authorise=self.sessions.authorise,
            links=lambda job: {"result": f"/reports/{job.id}.csv", "request": f"/reports/{job.id}"},
            late_after={ReportRequest: late_after},
            outbox=OUTBOX,
        )

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """Hold the connections for the block."""
        async with self._pool, self.api:
            yield
        self._jobs.close()

    async def front(self, caller: Caller, error: str | None = None) -> str:
        """Return the page with the form; each has a request key of its own, so that a form sent twice is one report."""
        async with self._pool.connection() as connection:
            rows = await (await connection.execute(tables.MINE, (caller.actor,))).fetchall()
        key = SYSTEM_CHANCE.secret(12).hex()
        return render.front(
            person=caller.actor, request_key=key, reports=[(row[0], row[1]) for row in rows], error=error
        )

    async def ask(self, caller: Caller, form: Mapping[str, str]) -> UUID:
        """Ask for what the form says; raise InvalidMessage where it says something that is not allowed."""
        if not form.get("year", "").isdecimal() or form.get("shows") not in set(Shows):
            raise InvalidMessage("the form is not filled in as it should be")
        request = ReportRequest(
            title=form.get("title", ""),
            person=caller.actor,
            year=int(form["year"][:9]),
            shows=Shows(form["shows"]),
        )
        async with self._pool.connection() as connection:
            handle = await ask(
                connection, request, caller=caller, request_key=form.get("request_key") or None
            )
        return handle.id

    async def standing(self, caller: Caller, job_id: UUID) -> str | None:
        """Return the page of a report; None when *caller* has asked for none of this id."""
        async with self._pool.connection() as connection:
            row = await (await connection.execute(tables.TITLE, (job_id, caller.actor))).fetchone()
        if row is None:
            return None
        return render.standing(row[0], self.api.shown(await self._jobs.aget(job_id), "/jobs"))

    async def cancel(self, caller: Caller, job_id: UUID) -> bool:
        """Cancel a report of the caller's; return whether there is one. One that is over stays as it is."""
        async with self._pool.connection() as connection:
            row = await (await connection.execute(tables.TITLE, (job_id, caller.actor))).fetchone()
            if row is None:
                return False
            with suppress(IllegalTransition):  # the page says how it has ended
                await OUTBOX.acancel(connection, job_id, actor=caller.actor)
        return True

    async def csv(self, caller: Caller, job_id: UUID) -> str | None:
        """Return a report; None before it is ready, and to everybody else."""
        async with self._pool.connection() as connection:
            row = await (await connection.execute(tables.CSV, (job_id, caller.actor))).fetchone()
        return None if row is None else row[0]
