"""Across the whole road: one trace, and no personal value in anything that people or collectors see."""

import io
import logging
from pathlib import Path
from typing import Any
from uuid import UUID

import psycopg
import pytest
from confluent_kafka import Consumer, TopicPartition
from opentelemetry import trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from tests.support.road import PARTITIONS, Road
from tests.support.wait import eventually

from packhorse.core import logs
from packhorse.core.telemetry import Metric
from packhorse.local.settings import Endpoints
from packhorse.processor import Context, Retry
from packhorse.producer.otel import OpenTelemetry

TWICE = Retry(attempts=2, delays=("10ms",))
EMAIL = "ann.private@example.org"
KEY = "key-of-ann-private"


class Collected:
    """Spans and metrics in memory."""

    def __init__(self) -> None:
        self.exporter, self.reader = InMemorySpanExporter(), InMemoryMetricReader()
        self.tracers = TracerProvider()
        self.tracers.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.telemetry = OpenTelemetry(
            tracer_provider=self.tracers, meter_provider=MeterProvider(metric_readers=[self.reader])
        )

    def spans(self) -> tuple[Any, ...]:
        return self.exporter.get_finished_spans()

    def metrics_text(self) -> str:
        data = self.reader.get_metrics_data()
        return "" if data is None else data.to_json()

    def metric_names(self) -> set[str]:
        data = self.reader.get_metrics_data()
        scopes = [scope for one in (data.resource_metrics if data else ()) for scope in one.scope_metrics]
        return {metric.name for scope in scopes for metric in scope.metrics}


@pytest.fixture
def collected() -> Collected:
    return Collected()


@pytest.fixture
def road(tmp_path: Path, database: str, stack: Endpoints, topic_prefix: str, collected: Collected) -> Road:
    made = Road(
        tmp_path, database=database, endpoints=stack, prefix=topic_prefix, telemetry=collected.telemetry
    )
    made.make_topics()
    return made


def records(road: Road, topic: str) -> list[Any]:
    """Return every record of *topic*, read by a plain client."""
    consumer = Consumer(
        {
            "bootstrap.servers": road.environ["PACKHORSE_KAFKA_BOOTSTRAP_SERVERS"],
            "group.id": "checks",
            "enable.partition.eof": True,
        }
    )
    consumer.assign([TopicPartition(topic, partition, 0) for partition in range(PARTITIONS)])
    found, ended = [], 0
    try:
        while ended < PARTITIONS:
            record = eventually(lambda: consumer.poll(0.2), what=f"{topic} can be read")
            assert record is not None
            if record.error() is None:
                found.append(record)
            else:
                ended += 1
    finally:
        consumer.close()
    return found


def copies(road: Road) -> list[str]:
    """Return the topics that hold copies: the tiers', and quarantine's."""
    return [*road.app.retry_topics(road.topic), road.app.quarantine_topic(road.topic)]


def in_quarantine(road: Road, message_id: UUID) -> None:
    def rests() -> bool:
        groups = road.status(message_id)["groups"]
        return bool(
            groups and groups[0]["quarantined"] and groups[0]["quarantined"]["copy_offset"] is not None
        )

    eventually(rests, what="it rests in quarantine, and its copy is confirmed", timeout=30)


def scalar(road: Road, query: str) -> Any:
    with psycopg.connect(road.database) as connection:
        row = connection.execute(query).fetchone()
    return None if row is None else row[0]


@pytest.mark.case("X-05")
def test_one_trace_runs_from_the_writer_over_retry_and_quarantine_to_the_result(
    road: Road, collected: Collected
) -> None:
    """Fails when a column, header or copy drops the trace context, or a handler starts a trace of its own."""
    broken = [True]

    @road.app.handler(road.moved, retry=TWICE)
    def moved(message: Any, ctx: Context) -> None:
        if broken[0]:
            raise ValueError

    tracer = collected.tracers.get_tracer("application")
    with tracer.start_as_current_span("order") as span:
        wanted = span.get_span_context()
        message_id = road.emit(1)
    with road.relay(), road.processor():
        in_quarantine(road, message_id)
        broken[0] = False
        done = road.run("quarantine", "redrive", message_id, "--why", "fixed", "--yes", "--wait", 30)
        assert done.code == 0, done.out + done.err
    traceparents = set()
    for topic in (road.topic, *copies(road)):
        for record in records(road, topic):
            traceparents |= {value for name, value in record.headers() if name == "traceparent"}
    assert len(traceparents) == 1
    trace_id = trace.format_trace_id(wanted.trace_id)
    assert trace_id in traceparents.pop().decode()
    handling = [found for found in collected.spans() if found.name.startswith("process ")]
    assert [found.attributes["packhorse.attempt"] for found in handling] == [1, 2, 3]
    assert {found.context.trace_id for found in handling} == {wanted.trace_id}
    assert [found.status.status_code.name for found in handling] == ["ERROR", "ERROR", "UNSET"]


