"""The test helper that runs a job's body, on a real database and without one."""

import asyncio
from typing import Any

import psycopg
import pytest
from tests.support.accounts import AccountOpened, AmountMoved

from packhorse.core.errors import UsageError
from packhorse.processor import AsyncJobContext, Context, JobContext, Processor, Quarantine, Retry, Skip
from packhorse.processor.jobs.effects.model import EffectConflict
from packhorse.producer import Outgoing
from packhorse.testing import arun_job, run_handler, run_job

JOB = AmountMoved(account="a", amount=3)
OPENED = AccountOpened(account="a", owner="Ada", limit=0)


def app_of(body: Any) -> Processor:
    app = Processor("jobs")
    app.job(AmountMoved)(body)
    return app


def test_a_body_is_run_with_what_it_kept(url: str) -> None:
    calls: list[str] = []

    def called(what: str, answer: object) -> object:
        calls.append(what)
        return answer

    def body(job: AmountMoved, ctx: JobContext) -> dict[str, object]:
        ctx.progress(1, 2, "half")
        fetched = ctx.step("fetch", lambda: called("fetch", 7))
        answer = ctx.effect("pay", lambda key: called(key, "paid"), timeout="5s")
        if ctx.state is None:
            ctx.checkpoint({"seen": ctx.attempt})
            raise Retry(after="5s")
        ctx.on_success(lambda c: c.execute("INSERT INTO business VALUES (%s)", (job.amount,)))
        ctx.emit(AmountMoved(account="b", amount=1), key="b")
        return {"fetched": fetched, "answer": answer, "tenant": ctx.tenant, "state": ctx.state}

    app = app_of(body)
    with psycopg.connect(url) as connection:
        first = run_job(app, JOB, connection=connection)
        assert (first.state, first.after, first.emitted) == ("retrying", 5.0, ())
        then = run_job(
            app,
            Outgoing(message=JOB, key=None, tenant="north"),
            connection=connection,
            kept=first.kept,
            attempt=2,
        )
        assert then.state == "succeeded"
        assert then.result == {"fetched": 7, "answer": "paid", "tenant": "north", "state": {"seen": 1}}
        assert [one.message for one in then.emitted] == [AmountMoved(account="b", amount=1)]
        assert connection.execute("SELECT n FROM business").fetchall() == [(3,)]
        connection.rollback()
    assert calls == ["fetch", then.kept.idempotency_keys["pay"]]
    assert then.kept.progress == (1, 2, "half")


@pytest.mark.parametrize(
    ("error", "state", "reason"),
    [(Skip(), "cancelled", None), (Quarantine("no-account"), "quarantined", "no-account")],
)
def test_a_body_says_how_it_ends(error: Exception, state: str, reason: str | None) -> None:
    def body(job: AmountMoved, ctx: JobContext) -> None:
        raise error

    worked = run_job(app_of(body), JOB)
    assert (worked.state, worked.reason) == (state, reason)


def test_a_cancelled_body_ends_where_it_looks() -> None:
    def body(job: AmountMoved, ctx: JobContext) -> str:
        assert ctx.cancelled
        ctx.check()
        return "never"

    worked = run_job(app_of(body), JOB, cancelled=True)
    assert (worked.state, worked.result) == ("cancelled", None)


def test_an_async_body_is_awaited() -> None:
    async def body(job: AmountMoved, ctx: AsyncJobContext) -> int:
        await ctx.checkpoint({"page": 1})

        async def call(key: str) -> str:
            return key

        await ctx.effect("pay", call)
        return await ctx.step("one", lambda: 1)

    worked = asyncio.run(arun_job(app_of(body), JOB))
    assert (worked.state, worked.result, worked.kept.state) == ("succeeded", 1, {"page": 1})


