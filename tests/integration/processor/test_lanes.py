"""Lanes by key on a real broker and database: order, overlap, slow ones, and what a restart finds."""

import threading
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import psycopg
import pytest
from tests.support.cli import packhorse
from tests.support.processing import GROUP, Ground, Running, hold, note
from tests.support.wait import eventually

from packhorse.core.clock import SYSTEM_CLOCK
from packhorse.processor import Context, Processor, Retry
from packhorse.processor.clients import admin_properties
from packhorse.processor.kafka.admin import BrokerQuestions
from packhorse.processor.partition.state import PartitionState
from packhorse.processor.settings import ProcessorSettings


def state_of(running: Running, ground: Ground) -> PartitionState:
    return running.composed.loop.states[ground.topic, 0]


@pytest.fixture
def spans(ground: Ground) -> Iterator[str]:
    """Provide the database with a table of who ran from when to when."""
    with psycopg.connect(ground.database, autocommit=True) as connection:
        connection.execute("CREATE TABLE span (key text, n bigint, began timestamptz, ended timestamptz)")
        yield ground.database
        connection.execute("DROP TABLE span")


NOW = "SELECT clock_timestamp()"
ENDED = "INSERT INTO span SELECT %s, %s, %s, clock_timestamp()"
TOGETHER = """
SELECT a.key, a.n, b.key, b.n FROM span a JOIN span b ON (a.key, a.n, a.began) < (b.key, b.n, b.began)
    AND (a.began, a.ended) OVERLAPS (b.began, b.ended) WHERE (a.key = b.key) = %s"""


@pytest.mark.case("P-23")
def test_two_messages_of_a_key_never_run_at_once_and_different_keys_do(ground: Ground, spans: str) -> None:
    """
    Held through a retry too, when those that waited are run by whoever runs the retry.

    Fails when a key that is with a lane is handed to another, or when only one lane works for a partition.
    """
    app, both = Processor(GROUP), threading.Barrier(2)

    @app.handler(ground.message, retry=Retry(attempts=2, delays=["100ms"]))
    def handle(message: Any, ctx: Context) -> None:
        with psycopg.connect(spans, autocommit=True) as own:
            began = own.execute(NOW).fetchall()[0][0]
            if message.n == 0:
                both.wait(20)
            try:
                note(message, ctx)
            finally:
                own.execute(ENDED, (ctx.key, message.n, began))

    ground.make_topics(app)
    for n in range(12):
        for one in (b"a", b"b"):
            ground.send(n, "fails once" if n == 5 else "", key=one)
    with ground.processing(app, batch_records=1, concurrency=4):
        eventually(lambda: len(ground.results()) == 24, what="all are done")
    assert ground.rows(TOGETHER, True) == []
    assert ground.rows(TOGETHER, False) != []
    for key in ("a", "b"):
        ran = [n for (n,) in ground.rows("SELECT n FROM span WHERE key = %s ORDER BY began", key)]
        assert ran == [*range(6), *range(5, 12)]


