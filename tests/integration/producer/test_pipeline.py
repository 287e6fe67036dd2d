"""Writing in psycopg's pipeline mode, in autocommit, and with connections that an application has made its own."""

from typing import Any

import psycopg
import pytest
from psycopg.rows import dict_row
from tests.support.accounts import AccountOpened, AmountMoved

from packhorse.core.errors import UsageError
from packhorse.producer import Outbox
from packhorse.testing import emitted

OUTBOX = Outbox(origin="bank")
MOVED = AmountMoved(account="a", amount=1)


def keys_of(connection: psycopg.Connection[Any]) -> list[str | None]:
    return [one.key for one in emitted(connection)]


@pytest.mark.case("B-03")
def test_calls_in_a_pipeline_keep_their_order(url: str) -> None:
    """Fails when emit_many uses COPY, which a pipeline has not, or sends out of turn."""
    with psycopg.connect(url) as connection, connection.pipeline():
        OUTBOX.lock_keys(connection, ["a"])
        OUTBOX.emit(connection, MOVED, key="a")
        OUTBOX.emit_many(connection, [(MOVED, "b"), (MOVED, "c")], lock_key=True)
        OUTBOX.emit(connection, MOVED, key="d")
        assert keys_of(connection) == ["a", "b", "c", "d"]


@pytest.mark.case("B-02")
def test_autocommit_without_a_transaction_is_refused_with_one_it_is_not(url: str) -> None:
    """Fails when the state of the connection is not asked: the message would be committed apart from its rows."""
    with psycopg.connect(url, autocommit=True) as connection:
        with pytest.raises(UsageError, match="autocommit"):
            OUTBOX.emit(connection, MOVED, key="a")
        with connection.transaction(), connection.transaction():
            OUTBOX.emit(connection, MOVED, key="a")
            assert keys_of(connection) == ["a"]
        connection.execute("BEGIN")
        OUTBOX.emit(connection, MOVED, key="b")
        assert keys_of(connection) == ["b"]
        connection.execute("ROLLBACK")


@pytest.mark.case("B-02")
def test_autocommit_in_a_pipeline_is_asked_for_its_transaction(url: str) -> None:
    """Fails when a pipeline's state "active" is taken for an open transaction."""
    with psycopg.connect(url, autocommit=True) as connection, connection.pipeline():
        connection.execute("SELECT 1")
        with pytest.raises(UsageError, match="autocommit"):
            OUTBOX.emit(connection, MOVED, key="a")
        connection.execute("BEGIN")
        OUTBOX.emit(connection, MOVED, key="a")
        assert keys_of(connection) == ["a"]
        connection.execute("ROLLBACK")
        with connection.transaction():
            OUTBOX.emit(connection, MOVED, key="b")
            assert keys_of(connection) == ["b"]


@pytest.mark.case("B-02")
def test_an_engine_in_autocommit_is_refused(url: str) -> None:
    """Fails when SQLAlchemy's word for a transaction is believed where its driver has none."""
    import sqlalchemy as sa
    from tests.support.writers import alchemy

    engine = sa.create_engine(alchemy(url), isolation_level="AUTOCOMMIT", poolclass=sa.NullPool)
    with engine.connect() as connection, pytest.raises(UsageError, match="autocommit"):
        OUTBOX.emit(connection, MOVED, key="a")


def test_factories_and_encodings_of_the_application_do_not_matter(url: str) -> None:
    with psycopg.connect(
        url, row_factory=dict_row, cursor_factory=psycopg.ClientCursor, client_encoding="latin1"
    ) as connection:
        outbox = Outbox()
        outbox.emit(
            connection, AmountMoved(account="ü", amount=1), key="ü", headers={"ü": "ü"}, lock_key=True
        )
        outbox.emit_many(connection, [(MOVED, "ü"), (AccountOpened(account="ü", owner="ü", limit=1), "é")])
        assert keys_of(connection) == ["ü", "ü", "é"]
        connection.commit()
    with psycopg.connect(url) as other:
        assert [row[0] for row in other.execute("SELECT aggregateid FROM packhorse.outbox o ORDER BY o.seq")] == [
            "ü", "ü", "é",
        ]  # fmt: skip


