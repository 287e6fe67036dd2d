"""The ASGI application: submit, read and cancel jobs."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Mapping
from types import TracebackType
from typing import Any, Self, TypeVar
from uuid import UUID

from packhorse.core import logs
from packhorse.core.clock import SYSTEM_CHANCE, SYSTEM_CLOCK, Chance, Clock
from packhorse.core.errors import RequestKeyConflict, SettingsError, UnknownId, UsageError
from packhorse.core.jobs import IllegalTransition
from packhorse.core.message import TypedMessage
from packhorse.producer.jobs.drafts import Cancelling, JobHandle
from packhorse.producer.jobs.reading import Job
from packhorse.producer.jobs.status import Jobs
from packhorse.producer.jobs.web import showing
from packhorse.producer.jobs.web.answers import FORBIDDEN, NO_SUCH_JOB, OTHER_INPUT, Answer, problem
from packhorse.producer.jobs.web.model import Act, Asked, Authorise, Caller, Links, Make, Order, header_of
from packhorse.producer.jobs.web.requests import (
    Receive,
    Scope,
    Send,
    Target,
    check_json,
    checked_kind,
    object_of,
    read_body,
    request_key_of,
    seconds_of,
    target_of,
    why_of,
)
from packhorse.producer.jobs.web.serving import answered, live, sent
from packhorse.producer.jobs.web.waiting import until
from packhorse.producer.outbox import Outbox
from packhorse.schemas.binding import message_type

T = TypeVar("T")
_log = logs.logger("jobs")


class JobsApp:
    """
    Submit, read and cancel jobs over HTTP; a plain ASGI application, to be mounted in another one or served by itself.

    | request | answer |
    |---|---|
    | `POST /<kind>`, a JSON object | 202, the job's address in `Location`; with `Idempotency-Key`, the same one for the same request |
    | `GET /<id>`, with `?wait=<seconds>` | 200, how it stands, with an `ETag`; waits for its end, or for a change since `If-None-Match` |
    | `POST /<id>/cancel`, `{}` or `{"why": "…"}` | 200, cancelled; 202, its worker is asked to stop; 409, there is nothing to cancel |

    What goes wrong is a problem by RFC 9457. Nothing is answered but 403 until *authorise* is given.

    Enter it (`async with app:`), or call `close` at the end: a server tells a mounted application neither.

    Args:
        database_url: libpq URL or connection string; a role with the grants of a writer will do.
        submit: The kinds of jobs that may be submitted, by their names in addresses: small letters, digits and hyphens. Each is
            a message class, whose fields the body then has, or an async function that submits the job of an `Order`, in the job's
            own transaction.
        authorise: Says who sent a request, if they may do what it asks; see `Asked`. One that is not async must not block.
        links: Names further addresses of a job: `result` is shown once it has succeeded, `request` leads to what it came from.
        late_after: By the class of a job's input, the seconds after which one that is not over is shown as late.
        outbox: What jobs are submitted with.
        max_body_bytes: Largest body.
        max_wait: Longest time that `wait` has an effect for, in seconds.
        max_waiting: How many requests may wait at once; one more is answered at once.
        connections: Most connections that are open at once, for reading and for writing each.
        timeout: Seconds that a request may wait for a connection.
        clock, chance: Where times and the numbers of errors come from.

    Raises:
        SettingsError: An argument is not allowed.
    """

    def __init__(
        self,
        database_url: str,
        *,
        submit: Mapping[str, type[TypedMessage] | Make] | None = None,
        authorise: Authorise | None = None,
        links: Links | None = None,
        late_after: Mapping[type[TypedMessage], float] | None = None,
        outbox: Outbox | None = None,
        max_body_bytes: int = 1 << 20,
        max_wait: float = 30.0,
        max_waiting: int = 100,
        connections: int = 4,
        timeout: float = 5.0,
        clock: Clock = SYSTEM_CLOCK,
        chance: Chance = SYSTEM_CHANCE,
    ) -> None:
        from packhorse.producer.jobs.web.postgres import Writers

        if max_body_bytes < 1 or max_wait < 0 or max_waiting < 0:
            raise SettingsError(
                f"max_body_bytes={max_body_bytes}, max_wait={max_wait:g} or max_waiting={max_waiting} is not allowed: at least "
                "1, 0 and 0"
            )
        self._outbox = outbox or Outbox()
        self._jobs = Jobs(
            database_url, schema=self._outbox.schema, connections=connections, timeout=timeout, clock=clock
        )
        self._writers = Writers(database_url, connections=connections, timeout=timeout)
        self._make = {checked_kind(kind): _maker(one) for kind, one in (submit or {}).items()}
        self._authorise, self._links = authorise, links
        self._late = {message_type(cls).type: seconds for cls, seconds in (late_after or {}).items()}
        self._max_body_bytes, self._max_wait, self._free = max_body_bytes, max_wait, max_waiting
        self._clock, self._chance = clock, chance
        if authorise is None:
            _log.warning("no authorise was given: every request for a job is answered with 403")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] == "lifespan":
            await live(receive, send, self.close)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1003, "reason": "jobs are asked for over HTTP"})
        else:
            answer = await answered(lambda: self._answer(scope, receive), self._chance)
            await sent(send, answer, head=scope["method"] == "HEAD")

    async def close(self) -> None:
        """Close the connections; may be called again."""
        await self._writers.close()
        await asyncio.to_thread(self._jobs.close)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def shown(self, job: Job, base: str) -> dict[str, Any]:
        """
        Return what `GET` answers of *job*, for pages that an application makes itself.

        Args:
            job: As `Jobs.get` returns it; whether who asks may see it is for you to say.
            base: Where this application is mounted, such as "/jobs".
        """
        more = {} if self._links is None else self._links(job)
        late = showing.is_late(job, after=self._late.get(job.type), now=self._clock.now())
        return showing.shown_job(job, late=late, links=showing.links_of(job, base, more))

    async def _answer(self, scope: Scope, receive: Receive) -> Answer:
        if self._authorise is None:
            return FORBIDDEN
        target = target_of(scope)
        if target.act is Act.SUBMIT:
            return await self._submit(target, scope, receive)
        assert target.job_id is not None
        if target.act is Act.READ:
            return await self._read(target, target.job_id, scope, receive)
        return await self._cancel(target, target.job_id, scope, receive)

    async def _submit(self, target: Target, scope: Scope, receive: Receive) -> Answer:
        caller = await self._caller(Asked(act=Act.SUBMIT, kind=target.kind, job=None, scope=scope))
        if caller is None:
            return FORBIDDEN
        make = self._make.get(target.kind or "")
        if make is None:
            return problem(
                404, f"jobs of this kind are not submitted here; kinds: {', '.join(self._make) or 'none'}"
            )
        check_json(scope)
        key = request_key_of(scope)
        body = object_of(await read_body(scope, receive, limit=self._max_body_bytes))
        try:
            handle = await self._submitted(make, body, caller, key, scope)
        except RequestKeyConflict as error:
            return await self._conflict(error.existing, target, scope)
        if handle.is_new:
            return showing.accepted_answer(handle, target.base)
        job = await self._readable(handle.id, scope)
        return problem(409, OTHER_INPUT) if job is None else self._again(job, target.base)

    async def _submitted(
        self, make: Make, body: Mapping[str, Any], caller: Caller, key: str | None, scope: Scope
    ) -> JobHandle[Any]:
        async with self._writers.transaction() as connection:
            order = Order(
                body=body,
                caller=caller,
                request_key=key,
                connection=connection,
                outbox=self._outbox,
                scope=scope,
            )
            handle = await make(order)
            if not isinstance(handle, JobHandle):
                raise UsageError(
                    f"a function of submit= returned {type(handle).__name__}; return the handle of the job"
                )
            return handle

    async def _conflict(self, existing: UUID, target: Target, scope: Scope) -> Answer:
        job = await self._readable(existing, scope)
        more = None if job is None else {"links": {"existing": f"{target.base}/{job.id}"}}
        return problem(409, OTHER_INPUT, more=more)

    def _again(self, job: Job, base: str) -> Answer:
        return showing.again_answer(job, base, self._retry(job))

    async def _read(self, target: Target, job_id: UUID, scope: Scope, receive: Receive) -> Answer:
        seconds = seconds_of(scope, most=self._max_wait)
        job = await self._readable(job_id, scope)
        if job is None:
            return NO_SUCH_JOB
        known = header_of(scope, "if-none-match")
        if seconds and self._free > 0:
            self._free -= 1
            try:
                job = await self._waited(job, target.base, known, receive, seconds)
            finally:
                self._free += 1
        return self._shown(job, target.base, known=known)

    async def _waited(self, job: Job, base: str, known: str | None, receive: Receive, seconds: float) -> Job:
        """Return the job once it is over, or another than *known*; without *known* a person's turn ends the wait too."""

        def enough(job: Job) -> bool:
            if known is None or job.finished_at is not None:
                return job.rests
            return self._shown(job, base, known=known).status != 304

        return await until(
            enough, job, lambda: self._jobs.aget(job.id), receive, seconds=seconds, clock=self._clock
        )

    async def _cancel(self, target: Target, job_id: UUID, scope: Scope, receive: Receive) -> Answer:
        job = await self._found(job_id)
        caller = await self._caller(Asked(act=Act.CANCEL, kind=None, job=job, scope=scope))
        if job is None or caller is None or not _is_of(job, caller):
            return NO_SUCH_JOB if await self._readable(job_id, scope) is None else FORBIDDEN
        check_json(scope)
        why = why_of(await read_body(scope, receive, limit=self._max_body_bytes))
        try:
            async with self._writers.transaction() as connection:
                came = await self._outbox.acancel(connection, job_id, why=why, actor=caller.actor)
            job = await self._jobs.aget(job_id)
        except UnknownId:
            return NO_SUCH_JOB
        except IllegalTransition:
            return problem(409, showing.refusal(await self._jobs.aget(job_id)))
        return self._shown(job, target.base, status=202 if came is Cancelling.ASKED else 200)

    async def _caller(self, asked: Asked) -> Caller | None:
        assert self._authorise is not None
        caller = await _awaited(self._authorise(asked))
        if caller is not None and not isinstance(caller, Caller):
            raise UsageError(f"authorise returned {type(caller).__name__}; return a Caller, or None")
        return caller

    async def _found(self, job_id: UUID) -> Job | None:
        try:
            return await self._jobs.aget(job_id)
        except UnknownId:
            return None

    async def _readable(self, job_id: UUID, scope: Scope) -> Job | None:
        """Return the job if it is there and whoever asks may read it."""
        job = await self._found(job_id)
        caller = await self._caller(Asked(act=Act.READ, kind=None, job=job, scope=scope))
        return job if job is not None and caller is not None and _is_of(job, caller) else None

    def _shown(self, job: Job, base: str, *, status: int = 200, known: str | None = None) -> Answer:
        return showing.job_answer(status, self.shown(job, base), self._retry(job), known=known)

    def _retry(self, job: Job) -> int | None:
        return showing.retry_after(job, now=self._clock.now())


def _maker(given: type[TypedMessage] | Make) -> Make:
    if not isinstance(given, type):
        return given
    message_type(given)  # a class that is none is to be found at the start
    return lambda order: order.submit(order.read(given))


async def _awaited(value: T | Awaitable[T]) -> T:
    return await value if inspect.isawaitable(value) else value


def _is_of(job: Job, caller: Caller) -> bool:
    return caller.tenant is None or caller.tenant == job.tenant