@pytest.mark.case("P-02")
@pytest.mark.case("P-12")
def test_one_slow_message_heads_the_partition_and_thousands_behind_it_are_done_once(
    ground: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fails when reading goes on without bound behind it, the watermark jumps it, or those behind it run again after a restart."""
    app, limits = Processor(GROUP), ProcessorSettings.limits
    monkeypatch.setattr(ProcessorSettings, "limits", lambda self: replace(limits(self), tracked=1_000))
    with hold() as (inside, wait):

        @app.handler(ground.message)
        def handle(message: Any, ctx: Context) -> None:
            if message.n == 0:
                wait()
            note(message, ctx)

        ground.make_topics(app)
        slow = ground.send(0, key=b"slow")
        with ground.processing(app, drain_timeout=0.2) as running:
            assert inside.wait(20)
            ground.send_many(range(1, 4_001))
            queue = running.composed.loop._desk.queues[ground.topic, 0]
            eventually(lambda: state_of(running, ground).paused, what="reading pauses")
            eventually(lambda: queue.load.pending == 1, what="what was read behind it is done")
            assert 1_000 <= queue.load.tracked < 4_001
            assert len(ground.results()) == queue.load.tracked - 1
            assert ground.watermark() == 0
    monkeypatch.undo()
    again = Processor(GROUP)
    again.handler(ground.message)(note)
    with ground.processing(again):
        eventually(lambda: ground.watermark() == 4_001, what="all are dealt with", timeout=40)
    assert sorted(ground.results()) == list(range(4_001))
    assert ground.outcome(slow) == ("done", 1, None, 1)


@pytest.mark.case("P-22")
def test_a_handler_that_runs_longer_than_a_poll_may_take_keeps_its_member_in_the_group(
    ground: Ground, caplog: pytest.LogCaptureFixture
) -> None:
    """Fails when the loop waits for a lane: the client would leave the group by itself after that time."""
    app, inside, go = Processor(GROUP), threading.Event(), threading.Event()

    @app.handler(ground.message)
    def handle(message: Any, ctx: Context) -> None:
        if message.n == 0:
            inside.set()
            assert go.wait(60)
        note(message, ctx)

    ground.make_topics(app)
    slow = ground.send(0, key=b"slow")
    with ground.processing(app, kafka_properties={"max.poll.interval.ms": 1_500}) as running:
        assert inside.wait(20)
        before = state_of(running, ground).generation
        over = SYSTEM_CLOCK.monotonic() + 3
        eventually(lambda: SYSTEM_CLOCK.monotonic() > over, what="twice that time has passed")
        ground.send(1, key=b"another")
        ground.until_results(1)
        go.set()
        ground.until_results(1, 0)
        eventually(lambda: ground.committed() == 2, what="the offset follows")
        assert state_of(running, ground).generation == before
    assert ground.outcome(slow) == ("done", 1, None, 1)
    assert "partitions lost" not in caplog.messages


AGED = """
WITH rows AS (UPDATE packhorse.inbox SET recorded_at = recorded_at - interval '40 days', changed_at = changed_at - interval '40 days')
UPDATE packhorse.watermark SET first_at = '-infinity' RETURNING 1"""


@pytest.mark.case("P-16")
def test_what_retention_removes_can_not_come_back_and_what_can_it_keeps(ground: Ground) -> None:
    """Fails when rows above the watermark go by their age, or what is below it needs a row to be known."""
    app = Processor(GROUP)
    retention = ("processor", "retention", "run", "--inbox-days", "20", "--json")
    with hold() as (inside, wait):

        @app.handler(ground.message)
        def handle(message: Any, ctx: Context) -> None:
            if message.n == 0:
                wait()
            note(message, ctx)

        ground.make_topics(app)
        ground.send(0, key=b"slow")
        with ground.processing(app, drain_timeout=0.2):
            assert inside.wait(20)
            for n in (1, 2):
                ground.send(n)
            ground.until_results(1, 2)
    ground.rows(AGED)
    assert packhorse(*retention, **ground.environ).json()["removed"] == 0
    again = Processor(GROUP)
    again.handler(ground.message)(note)
    with ground.processing(again):
        ground.until_results(1, 2, 0)
        eventually(lambda: ground.watermark() == 3, what="the watermark follows")
    ground.rows(AGED)
    assert packhorse(*retention, **ground.environ).json()["removed"] == 3
    broker = BrokerQuestions(admin_properties(ground.settings()))
    eventually(lambda: broker.group_state(GROUP)[1] == 0, what="nobody is in the group", timeout=60)
    broker.set_offsets(GROUP, ground.topic, {0: 0})
    with ground.processing(again):
        ground.send(3)
        ground.until_results(1, 2, 0, 3)
        eventually(lambda: ground.committed() == 4, what="the offset follows")