def test_a_scoped_session_is_the_session_in_it(url: str) -> None:
    import sqlalchemy as sa
    from sqlalchemy.orm import scoped_session, sessionmaker
    from tests.support.writers import alchemy

    sessions = scoped_session(sessionmaker(sa.create_engine(alchemy(url), poolclass=sa.NullPool)))
    OUTBOX.emit(sessions, MOVED, key="a")
    assert [one.key for one in emitted(sessions)] == ["a"]
    sessions.remove()


def test_another_driver_is_refused_by_name(url: str) -> None:
    from packhorse.producer.sqlalchemy import _checked

    with pytest.raises(UsageError, match=r"driver is builtins; use an engine of postgresql\+psycopg://"):
        _checked(object(), psycopg.Connection)


def test_emitting_while_the_session_flushes_is_refused(url: str) -> None:
    import sqlalchemy as sa
    from sqlalchemy.orm import Session, registry
    from tests.support.writers import alchemy

    class Thing:
        """A row of the application."""

    mapped = registry()
    mapped.map_imperatively(
        Thing, sa.Table("business", mapped.metadata, sa.Column("n", sa.Integer, primary_key=True))
    )
    engine = sa.create_engine(alchemy(url), poolclass=sa.NullPool)
    with Session(engine) as session:
        sa.event.listen(session, "before_flush", lambda *_: OUTBOX.emit(session, MOVED, key="a"))
        session.add(Thing())
        with pytest.raises(UsageError, match="while the session flushes"):
            session.flush()


@pytest.mark.case("X-05")
def test_the_span_of_the_call_is_the_parent_of_what_follows(url: str) -> None:
    """Fails when the row carries the trace of the block around, or none: consumers' spans would hang in the air."""
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import InMemoryMetricReader
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    from packhorse.producer.otel import OpenTelemetry

    spans, reader, tracers = InMemorySpanExporter(), InMemoryMetricReader(), TracerProvider()
    tracers.add_span_processor(SimpleSpanProcessor(spans))
    telemetry = OpenTelemetry(tracer_provider=tracers, meter_provider=MeterProvider([reader]))
    outbox = Outbox(telemetry=telemetry)
    with psycopg.connect(url) as connection, telemetry.span("request"):
        outbox.emit(connection, MOVED, key="secret key")
        outbox.emit_many(connection, [(MOVED, "a"), (MOVED, "b")])
        found = [one.traceparent for one in emitted(connection)]
    first, second, request = spans.get_finished_spans()
    assert [first.name, second.name, request.name] == [
        "emit bank.AmountMoved",
        "emit bank.AmountMoved",
        "request",
    ]
    assert found == [traceparent(first), traceparent(second), traceparent(second)]
    assert first.context.trace_id == request.context.trace_id
    assert "secret" not in first.to_json()
    data = reader.get_metrics_data()
    assert data is not None
    assert '"value": 3' in data.to_json()
    assert "packhorse.outbox.emitted" in data.to_json()
    tracers.shutdown()


def traceparent(span: Any) -> str:
    return f"00-{span.context.trace_id:032x}-{span.context.span_id:016x}-{span.context.trace_flags:02x}"


@pytest.mark.case("S-08")
def test_writing_goes_on_without_registry_and_broker(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fails when an id is asked of the registry, or anything but the caller's connection is used: no new socket opens."""
    import socket

    def refused(*_: object) -> None:
        raise AssertionError("writing opened a connection of its own")

    with psycopg.connect(url) as connection:
        monkeypatch.setattr(socket.socket, "connect", refused)
        monkeypatch.setattr(psycopg.Connection, "connect", refused)
        monkeypatch.setenv("PACKHORSE_REGISTRY_URL", "http://127.0.0.1:1")
        outbox = Outbox()
        outbox.emit(connection, MOVED, key="a")
        outbox.emit_many(connection, [(MOVED, "a")] * 3, lock_key=True)
        assert len(keys_of(connection)) == 4
