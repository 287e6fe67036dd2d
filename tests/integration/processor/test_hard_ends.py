"""Ends that are no ordinary errors, and logs that are cut: the process stops with an error, or goes on; it never looks well and stands still."""

import ctypes
import signal
from pathlib import Path
from typing import Any

import confluent_kafka
import pytest
from tests.support.processing import GROUP, Ground, note, noting
from tests.support.processing_child import child, in_hand, until_dead
from tests.support.stack import PrivateBroker
from tests.support.wait import eventually

from packhorse.core.logs import logger
from packhorse.local.settings import Endpoints
from packhorse.processor import AsyncContext, Context, Processor
from packhorse.processor.clients import consumer_properties
from packhorse.processor.kafka.consumer import Assignment, GroupConsumer


@pytest.mark.case("P-29")
@pytest.mark.case("X-04")
def test_an_async_handler_that_exits_stops_the_process(ground: Ground) -> None:
    """Fails when the event loop is not run again after a task's SystemExit: the lane would wait for ever, unseen."""
    app = Processor(GROUP)

    @app.handler(ground.message)
    async def handle(message: Any, ctx: AsyncContext) -> None:
        await ctx.connection.execute("INSERT INTO result (id, n, attempt) VALUES (%s, 0, 1)", (ctx.id,))
        raise SystemExit(3)

    ground.make_topics(app)
    sent = ground.send(0)
    with ground.processing(app, drain_timeout=2) as running:
        running.taken = True
        eventually(lambda: running.error is not None, what="the processor stops")
    assert "SystemExit" in str(running.error)
    assert ground.outcome(sent) is None
    assert ground.results() == []
    assert ground.watermark() == 0


class Member:
    """What a consumer is told of rebalances."""

    def __init__(self) -> None:
        self.places: Assignment = []

    def assigned(self, partitions: Assignment) -> None:
        self.places += partitions

    def revoked(self, partitions: Assignment) -> None:
        pass

    def lost(self, partitions: Assignment) -> None:
        pass


@pytest.mark.case("P-11")
@pytest.mark.case("P-28")
def test_a_consumer_outside_the_log_fetches_again_where_it_is_told(ground: Ground) -> None:
    """Fails when it only seeks: the client refuses that after an offset outside the log, for ever."""
    ground.make_topics(noting(ground.namespace))
    for n in range(3):
        ground.send(n)
    member, properties = Member(), consumer_properties(ground.settings(), f"{ground.namespace}.outside")
    consumer = GroupConsumer(properties, [ground.topic], member, logger("processor"))
    consumer.join()
    try:
        eventually(lambda: consumer.poll(0.1, 9) and member.places, what="the partition is assigned")
        consumer.attach(ground.topic, 0, 1_000)
        kinds = eventually(
            lambda: [trouble.kind for trouble in consumer.poll(0.1, 9).troubles], what="it is told"
        )
        assert kinds == ["out-of-range"]
        assert consumer.seek(ground.topic, 0, 1)
        records = eventually(lambda: consumer.poll(0.1, 9).records, what="records come")
    finally:
        assert consumer.close(30)
    assert next(iter(records.values()))[0].offset == 1


def send_raw_header(bootstrap: str, topic: str, name: bytes) -> None:
    """Produce a record whose header's name is any bytes, which the client for Python can't."""
    folder = Path(confluent_kafka.__file__).parent.parent / "confluent_kafka.libs"
    library = ctypes.CDLL(str(next(folder.glob("librdkafka*"))))
    for function in ("rd_kafka_conf_new", "rd_kafka_new", "rd_kafka_headers_new"):
        getattr(library, function).restype = ctypes.c_void_p
    text, size = ctypes.create_string_buffer(512), ctypes.c_size_t(512)
    conf = ctypes.c_void_p(library.rd_kafka_conf_new())
    library.rd_kafka_conf_set(conf, b"bootstrap.servers", bootstrap.encode(), text, size)
    producer = ctypes.c_void_p(library.rd_kafka_new(0, conf, text, size))
    headers = ctypes.c_void_p(library.rd_kafka_headers_new(ctypes.c_size_t(1)))
    library.rd_kafka_header_add(headers, name, ctypes.c_ssize_t(len(name)), b"v", ctypes.c_ssize_t(1))
    at_topic, with_value, of_record, with_headers, end = 1, 4, 7, 10, 0
    sent = library.rd_kafka_producev(
        producer,
        *(ctypes.c_int(at_topic), topic.encode()),
        *(ctypes.c_int(of_record), ctypes.c_int(2)),
        *(ctypes.c_int(with_value), b"bytes", ctypes.c_size_t(5)),
        *(ctypes.c_int(with_headers), headers),
        ctypes.c_int(end),
    )
    assert sent == 0
    assert library.rd_kafka_flush(producer, ctypes.c_int(10_000)) == 0
    library.rd_kafka_destroy(producer)


@pytest.mark.case("S-07")
def test_a_header_whose_name_is_no_text_stops_its_message_alone(ground: Ground) -> None:
    """Fails when the client's error goes up from the poll: the process would end at that record at each start."""
    app = noting(ground.namespace)
    ground.make_topics(app)
    for n in range(100):  # the interpreter optimizes calls that it has seen often
        ground.send(n)
    send_raw_header(ground.kafka, ground.topic, b"id\xff\xfe")
    ground.send(100)
    with ground.processing(app):
        ground.until_results(*range(101))
    rows = ground.rows("SELECT payload, headers, reason FROM packhorse.quarantined_message")
    assert rows == [(b"bytes", [], "unknown-type")]


@pytest.mark.case("X-09")
def test_a_stop_while_the_broker_is_away_ends_in_time(
    stack: Endpoints, database: str, private_kafka: PrivateBroker, topic_prefix: str, tmp_path: Path
) -> None:
    """Fails when the last commit waits as long as the client does: minutes. The watermark stands without it."""
    ground = Ground(stack, database, topic_prefix, kafka=private_kafka.bootstrap)
    direct = Ground(stack, database, topic_prefix, kafka=private_kafka.direct_bootstrap)
    direct.make_topics(noting(topic_prefix))
    direct.send(0)
    slow = tmp_path / "slow"
    slow.touch()
    with child(ground, SLOW=str(slow)) as process:
        in_hand(direct)
        private_kafka.proxy.cut()
        slow.unlink()
        eventually(lambda: direct.watermark() == 1, what="the result is durable", timeout=20)
        process.send_signal(signal.SIGTERM)
        assert until_dead(process, timeout=15) == 0


@pytest.mark.case("P-29")
def test_a_handler_that_swaps_its_transaction_for_another_is_stopped(ground: Ground) -> None:
    """Fails when the refused inbox row is taken for another owner's, again and again."""
    app = Processor(GROUP)

    @app.handler(ground.message)
    def handle(message: Any, ctx: Context) -> None:
        note(message, ctx)
        if message.what == "swaps":
            ctx.connection.pgconn.exec_(b"COMMIT; BEGIN")  # past what refuses a COMMIT by name

    ground.make_topics(app)
    ground.send(0)
    bad = ground.send(1, "swaps")
    ground.send(2, key=b"another")
    with ground.processing(app):
        eventually(lambda: ground.watermark() == 3, what="all are dealt with", timeout=40)
    assert {0, 2} <= set(ground.results())
    assert ground.outcome(bad)[:3] == ("quarantine", 1, "broken-transaction")  # type: ignore[index]
