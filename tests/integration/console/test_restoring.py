"""Discarded messages taken back: once, exactly, and never past later messages of their key without a word."""

import threading
from typing import Any
from uuid import UUID

import psycopg
import pytest
from confluent_kafka import Producer
from psycopg.sql import SQL, Identifier
from tests.support.cli import packhorse_started
from tests.support.console_rows import handled, new_id, rested
from tests.support.console_services import service_over
from tests.support.topics import make_topic
from tests.support.wait import eventually

from packhorse.console.acting.postgres import opened
from packhorse.console.quarantine.restoring import sql
from packhorse.console.service import Service
from packhorse.core.errors import OwnershipLost, UsageError
from packhorse.local.settings import Endpoints
from packhorse.processor.clients import admin_properties
from packhorse.processor.kafka.admin import BrokerQuestions
from packhorse.processor.record import key_hash
from packhorse.processor.storing import postgres
from packhorse.processor.storing.sql import queries_for
from packhorse.processor.storing.store import Store
from packhorse.schemas.systems import KafkaSettings

KEY = b"N14228"
HASH = key_hash(KEY)


def discarded(
    connection: psycopg.Connection[Any], *, ordered: bool = True, message_id: UUID | None = None, **given: Any
) -> UUID:
    """Insert a message that a person has discarded, as the tables have it once its key was let go."""
    message_id = rested(connection, message_id, key=KEY, **given)
    connection.execute(
        "UPDATE packhorse.quarantined_message SET state = 'discarded', discarded_at = now(), key_hash = %s WHERE message_id = %s",
        (HASH if ordered else None, message_id),
    )
    connection.execute(
        "UPDATE packhorse.inbox SET outcome = 'discarded' WHERE message_id = %s", (message_id,)
    )
    return message_id


def park(connection: psycopg.Connection[Any], head: UUID | None, *, lease: int | None = None) -> None:
    connection.execute(
        "INSERT INTO packhorse.parked_key (group_id, topic, key_hash, partition, head_id, token, lease_until)"
        " VALUES ('figures', 'airline.aircraft', %s, 2, %s, 7, now() + %s * interval '1 second')",
        (HASH, head, lease),
    )


def stands(connection: psycopg.Connection[Any], message_id: UUID) -> tuple[Any, ...]:
    row = connection.execute(
        "SELECT q.state, i.outcome, q.discarded_at IS NULL, (SELECT k.head_id = q.message_id FROM packhorse.parked_key k)"
        " FROM packhorse.quarantined_message q JOIN packhorse.inbox i USING (group_id, topic, message_id)"
        " WHERE q.message_id = %s",
        (message_id,),
    ).fetchone()
    assert row is not None
    return tuple(row)


def acts(connection: psycopg.Connection[Any]) -> list[Any]:
    return connection.execute("SELECT act, detail FROM packhorse.audit ORDER BY id").fetchall()


BACK = ("quarantined", "quarantine", True, True)


@pytest.mark.case("O-09")
def test_a_discarded_message_is_restored_and_its_key_waits_behind_it_again(
    service: Service, connection: psycopg.Connection[Any]
) -> None:
    """Fails when one of the rows is left as it was, or the key goes on past the message."""
    message_id = discarded(connection)
    preview = service.restoring.preview(message_id)
    assert preview.out_of_order
    assert "not listed" in preview.since.said
    with pytest.raises(UsageError, match="out of order"):
        service.restoring.restore(preview, why="needed", out_of_order=False)
    assert stands(connection, message_id)[0] == "discarded"
    service.restoring.restore(preview, why="needed", out_of_order=True)
    assert stands(connection, message_id) == BACK
    assert acts(connection) == [("restore", {"attempt": 5, "out_of_order": True})]
    with pytest.raises(OwnershipLost, match="restore by"):
        service.restoring.restore(preview, why="needed", out_of_order=True)
    with pytest.raises(OwnershipLost, match="restore by"):
        service.restoring.preview(message_id)


def test_a_message_that_order_does_not_bind_is_restored_without_a_word(
    run: Any, connection: psycopg.Connection[Any]
) -> None:
    message_id = discarded(connection, ordered=False)
    found = run("quarantine", "restore", message_id, "--why", "needed", "--yes", "--json")
    assert found.code == 0, found.err
    assert found.json()["out_of_order"] is False
    assert stands(connection, message_id) == ("quarantined", "quarantine", True, None)
    redriven = run("quarantine", "redrive", message_id, "--why", "again", "--yes")
    assert redriven.code == 0, redriven.err


@pytest.mark.case("O-06")
def test_followers_that_nobody_has_run_wait_behind_it_again(
    service: Service, connection: psycopg.Connection[Any]
) -> None:
    """Fails when the key keeps its old claim: a drainer would run its followers past the message."""
    message_id = discarded(connection)
    park(connection, message_id)
    service.restoring.restore(service.restoring.preview(message_id), why="needed", out_of_order=True)
    assert stands(connection, message_id) == BACK
    row = connection.execute("SELECT token, lease_until > now() FROM packhorse.parked_key").fetchone()
    assert row == (8, True)


