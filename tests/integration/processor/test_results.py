"""Results, offsets and failures on a real broker and database."""

import threading
from typing import Any

import psycopg
import pytest
from tests.support.processing import GROUP, Ground, hold, note, noting
from tests.support.wait import eventually

from packhorse.processor import AsyncContext, Context, Processor, Quarantine, Retry, Skip
from packhorse.processor.signals import Point
from packhorse.testing import register_for_tests


def test_messages_take_effect_once_and_offsets_follow(ground: Ground) -> None:
    app = noting(ground.namespace)
    ground.make_topics(app)
    for n in range(20):
        ground.send(n)
    with ground.processing(app):
        ground.until_results(*range(20))
        eventually(lambda: ground.committed() == 20, what="the offset follows")
        ground.send(20)
        ground.until_results(*range(21))
    assert ground.watermark() == 21
    assert ground.committed() == 21
    with ground.processing(app):
        ground.send(21)
        ground.until_results(*range(22))


@pytest.mark.case("P-17")
@pytest.mark.case("T-10")
def test_only_the_failing_member_of_a_group_commit_is_charged(ground: Ground) -> None:
    """Fails when a rollback charges everybody, or the ones after it do not wait (order)."""
    app = noting(ground.namespace)
    ground.make_topics(app)
    sent = [ground.send(n, "fails once" if n == 4 else "") for n in range(10)]
    with ground.processing(app):
        ground.until_results(*range(10))
    assert ground.rows("SELECT message_id, attempt, reason FROM packhorse.failed_attempt") == [
        (sent[4], 1, "failed")
    ]
    assert [ground.outcome(one) for one in sent] == [
        ("done", 2, None, 2) if n == 4 else ("done", 1, None, 1) for n in range(10)
    ]


@pytest.mark.case("T-09")
@pytest.mark.case("T-01")
@pytest.mark.case("T-02")
def test_what_always_fails_ends_in_quarantine_its_key_waits_behind_it_and_other_keys_go_on(
    ground: Ground,
) -> None:
    """Fails when attempts are not counted, or a later message of the key takes effect, also after a restart."""
    app = noting(ground.namespace, retry=Retry(attempts=3, delays=["300ms"]))
    ground.make_topics(app)
    ground.send(0)
    bad = ground.send(1, "fails")
    behind = ground.send(2)
    ground.send(3, key=b"another")
    with ground.processing(app):
        ground.until_outcome(bad, "retry")
        ground.until_results(0, 3)
        ground.until_outcome(bad, "quarantine")
    assert ground.outcome(bad) == ("quarantine", 3, "attempts-exhausted", 3)
    failed = ground.rows("SELECT attempt, reason, error FROM packhorse.failed_attempt ORDER BY attempt")
    assert [row[:2] for row in failed] == [(1, "failed"), (2, "failed"), (3, "failed")]
    assert all("ValueError at" in row[2] and "fails: 1" not in row[2] for row in failed)
    later = ground.send(4)
    ground.send(5, key=b"another")
    with ground.processing(app):
        ground.until_results(0, 3, 5)
        ground.until_outcome(later, "parked")
    assert ground.outcome(behind) == ("parked", 1, None, 1)


@pytest.mark.case("P-01")
def test_the_offset_of_what_failed_is_committed_only_when_its_outcome_and_its_copy_are_safe(
    ground: Ground,
) -> None:
    """Fails when the watermark passes a message before its copy stands in the tier."""
    inside, go = threading.Event(), threading.Event()

    def halt(point: Point) -> None:
        if point is Point.BEFORE_COPY and not inside.is_set():
            inside.set()
            assert go.wait(20)

    app = noting(ground.namespace, retry=Retry(attempts=2, delays=["100ms"]))
    ground.make_topics(app)
    ground.send(0)
    bad = ground.send(1, "fails once")
    ground.send(2, key=b"another")
    with ground.processing(app, signal=halt, concurrency=1):
        assert inside.wait(20)
        assert ground.outcome(bad) == ("retry", 2, "failed", 1)
        assert (ground.watermark() or 0) <= 1
        assert (ground.committed() or 0) <= 1
        go.set()
        ground.until_results(0, 2, 1)
        eventually(lambda: ground.committed() == 3, what="the offset follows")


def test_the_budget_ends_a_message_before_its_attempts(ground: Ground) -> None:
    app = noting(ground.namespace, retry=Retry(attempts=100, delays=["200ms"], budget="600ms"))
    ground.make_topics(app)
    bad = ground.send(1, "fails")
    with ground.processing(app):
        row = ground.until_outcome(bad, "quarantine")
    assert row[2] == "budget-exhausted"
    assert 2 <= row[1] <= 5


@pytest.mark.case("P-14")
@pytest.mark.case("P-15")
def test_a_failing_handler_leaves_neither_rows_nor_follow_ups(ground: Ground) -> None:
    """Fails when follow-ups are written outside the transaction."""
    app = Processor(GROUP)

    @app.handler(ground.message, retry=Retry(attempts=2, delays=["100ms"]))
    def handle(message: Any, ctx: Context) -> None:
        ctx.emit(ground.message(n=message.n + 100), key="k")
        ctx.connection.execute("INSERT INTO result (n) VALUES (%s)", (message.n,))
        if message.what == "fails":
            ctx.connection.execute("INSERT INTO result (nothing) VALUES (1)")

    ground.make_topics(app)
    with psycopg.connect(ground.database) as connection:
        register_for_tests(connection, ground.message)
    bad, good = ground.send(1, "fails"), ground.send(2, key=b"another")
    with ground.processing(app):
        ground.until_outcome(good, "done")
        ground.until_outcome(bad, "quarantine")
    assert ground.outcome(bad) == ("quarantine", 2, "attempts-exhausted", 2)
    assert ground.results() == [2]
    rows = ground.rows(
        "SELECT causation_id, correlation_id, origin FROM packhorse.outbox WHERE causation_id = ANY(%s)",
        [str(bad), str(good)],
    )
    assert rows == [(str(good), str(good), GROUP)]


