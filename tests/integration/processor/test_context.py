"""What a handler gets: connection, sessions, follow-ups, metadata; and what telemetry and logs say."""

import logging
from datetime import UTC, datetime
from typing import Any

import psycopg
import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from sqlalchemy import text
from tests.support.processing import GROUP, Ground
from tests.support.wait import eventually

from packhorse.core.ids import derived_id
from packhorse.processor import AsyncContext, Context, Processor, Retry
from packhorse.producer.otel import OpenTelemetry
from packhorse.testing import register_for_tests

INSERT = text("INSERT INTO result (id, n) VALUES (:id, :n)")
PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def follow_ups(ground: Ground, *causes: Any) -> list[tuple[Any, ...]]:
    return ground.rows(
        "SELECT id, causation_id, correlation_id, tenant, actor, aggregateid FROM packhorse.outbox "
        "WHERE causation_id = ANY(%s) ORDER BY seq",
        [str(cause) for cause in causes],
    )


def test_a_session_is_in_the_transaction_of_the_inbox_row(ground: Ground) -> None:
    """Fails when the session has a connection of its own, or its commit ends the transaction."""
    app = Processor(GROUP)

    @app.handler(ground.message, retry=Retry(attempts=1))
    def handle(message: Any, ctx: Context) -> None:
        ctx.session.execute(INSERT, {"id": ctx.id, "n": message.n})
        ctx.session.commit()
        ctx.session.execute(INSERT, {"id": ctx.id, "n": message.n + 100})
        assert ctx.connection.execute("SELECT count(*) FROM result WHERE id = %s", (ctx.id,)).fetchone() == (
            2,
        )
        ctx.emit(ground.message(n=1), key="k")
        if message.what == "fails":
            raise ValueError
        if message.what == "ends it":
            ctx.session.connection().commit()

    ground.make_topics(app)
    with psycopg.connect(ground.database) as connection:
        register_for_tests(connection, ground.message)
    sent = [ground.send(n, what, key=b"%d" % n) for n, what in enumerate(["", "fails", "ends it", ""])]
    with ground.processing(app):
        ground.until_results(0, 3, 100, 103, any_order=True)
        for one in sent[1:3]:
            ground.until_outcome(one, "quarantine")
    assert [row[1] for row in follow_ups(ground, *sent)] == [str(sent[0]), str(sent[3])]
    errors = [row[0] for row in ground.rows("SELECT error FROM packhorse.quarantined_message ORDER BY 1")]
    assert any("TransactionRefused" in error for error in errors)


def test_an_async_session_is_in_the_transaction_of_the_inbox_row(ground: Ground) -> None:
    app = Processor(GROUP)

    @app.handler(ground.message, retry=Retry(attempts=1))
    async def handle(message: Any, ctx: AsyncContext) -> None:
        await ctx.session.execute(INSERT, {"id": ctx.id, "n": message.n})
        await ctx.session.commit()
        await ctx.emit(ground.message(n=1), key="k")
        if message.what == "fails":
            raise ValueError
        if message.what == "ends it":
            await ctx.connection.commit()

    ground.make_topics(app)
    with psycopg.connect(ground.database) as connection:
        register_for_tests(connection, ground.message)
    sent = [ground.send(n, what, key=b"%d" % n) for n, what in enumerate(["", "fails", "ends it", ""])]
    with ground.processing(app):
        ground.until_results(0, 3, any_order=True)
    assert [row[1] for row in follow_ups(ground, *sent)] == [str(sent[0]), str(sent[3])]


@pytest.mark.case("P-15")
def test_follow_ups_inherit_and_their_ids_are_derived(ground: Ground) -> None:
    app = Processor(GROUP)

    @app.handler(ground.message)
    def handle(message: Any, ctx: Context) -> None:
        ctx.emit(ground.message(n=1), key="a")
        ctx.emit_tombstone(ground.message, key="b")

    ground.make_topics(app)
    with psycopg.connect(ground.database) as connection:
        register_for_tests(connection, ground.message)
    sent = ground.send(headers={"correlation-id": b"order 7", "tenant": b"north", "actor": b"ada"})
    with ground.processing(app):
        ground.until_outcome(sent, "done")
    inherited = (str(sent), "order 7", "north", "ada")
    assert follow_ups(ground, sent) == [
        (derived_id(sent, GROUP, 0), *inherited, "a"),
        (derived_id(sent, GROUP, 1), *inherited, "b"),
    ]


def test_a_context_tells_who_the_message_is(ground: Ground) -> None:
    app, seen = Processor(GROUP), []

    @app.handler(ground.message)
    def handle(message: Any, ctx: Context) -> None:
        seen.append(ctx)

    ground.make_topics(app)
    ground.send(0)
    sent = ground.send(1, key=b"k1", headers={"headers": b'{"a": "b"}', "x": b"1"})
    with ground.processing(app):
        eventually(lambda: len(seen) == 2, what="both are handled")
        eventually(lambda: ground.watermark() == 2, what="both are done")
    ctx = seen[1]
    assert (ctx.id, ctx.type, ctx.key, ctx.topic, ctx.partition, ctx.offset, ctx.attempt) == (
        sent,
        "tests.Noted",
        "k1",
        ground.topic,
        0,
        1,
        1,
    )
    assert ctx.headers == {"a": "b"}
    assert ctx.raw_headers["x"] == b"1"
    assert abs((datetime.now(UTC) - ctx.timestamp).total_seconds()) < 60  # noqa: TID251 the broker's own time
    with pytest.raises(Exception, match="its transaction is over"):
        _ = ctx.connection


@pytest.mark.case("X-05")
def test_a_handlers_span_is_below_its_writers_and_metrics_count(
    ground: Ground, caplog: pytest.LogCaptureFixture
) -> None:
    """Fails when the span has no parent; no payload, key or secret is in logs, spans or metrics."""
    exporter, reader = InMemorySpanExporter(), InMemoryMetricReader()
    tracers = TracerProvider()
    tracers.add_span_processor(SimpleSpanProcessor(exporter))
    telemetry = OpenTelemetry(tracer_provider=tracers, meter_provider=MeterProvider(metric_readers=[reader]))
    app = Processor(GROUP)

    @app.handler(ground.message, retry=Retry(attempts=1))
    def handle(message: Any, ctx: Context) -> None:
        ctx.connection.execute("INSERT INTO result (n) VALUES (%s)", (message.n,))
        if message.what:
            raise ValueError(message.what)

    ground.make_topics(app)
    ground.send(0, headers={"traceparent": PARENT.encode()})
    bad = ground.send(1, "s3cret", key=b"s3cret-key", headers={"traceparent": b"broken"})
    with caplog.at_level(logging.DEBUG), ground.processing(app, telemetry=telemetry):
        ground.until_outcome(bad, "quarantine")
    tracers.shutdown()
    spans = [span for span in exporter.get_finished_spans() if span.name == "process tests.Noted"]
    first = spans[0]
    assert first.parent is not None
    assert f"{first.context.trace_id:032x}" == PARENT.split("-")[1]
    assert f"{first.parent.span_id:016x}" == PARENT.split("-")[2]
    assert first.attributes["messaging.kafka.offset"] == 0  # type: ignore[index]
    told = f"{[span.to_json() for span in spans]} {caplog.text} {reader.get_metrics_data().to_json()}"  # type: ignore[union-attr]
    assert "s3cret" not in told
    names = {
        "packhorse.processor.deliveries",
        "packhorse.processor.attempts",
        "packhorse.processor.quarantined",
    }
    assert all(name in told for name in names)