@pytest.mark.case("O-06")
def test_a_key_that_waits_behind_another_message_is_left_to_it(
    service: Service, connection: psycopg.Connection[Any]
) -> None:
    """Fails when the message is put before or behind the other head in silence."""
    message_id, other = discarded(connection), rested(connection, key=KEY)
    park(connection, other)
    preview = service.restoring.preview(message_id)
    with pytest.raises(OwnershipLost, match=f"waits behind message {other}"):
        service.restoring.restore(preview, why="needed", out_of_order=True)
    assert stands(connection, message_id) == ("discarded", "discarded", False, False)
    assert acts(connection) == []
    connection.execute("UPDATE packhorse.inbox SET outcome = 'done' WHERE message_id = %s", (other,))
    service.restoring.restore(preview, why="needed", out_of_order=True)
    assert stands(connection, message_id) == BACK


@pytest.mark.case("O-06")
def test_a_key_whose_messages_are_being_run_is_not_touched(
    service: Service, connection: psycopg.Connection[Any]
) -> None:
    """Fails when a drainer's claim is taken away under its hands."""
    message_id = discarded(connection)
    park(connection, message_id, lease=30)
    with pytest.raises(OwnershipLost, match="being run just now"):
        service.restoring.restore(service.restoring.preview(message_id), why="needed", out_of_order=True)
    assert connection.execute("SELECT token FROM packhorse.parked_key").fetchone() == (7,)