@pytest.mark.case("X-05")
def test_idle_polling_makes_no_span(road: Road, collected: Collected) -> None:
    """Fails when a poll, a look of the watchdog or the loop itself is a span."""

    @road.app.handler(road.moved)
    def moved(message: Any, ctx: Context) -> None:
        pass

    with road.relay(), road.processor():
        eventually(
            lambda: scalar(road, "SELECT count(*) FROM packhorse.watermark") >= PARTITIONS,
            what="it is assigned",
            timeout=30,
        )
        before = collected.spans()
        seen: set[Any] = set()

        def renewed_twice() -> bool:
            seen.add(scalar(road, "SELECT lease_until FROM packhorse.relay"))
            return len(seen) > 2

        eventually(renewed_twice, what="the relay has renewed its lease twice, polling meanwhile", timeout=20)
        assert collected.spans() == before
    assert collected.spans() == before
    assert collected.metric_names() <= {metric.metric_name for metric in Metric}


def everything_but_the_bytes(road: Road) -> str:
    """Return all rows of all tables as text; the outbox's and quarantine's payload and key hold the message itself."""
    told = []
    with psycopg.connect(road.database) as connection:
        tables = connection.execute(
            "SELECT table_name, string_agg(quote_ident(column_name), ', ') FROM information_schema.columns "
            "WHERE table_schema = 'packhorse' AND column_name NOT IN ('payload', 'key', 'aggregateid') GROUP BY 1"
        ).fetchall()
        for table, columns in tables:
            rows = connection.execute(f"SELECT ({columns})::text FROM packhorse.{table}").fetchall()
            told += [str(row) for row in rows]
    return "\n".join(told)


@pytest.mark.case("X-07")
@pytest.mark.parametrize("kind", ["own", "driver", "orm"])
def test_a_personal_value_in_a_handlers_error_is_nowhere(
    road: Road, collected: Collected, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Fails when an error's text, a driver's detail, or a statement's parameters are kept, logged, sent or shown."""

    @road.app.handler(road.moved, retry=TWICE)
    def moved(message: Any, ctx: Context) -> None:
        if kind == "own":
            raise ValueError(f"no account for {message.email} and {ctx.key}")
        if kind == "driver":
            ctx.connection.execute("SELECT %s::int", [message.email])
        from sqlalchemy import text

        ctx.session.execute(text("SELECT CAST(:email AS int)"), {"email": message.email})

    written = io.StringIO()
    logs.set_up("json", level="DEBUG", stream=written)
    caplog.set_level(logging.DEBUG)
    message_id = road.emit(1, email=EMAIL, key=KEY)
    with road.relay(), road.processor():
        in_quarantine(road, message_id)
        shown = [
            road.run("status", message_id),
            road.run("status", message_id, "--json"),
            road.run("explain", message_id),
            road.run("explain", message_id, "--json"),
            road.run("explain", "--group", road.group, "--topic", road.topic, "--key", KEY),
            road.run("top", "--once"),
            road.run("top", "--json"),
            road.run("quarantine", "list"),
            road.run("quarantine", "list", "--json"),
            road.run("quarantine", "show", message_id, "--payload"),
            road.run("quarantine", "show", message_id, "--payload", "--json"),
            road.run("quarantine", "redrive", message_id, "--why", "try", "--yes", "--wait", 30),
            road.run("doctor"),
        ]
    headers = [str(record.headers()) for topic in copies(road) for record in records(road, topic)]
    places = {
        "log": written.getvalue() + caplog.text,
        "spans": "".join(found.to_json() for found in collected.spans()),
        "metrics": collected.metrics_text(),
        "headers": "".join(headers),
        "tables": everything_but_the_bytes(road),
        "screen": "".join(found.out + found.err for found in shown),
    }
    assert headers
    assert [name for name, text in places.items() if not text] == []
    assert [name for name, text in places.items() if "private" in text] == []