@pytest.mark.case("P-05")
@pytest.mark.case("T-10")
def test_a_stop_while_a_message_waits_in_its_tier_keeps_its_count(ground: Ground) -> None:
    """Fails when closing commits the tier's read position, or the count lives in memory."""
    app = noting(ground.namespace, retry=Retry(attempts=2, delays=["1s"]))
    ground.make_topics(app)
    ground.send(0)
    bad = ground.send(1, "fails")
    with ground.processing(app):
        ground.until_outcome(bad, "retry")
    assert ground.outcome(bad) == ("retry", 2, "failed", 1)
    with ground.processing(app):
        assert ground.until_outcome(bad, "quarantine")[:2] == ("quarantine", 2)
    assert ground.committed() == 2


@pytest.mark.case("P-06")
@pytest.mark.case("X-09")
def test_a_handler_that_outlasts_the_drain_time_gets_no_outcome(ground: Ground) -> None:
    """Fails when the fence is not asked before the commit: the handler returns when its time is long over."""
    app, returned = Processor(GROUP), threading.Event()
    with hold() as (inside, wait):

        @app.handler(ground.message)
        def handle(message: Any, ctx: Context) -> None:
            note(message, ctx)
            wait()
            returned.set()

        ground.make_topics(app)
        sent = ground.send(0)
        with ground.processing(app, drain_timeout=0.3):
            assert inside.wait(20)
        assert ground.watermark() == 0
        assert ground.committed() in {None, 0}
    assert returned.wait(20)
    eventually(lambda: not lanes(ground), what="the lane has closed its connection")
    assert ground.outcome(sent) is None
    again = Processor(GROUP)
    again.handler(ground.message)(note)
    with ground.processing(again):
        ground.until_results(0)
    assert ground.outcome(sent) == ("done", 1, None, 1)


def lanes(ground: Ground) -> list[Any]:
    """Return the connections of processors."""
    return ground.rows(
        "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND application_name LIKE 'packhorse%%'"
    )


@pytest.mark.case("P-24")
def test_messages_without_a_key_are_processed_and_have_no_order(ground: Ground) -> None:
    """Fails when a null key is decoded, or one that fails parks the others."""
    app = noting(ground.namespace)
    ground.make_topics(app)
    bad = ground.send(9, "fails", key=None)
    for n in range(3):
        ground.send(n, key=None)
    ground.send(3, key=b"\xff\xfe")
    with ground.processing(app):
        eventually(lambda: sorted(ground.results()) == [0, 1, 2, 3], what="all but one are done")
        ground.until_outcome(bad, "quarantine")
    assert ground.rows("SELECT * FROM packhorse.parked_key") == []


def test_skip_and_quarantine_end_a_message_without_its_writes(ground: Ground) -> None:
    app = Processor(GROUP)

    @app.handler(ground.message)
    def handle(message: Any, ctx: Context) -> None:
        note(message, ctx)
        if message.n == 1:
            raise Skip("not ours")
        if message.n == 2:
            raise Quarantine("no-such-airport")

    ground.make_topics(app)
    sent = [ground.send(n, key=b"%d" % n) for n in range(4)]
    with ground.processing(app):
        eventually(lambda: sorted(ground.results()) == [0, 3], what="two are done")
        ground.until_outcome(sent[2], "quarantine")
    assert ground.outcome(sent[1]) == ("skipped", 1, None, 1)
    assert ground.outcome(sent[2]) == ("quarantine", 1, "no-such-airport", 1)


def test_async_handlers_share_the_order_of_their_partition(ground: Ground) -> None:
    app = Processor(GROUP)

    @app.handler(ground.message, retry=Retry(attempts=2, delays=["100ms"]))
    async def handle(message: Any, ctx: AsyncContext) -> None:
        await ctx.connection.execute("INSERT INTO result (id, n) VALUES (%s, %s)", (ctx.id, message.n))
        if message.what == "fails once" and ctx.attempt == 1:
            raise ValueError

    ground.make_topics(app)
    for n in range(6):
        ground.send(n, "fails once" if n == 2 else "")
    with ground.processing(app):
        ground.until_results(0, 1, 2, 3, 4, 5)


def test_an_expired_message_is_skipped(ground: Ground) -> None:
    app = noting(ground.namespace)
    ground.make_topics(app)
    old = ground.send(0, headers={"expires-at": b"2026-01-01T00:00:00.000000Z"})
    ground.send(1, headers={"expires-at": b"2999-01-01T00:00:00.000000Z"})
    ground.send(2, headers={"expires-at": b"whenever"})
    with ground.processing(app):
        ground.until_results(1, 2)
    assert ground.outcome(old) == ("skipped", 0, "expired", 1)


def test_published_twice_is_done_once_and_counted(ground: Ground) -> None:
    app = noting(ground.namespace)
    ground.make_topics(app)
    sent = ground.send(0)
    ground.send(0, message_id=sent)
    ground.send(1)
    with ground.processing(app):
        ground.until_results(0, 1)
        ground.send(0, message_id=sent)
        eventually(lambda: ground.watermark() == 4, what="all are dealt with")
    assert ground.results() == [0, 1]
    assert ground.outcome(sent)[3] == 3  # type: ignore[index]