@pytest.mark.case("O-02")
def test_of_two_who_restore_one_acts_and_the_other_is_told(
    database: str, connection: psycopg.Connection[Any]
) -> None:
    """Fails when a claim does not ask for what was previewed: both would act."""
    message_id = discarded(connection)
    told: list[object] = []
    ready = threading.Barrier(2)

    def act() -> None:
        with opened(database, schema="packhorse", timeout=10) as tables:
            mine = service_over(tables).restoring
            preview = mine.preview(message_id)
            ready.wait()
            try:
                told.append(mine.restore(preview, why="needed", out_of_order=True))
            except OwnershipLost as error:
                told.append(str(error))

    threads = [threading.Thread(target=act) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    lost = [each for each in told if isinstance(each, str)]
    assert len(lost) == 1
    assert "restore by" in lost[0]
    assert len(acts(connection)) == 1


@pytest.mark.case("O-04")
def test_a_restoring_killed_in_the_middle_has_changed_nothing(
    database: str, run: Any, connection: psycopg.Connection[Any]
) -> None:
    """Fails when one of the rows is committed before the others."""
    message_id = discarded(connection)
    arguments = ("quarantine", "restore", message_id, "--why", "needed", "--yes", "--out-of-order")
    killed = packhorse_started(*arguments, PACKHORSE_DATABASE_URL=database, PACKHORSE_CONSOLE_TIMEOUT="60")
    with psycopg.connect(database) as holder:
        holder.execute("LOCK TABLE packhorse.parked_key IN SHARE MODE")
        waits = (
            "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'packhorse.parked_key'::regclass"
        )
        with killed:
            eventually(
                lambda: connection.execute(waits).fetchone() == (1,),
                what="it waits to park the key",
                timeout=30,
            )
    eventually(lambda: connection.execute(waits).fetchone() == (0,), what="its session is gone")
    assert acts(connection) == []
    assert stands(connection, message_id) == ("discarded", "discarded", False, None)
    assert run(*arguments).code == 0


@pytest.mark.case("O-09")
def test_what_can_not_be_restored_says_why(run: Any, connection: psycopg.Connection[Any]) -> None:
    """Fails when a message is restored whose bytes are erased, whose rows are gone, or that nobody has discarded."""
    purged, forgotten, waiting = discarded(connection), discarded(connection), rested(connection)
    edited = discarded(connection)
    connection.execute(
        "UPDATE packhorse.quarantined_message SET edited_as = gen_random_uuid() WHERE message_id = %s",
        (edited,),
    )
    connection.execute(
        "UPDATE packhorse.quarantined_message SET purged_at = now() WHERE message_id = %s", (purged,)
    )
    connection.execute("DELETE FROM packhorse.inbox WHERE message_id = %s", (forgotten,))
    for message_id, text, code in (
        (purged, "were erased at", 2),
        (forgotten, "discarded too long ago", 2),
        (edited, "an edited copy took its place", 2),
        (waiting, "nobody has discarded it", 2),
        (new_id(), "is not in quarantine", 6),
    ):
        found = run("quarantine", "restore", message_id, "--why", "x", "--yes", "--out-of-order")
        assert (found.code, text in found.err) == (code, True), found.err
    every = run("quarantine", "restore", purged, waiting, "--why", "x", "--yes", "--json")
    assert every.code == 1
    assert [result["done"] for result in every.json()["results"]] == [False, False]


@pytest.mark.case("O-09")
def test_several_are_discarded_and_restored_each_by_itself(
    run: Any, connection: psycopg.Connection[Any]
) -> None:
    """Fails when one that is refused keeps something from the others, or hides itself among them."""
    good, gone, again = rested(connection), new_id(), rested(connection)
    done = run("quarantine", "discard", good, gone, again, "--why", "x", "--yes", "--json")
    assert done.code == 1
    results = done.json()["results"]
    assert [(result["id"], result["done"]) for result in results] == [
        (str(good), True),
        (str(gone), False),
        (str(again), True),
    ]
    back = run("quarantine", "restore", good, again, "--why", "x", "--yes")
    assert back.code == 0, back.err
    assert {stands(connection, each)[:2] for each in (good, again)} == {("quarantined", "quarantine")}


@pytest.mark.case("O-06")
def test_what_has_run_since_is_listed_from_the_topic_and_asks_for_the_words(
    run: Any, connection: psycopg.Connection[Any], stack: Endpoints, topic_prefix: str
) -> None:
    """Fails when later messages of the key are not listed, another key's are, or anything but the words restores it."""
    topic = f"{topic_prefix}.aircraft"
    make_topic(stack.kafka_bootstrap, topic, partitions=1)
    ids = [new_id() for _ in range(4)]
    producer = Producer({"bootstrap.servers": stack.kafka_bootstrap})
    for message_id, key in zip(ids, (KEY, KEY, b"other", KEY), strict=True):
        producer.produce(topic, b"x", key, headers=[("id", str(message_id).encode())])
    producer.flush()
    kafka = KafkaSettings(kafka_bootstrap_servers=stack.kafka_bootstrap)
    topic_id = BrokerQuestions(admin_properties(kafka)).topic_id(topic)
    discarded(connection, message_id=ids[0], topic=topic, partition=0, offset=0)
    connection.execute("UPDATE packhorse.quarantined_message SET topic_id = %s", (topic_id,))
    arguments = ("quarantine", "restore", ids[0], "--why", "needed")
    broker = {"PACKHORSE_KAFKA_BOOTSTRAP_SERVERS": stack.kafka_bootstrap}
    assert run(*arguments, "--yes", "--json", **broker).json()["out_of_order"] is False, "nothing has run yet"
    assert run("quarantine", "discard", ids[0], "--why", "x", "--yes").code == 0
    connection.execute("DELETE FROM packhorse.parked_key")
    handled(connection, ids[1], topic=topic, partition=0, offset=1)
    refused = run(*arguments, "--yes", **broker)
    assert refused.code == 2
    assert "1 later messages of its key have run" in refused.err
    wrong = run(*arguments, given="yes\n", **broker)
    assert wrong.code == 2
    for text in (
        str(ids[1]),
        str(ids[3]),
        "done",
        "not on record",
        "all of its key up to the end of the log",
    ):
        assert text in wrong.out
    assert str(ids[2]) not in wrong.out
    assert stands(connection, ids[0])[0] == "discarded"
    assert run(*arguments, given="out of order\n", **broker).code == 0
    assert stands(connection, ids[0])[:2] == ("quarantined", "quarantine")


@pytest.mark.case("O-06")
@pytest.mark.parametrize("act", ["claim", "release"])
def test_a_drainer_that_waits_for_the_key_meanwhile_does_not_run_past_the_message(
    database: str, connection: psycopg.Connection[Any], act: str
) -> None:
    """Fails when the key is taken without a lease: who waits for its row still sees, in a snapshot of before, a finished head."""
    message_id = discarded(connection)
    park(connection, message_id)
    values = connection.execute(
        "SELECT attempt, redrives, quarantined_at, discarded_at FROM packhorse.quarantined_message"
        " JOIN packhorse.inbox USING (group_id, topic, message_id)"
    ).fetchone()
    assert values is not None
    names = ("attempt", "redrives", "quarantined_at", "discarded_at")
    given = {
        "id": message_id,
        "group": "figures",
        "topic": "airline.aircraft",
        **dict(zip(names, values, strict=True)),
    }
    store = Store(queries=queries_for("packhorse"), group="figures", schema="packhorse")
    answers: list[Any] = []

    def drain() -> None:
        mine = postgres.connect(postgres.settings_of(database, idle_ms=20_000, lock_ms=20_000))
        if act == "claim":
            answers.append(postgres.run(mine, store.claim("airline.aircraft", HASH, "drainer")).claim)
        else:
            answers.append(list(postgres.run(mine, store.release("airline.aircraft", [HASH])).waiting))
        mine.end()

    with psycopg.connect(database) as acting:
        for statement in (sql.REOPEN, sql.RESTORE, sql.LOCK_KEY, sql.TAKE_HEAD):
            acting.execute(SQL(statement).format(schema=Identifier("packhorse")), given)
        thread = threading.Thread(target=drain)
        thread.start()
        waits = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
        eventually(lambda: connection.execute(waits).fetchone() == (1,), what="the drainer waits for the row")
        acting.commit()
        thread.join()
    assert answers in ([None], [[]])
    row = connection.execute("SELECT head_id, drainer FROM packhorse.parked_key").fetchone()
    assert row == (message_id, "restore")
