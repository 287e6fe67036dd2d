"""The database is restored, fails over, or the group's offsets move: nothing is jumped over, nothing done twice."""

from typing import Any

import psycopg
import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient
from tests.support.processing import GROUP, Ground, Running, noting
from tests.support.wait import eventually

from packhorse.core.errors import BrokerUnavailable
from packhorse.processor import Context, Processor
from packhorse.processor.clients import admin_properties
from packhorse.processor.kafka.admin import BrokerQuestions
from packhorse.processor.partition.state import (
    Phase,
)
from packhorse.testing import register_for_tests

TABLES = ("packhorse.inbox", "packhorse.watermark", "result")


def back_up(ground: Ground) -> None:
    """Keep what the processor has written so far."""
    with psycopg.connect(ground.database) as connection:
        for table in TABLES:
            connection.execute(f"CREATE TABLE backup_{table.rpartition('.')[2]} AS TABLE {table}")


def restore(ground: Ground) -> None:
    """Go back to the backup, as another server: its incarnation is not the one that wrote the watermark."""
    with psycopg.connect(ground.database) as connection:
        for table in TABLES:
            backup = f"backup_{table.rpartition('.')[2]}"
            connection.execute(f"TRUNCATE {table}")
            connection.execute(f"INSERT INTO {table} OVERRIDING SYSTEM VALUE TABLE {backup}")
            connection.execute(f"DROP TABLE {backup}")
        connection.execute("UPDATE packhorse.watermark SET incarnation = 'another/00000001'")


def is_refused(running: Running, ground: Ground) -> bool:
    """Return whether the partition waits for a person."""
    state = running.composed.loop.states.get((ground.topic, 0))
    return state is not None and state.phase is Phase.REFUSED


def broker(ground: Ground) -> BrokerQuestions:
    return BrokerQuestions(admin_properties(ground.settings()))


@pytest.mark.case("P-31")
def test_results_that_a_restore_took_are_made_again(ground: Ground) -> None:
    """Fails when reading starts at the committed offset, which is ahead."""
    app = noting(ground.namespace)
    ground.make_topics(app)
    ground.send(0)
    with ground.processing(app):
        ground.until_results(0)
        eventually(lambda: ground.watermark() == 1, what="the watermark follows")
    back_up(ground)
    for n in (1, 2):
        ground.send(n)
    with ground.processing(app):
        ground.until_results(0, 1, 2)
    assert ground.committed() == 3
    restore(ground)
    assert ground.results() == [0]
    with ground.processing(app):
        ground.until_results(0, 1, 2)
    assert ground.watermark() == 3


@pytest.mark.case("P-31")
def test_a_restore_under_a_running_processor_is_noticed_while_nothing_is_to_do(ground: Ground) -> None:
    """Fails when the watchdog does not let watermarks be read again."""
    app = noting(ground.namespace)
    ground.make_topics(app)
    ground.send(0)
    with ground.processing(app):
        ground.until_results(0)
        eventually(lambda: ground.watermark() == 1, what="the watermark follows")
        back_up(ground)
        ground.send(1)
        ground.until_results(0, 1)
        eventually(lambda: ground.committed() == 2, what="the offset follows")
        restore(ground)
        cut_connections(ground)
        ground.until_results(0, 1)
        eventually(lambda: ground.watermark() == 2, what="the watermark is back")


def set_offsets(ground: Ground, topic: str, offsets: dict[int, int]) -> None:
    """Set what the group has committed, once the coordinator has given up members of other tests that were killed."""

    def done() -> bool:
        try:
            broker(ground).set_offsets(GROUP, topic, offsets)
        except BrokerUnavailable as error:
            if "UNKNOWN_MEMBER_ID" not in str(error):
                raise
            return False
        return True

    eventually(done, what="the group's offsets are set", timeout=60)


def cut_connections(ground: Ground) -> None:
    """End every connection of the processor, as a restart of the server does."""
    ground.rows(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
        "WHERE datname = current_database() AND application_name = 'packhorse processor'"
    )


@pytest.mark.case("P-32")
@pytest.mark.parametrize("to", ["end", "beginning"])
def test_offsets_that_were_reset_change_nothing(ground: Ground, to: str) -> None:
    """Fails when reading starts at the committed offset, or a row alone makes a duplicate."""
    app = noting(ground.namespace)
    ground.make_topics(app)
    for n in range(2):
        ground.send(n)
    with ground.processing(app):
        ground.until_results(0, 1)
        eventually(lambda: ground.watermark() == 2, what="the watermark follows")
    for n in (2, 3):
        ground.send(n)
    set_offsets(ground, ground.topic, {0: 4 if to == "end" else 0})
    ground.rows("DELETE FROM packhorse.inbox RETURNING 1")
    with ground.processing(app):
        ground.until_results(0, 1, 2, 3)
        eventually(lambda: ground.committed() == 4, what="the offset follows")


@pytest.mark.case("P-32")
def test_a_committed_offset_alone_is_refused_by_name_until_a_person_decides(ground: Ground) -> None:
    """Fails when somebody else's offset is believed."""
    app = noting(ground.namespace)
    ground.make_topics(app)
    ground.send(0)
    set_offsets(ground, ground.topic, {0: 1})
    with ground.processing(app) as running:
        eventually(
            lambda: is_refused(running, ground),
            what="the partition is refused",
        )
    assert ground.results() == []
    assert ground.watermark() is None


@pytest.mark.case("P-35")
def test_a_follow_up_that_is_made_again_has_the_same_id(ground: Ground) -> None:
    """Fails when the id is drawn."""
    app = Processor(GROUP)

    @app.handler(ground.message)
    def handle(message: Any, ctx: Context) -> None:
        ctx.emit(ground.message(n=message.n + 100), key="k")
        ctx.emit_tombstone(ground.message, key="k")
        ctx.connection.execute("INSERT INTO result (n) VALUES (%s)", (message.n,))

    ground.make_topics(app)
    with psycopg.connect(ground.database) as connection:
        register_for_tests(connection, ground.message)
    ground.send(0)
    with ground.processing(app):
        ground.until_results(0)
    back_up(ground)
    sent = ground.send(1)
    with ground.processing(app):
        ground.until_results(0, 1)
    restore(ground)
    with ground.processing(app):
        ground.until_results(0, 1)
    ids = ground.rows("SELECT id FROM packhorse.outbox WHERE causation_id = %s ORDER BY seq", str(sent))
    assert len(ids) == 4
    assert ids[:2] == ids[2:]
    assert len(set(ids)) == 2


def test_records_that_are_gone_are_named_with_the_size_of_the_gap(ground: Ground) -> None:
    """A watermark below the first record: the partition stands still until a person decides."""
    app = noting(ground.namespace)
    ground.make_topics(app)
    for n in range(5):
        ground.send(n)
    with ground.processing(app):
        ground.until_results(0, 1, 2, 3, 4)
    admin = AdminClient({"bootstrap.servers": ground.kafka})
    for future in admin.delete_records([TopicPartition(ground.topic, 0, 4)]).values():
        future.result(10)
    with psycopg.connect(ground.database) as connection:
        connection.execute("TRUNCATE packhorse.inbox, result")
    ground.rows('UPDATE packhorse.watermark SET "offset" = 1 WHERE topic = %s RETURNING 1', ground.topic)
    with ground.processing(app) as running:
        eventually(
            lambda: is_refused(running, ground),
            what="the partition is refused",
        )
    assert ground.results() == []
    with ground.processing(app, missing_records="continue"):
        ground.until_results(4)