REFUSED: list[tuple[Any, str]] = [
    (lambda ctx: ctx.step("", lambda: 1), "the name of a job's step is ''"),
    (lambda ctx: ctx.step("one", lambda: {1, 2}), "the result of step one is no JSON"),
    (lambda ctx: ctx.step("one", lambda: "x" * 65_536), "the limit is 65536"),
    (lambda ctx: ctx.effect("n" * 201, lambda key: 1), "the name of a job's effect is"),
    (lambda ctx: ctx.effect("pay", lambda key: 1, timeout="0s"), "timeout='0s' is not allowed"),
    (lambda ctx: ctx.effect("pay", lambda: 1), "call.* is called with the idempotency key"),
    (lambda ctx: ctx.effect("pay", None), "call is NoneType"),
    (lambda ctx: ctx.effect("pay", lambda key: 1, verify=5), "verify is int"),
    (
        lambda ctx: ctx.effect("pay", lambda key: 1, refused=("ValueError",)),
        "refused: 'ValueError' is not allowed",
    ),
    (lambda ctx: ctx.effect("pay", lambda key: 1, arguments=object()), "its arguments are nothing that JSON"),
    (lambda ctx: ctx.effect("pay", lambda key: object()), "the answer of effect pay is no JSON"),
    (lambda ctx: ctx.checkpoint(object()), "checkpoint is no JSON"),
    (lambda ctx: ctx.effect("pay", lambda key: ctx.effect("pay", lambda key: 1)), "is being called already"),
]


def test_a_progress_that_is_no_text_is_refused_as_such() -> None:
    """Fails when the body gets an error from somewhere inside."""

    def body(job: AmountMoved, ctx: JobContext) -> None:
        ctx.progress(1, 2, b"half")  # type: ignore[arg-type]

    with pytest.raises(UsageError, match="is bytes; pass text"):
        run_job(app_of(body), JOB)


@pytest.mark.parametrize(("asks", "about"), REFUSED)
def test_what_a_worker_refuses_is_refused(asks: Any, about: str) -> None:
    """Fails when a body is green in a test that fails for good under a worker."""

    async def awaited(job: AmountMoved, ctx: AsyncJobContext) -> Any:
        return await asks(ctx)

    def plain(job: AmountMoved, ctx: JobContext) -> Any:
        return asks(ctx)

    with pytest.raises(UsageError, match=about):
        run_job(app_of(plain), JOB)
    with pytest.raises(UsageError, match=about):
        asyncio.run(arun_job(app_of(awaited), JOB))


def test_an_effect_with_other_arguments_is_a_conflict_in_the_next_run_too() -> None:
    """Fails when the same key with other arguments gives the first answer, or is called again."""
    calls: list[int] = []

    def body(job: AmountMoved, ctx: JobContext) -> Any:
        return ctx.effect("pay", lambda key: calls.append(1), arguments={"attempt": ctx.attempt})

    first = run_job(app_of(body), JOB)
    assert run_job(app_of(body), JOB, kept=first.kept).state == "succeeded"
    with pytest.raises(EffectConflict, match="is on record for other arguments"):
        run_job(app_of(body), JOB, kept=first.kept, attempt=2)
    assert calls == [1]


def test_what_is_kept_comes_back_as_json_gives_it() -> None:
    """Fails when a test is shown a tuple or a number as key, where a worker gives a list and text."""
    told: list[Any] = []

    def body(job: AmountMoved, ctx: JobContext) -> Any:
        told.extend([ctx.state, ctx.step("one", lambda: (1, 2)), ctx.effect("pay", lambda key: {1: (2,)})])
        ctx.checkpoint((3,))
        return {4: (5,)}

    worked = run_job(app_of(body), JOB)
    again = run_job(app_of(body), JOB, kept=worked.kept)
    assert told == [None, [1, 2], {"1": [2]}, [3], [1, 2], {"1": [2]}]
    assert (worked.result, again.result) == ({"4": [5]}, {"4": [5]})


def test_handlers_and_bodies_are_told_apart() -> None:
    def body(job: AmountMoved, ctx: JobContext) -> None: ...
    def handle(message: AccountOpened, ctx: Context) -> None: ...

    app = app_of(body)
    app.handler(AccountOpened)(handle)
    with pytest.raises(UsageError, match="use `run_job`"):
        run_handler(app, JOB)
    with pytest.raises(UsageError, match="use `run_handler`"):
        run_job(app, OPENED)
    with pytest.raises(UsageError, match="use `run_job"):
        asyncio.run(arun_job(app, JOB))
