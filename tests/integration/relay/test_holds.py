"""What can't go is held, everything else flows; orders of people are carried out once and in order."""

import signal
import threading
from collections.abc import Iterator
from random import Random

import psycopg
import pytest
from tests.support.cli import packhorse
from tests.support.holds import held, holds, none_held, relay
from tests.support.relay import Relays, Writer, insert
from tests.support.topics import (
    first_arrivals,
    lose_topic,
    make_topic,
    records,
    set_limit,
    wait_for,
    wait_for_limit,
)
from tests.support.wait import eventually

from packhorse.core.clock import SYSTEM_CLOCK
from packhorse.core.errors import OwnershipLost
from packhorse.core.person import Person
from packhorse.local.settings import Endpoints
from packhorse.producer.grants import grants
from packhorse.relay.orders.postgres import PostgresOrders
from packhorse.relay.orders.republish import Wanted
from packhorse.relay.postgres.status import read_status

LARGE = Random(7).randbytes(20_000)
"""Larger than the limit that these tests set on a topic; a client can't make it smaller."""


@pytest.fixture
def narrow(stack: Endpoints, topic: str) -> str:
    """Provide the topic, which takes no row as large as LARGE."""
    set_limit(stack.kafka_bootstrap, topic, 10_000)
    wait_for_limit(stack.kafka_bootstrap, topic, LARGE, refused=True)
    return topic


def widen(stack: Endpoints, topic: str) -> None:
    """Let the topic take LARGE."""
    set_limit(stack.kafka_bootstrap, topic, 1_000_000)
    wait_for_limit(stack.kafka_bootstrap, topic, LARGE, refused=False)


def ids_on(stack: Endpoints, topic: str, key: bytes) -> list[str]:
    """Return the first arrivals of *key*."""
    return first_arrivals(records(stack.kafka_bootstrap, topic)).get(key, [])


@pytest.mark.case("R-10")
def test_a_row_too_large_holds_its_key_and_goes_in_order_once_it_is_released(
    group: Relays, database: str, stack: Endpoints, narrow: str
) -> None:
    """Fails when the rows of other keys wait too, when those of its own go on, or when a release overtakes."""
    group.start()
    with psycopg.connect(database, autocommit=True) as connection:
        first = insert(connection, "k")
        bad = insert(connection, "k", payload=LARGE)
        behind = [insert(connection, "k") for _ in range(3)]
        others = [insert(connection, f"o{n}") for n in range(20)]
        (view,) = held(database, "too_large")
        wait_for(stack.kafka_bootstrap, narrow, 21)
        arrived = {record.id for record in records(stack.kafka_bootstrap, narrow)} - {"probe"}
        assert arrived == {first, *others}
        assert (view.hold.fault.id, view.waits_for_a_person) == (bad, True)
        shown = relay(group, "hold", "show", view.id, "--json")
        waiting = shown.json()["waiting"]
        assert waiting["rows"] == 4
        assert [row["message_id"] for row in waiting["first"]] == [bad, *behind]
        assert relay(group, "holds").code == 1
        assert relay(group, "status", "--sample", "0").code == 1
        checks = packhorse("doctor", "--json", **group.environment).json()["checks"]
        (found,) = [each for each in checks if each["check"] == "holds"]
        assert (found["verdict"], f"person: {view.id};" in found["found"]) == ("failed", True)
        where = packhorse("status", behind[0], **group.environment).out
        assert f"held by the relay, hold {view.id}: too_large" in where

        failed = relay(group, "hold", "release", view.id, "--yes", "--wait", "20")
        assert failed.code == 1, failed
        assert "held again, too_large" in failed.out
        widen(stack, narrow)
        done = relay(group, "hold", "release", view.id, "--why", "limit raised", "--yes", "--wait", "20")
        assert done.code == 0, done
        last = insert(connection, "k")
    wait_for(stack.kafka_bootstrap, narrow, 27)
    assert ids_on(stack, narrow, b"k") == [first, bad, *behind, last]
    assert not holds(database)
    assert relay(group, "hold", "release", view.id, "--yes").code != 0


@pytest.mark.case("R-10")
def test_a_missing_topic_is_held_alone_and_heals_by_itself(
    group: Relays, database: str, stack: Endpoints, topic: str, topic_prefix: str
) -> None:
    """Fails when a topic that is missing stops another, or waits for a person."""
    group.start()
    with psycopg.connect(database, autocommit=True) as connection:
        later = [insert(connection, "k", kind="later")]
        now = [insert(connection, "k")]
        (view,) = held(database, "missing")
        assert (view.hold.fault.id, view.hold.fault.heals) == (None, True)
        assert relay(group, "holds").code == 0, "no person is needed"
        later.append(insert(connection, "k", kind="later"))
        now.append(insert(connection, "k"))
        assert first_arrivals(wait_for(stack.kafka_bootstrap, topic, 2)) == {b"k": now}
        make_topic(stack.kafka_bootstrap, f"{topic_prefix}.later")
        found = wait_for(stack.kafka_bootstrap, f"{topic_prefix}.later", 2)
        assert first_arrivals(found) == {b"k": later}
        none_held(database)
        later.append(insert(connection, "k", kind="later"))
        assert first_arrivals(wait_for(stack.kafka_bootstrap, f"{topic_prefix}.later", 3)) == {b"k": later}


@pytest.mark.case("R-10")
def test_a_row_is_given_up_by_name_on_record_and_the_rest_of_its_key_leaves(
    group: Relays, database: str, stack: Endpoints, narrow: str
) -> None:
    """Fails when a discard takes another row, sends the row all the same, or is not on the record."""
    group.start()
    with psycopg.connect(database, autocommit=True) as connection:
        other = insert(connection, "o")
        bad = insert(connection, "k", payload=LARGE)
        behind = insert(connection, "k")
        (view,) = held(database, "too_large")
        eventually(lambda: ids_on(stack, narrow, b"o"), what="the other key's row is there")
        wrong = relay(group, "hold", "discard", view.id, "--row", other, "--why", "a mistake", "--yes")
        assert wrong.code != 0
        assert "does not wait in hold" in wrong.err
        asked = relay(
            group,
            "hold",
            "discard",
            view.id,
            "--row",
            bad,
            "--why",
            "not worth it",
            "--wait",
            "20",
            given="y\n",
        )
        assert asked.code == 0, asked
        assert "k" not in asked.out.split(), "keys are personal data"
        again = relay(group, "hold", "discard", view.id, "--row", bad, "--why", "twice", "--yes")
        assert "has ended already: discard by" in again.err
        acts = connection.execute("SELECT act, message_id::text, why FROM packhorse.audit").fetchall()
    assert ids_on(stack, narrow, b"k") == [behind]
    assert acts == [("discard", bad, "not worth it")]
    assert packhorse("status", bad, "--json", **group.environment).json()["published"] == "never"


@pytest.mark.case("R-10")
@pytest.mark.parametrize("point", ["release_sent", "release_confirmed"])
def test_a_killed_owner_s_holds_and_releases_are_its_successor_s(
    group: Relays, database: str, stack: Endpoints, narrow: str, point: str
) -> None:
    """Fails when a hold lives in memory alone, or a position is saved before its rows are confirmed."""
    group.start(point, "3").wait_for("this process owns the shard")
    group.start()
    with psycopg.connect(database, autocommit=True) as connection:
        ids = [insert(connection, "k"), insert(connection, "k", payload=LARGE)]
        ids += [insert(connection, "k") for _ in range(30)]
        (view,) = held(database, "too_large")
        widen(stack, narrow)
        ordered = relay(group, "hold", "release", view.id, "--yes", "--wait", "20")
        assert ordered.code == 0, ordered
        ids.append(insert(connection, "k"))
    wait_for(stack.kafka_bootstrap, narrow, len(ids) + 1)
    assert read_status(database, "packhorse").epoch == 2, "the first relay was killed"
    assert ids_on(stack, narrow, b"k") == ids
    assert [view.state for view in holds(database, ended=True)] == ["ended"]


@pytest.mark.case("R-10")
def test_a_release_keeps_its_rate_and_others_flow_meanwhile(
    group: Relays, database: str, stack: Endpoints, narrow: str
) -> None:
    """Fails when the rate is not kept, or the relay stands still while a slow release catches up."""
    group.start()
    with psycopg.connect(database, autocommit=True) as connection:
        ids = [insert(connection, "k", payload=LARGE), *(insert(connection, "k") for _ in range(40))]
        (view,) = held(database, "too_large")
        widen(stack, narrow)
        began = SYSTEM_CLOCK.monotonic()
        assert relay(group, "hold", "release", view.id, "--rate", "10", "--yes").code == 0
        eventually(lambda: holds(database)[0].hold.sent, what="the release is on its way")
        insert(connection, "o")
        eventually(lambda: ids_on(stack, narrow, b"o"), what="the other key's row is there")
        assert holds(database), "the release goes on"
        none_held(database)
        assert SYSTEM_CLOCK.monotonic() - began > 3
    assert ids_on(stack, narrow, b"k") == ids


@pytest.fixture
def as_operator(database: str, topic_prefix: str) -> Iterator[str]:
    """Provide the database's URL for a role with the printed rights of people and no others."""
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute(f"CREATE ROLE {topic_prefix} LOGIN")
        try:
            for statement in grants("packhorse", [("operator", topic_prefix)]):
                connection.execute(statement.encode())
            yield f"postgresql://{topic_prefix}@{database.rpartition('@')[2]}"
        finally:
            connection.execute(f"DROP OWNED BY {topic_prefix}; DROP ROLE {topic_prefix}")


def test_of_two_people_one_orders_and_the_other_is_told(
    group: Relays, database: str, stack: Endpoints, narrow: str, as_operator: str
) -> None:
    """Fails when an order is written without looking again under the lock, or needs more than the printed rights."""
    process = group.start()
    with psycopg.connect(database, autocommit=True) as connection:
        insert(connection, "k", payload=LARGE)
        (view,) = held(database, "too_large")
        assert process.stop() == 0
        said: list[str] = []

        def order() -> None:
            with PostgresOrders(as_operator, "packhorse") as orders:
                try:
                    orders.release([view], person=Person(user="somebody"), why=None)
                except OwnershipLost as lost:
                    said.append(str(lost))

        people = [threading.Thread(target=order) for _ in range(4)]
        for person in people:
            person.start()
        for person in people:
            person.join(20)
        assert len(said) == 3
        assert all("ordered already: release by somebody" in text for text in said)
        count = connection.execute(
            "SELECT (SELECT count(*) FROM packhorse.audit), (SELECT orders FROM packhorse.relay)"
        )
        assert count.fetchone() == (1, 1)
        with PostgresOrders(as_operator, "packhorse") as orders:
            found = orders.found(Wanted(aggregatetype="orders", first=1))
            assert orders.waiting(view).rows == 1
            assert orders.republish(found, person=Person(user="somebody"), why=None) != [view.id]
        widen(stack, narrow)
        group.start()
        none_held(database)


def test_a_lost_topic_is_filled_again_in_order_with_what_was_held_too(
    group: Relays, database: str, stack: Endpoints, narrow: str, topic_prefix: str
) -> None:
    """
    Fails when new rows overtake the range, when a hold of the topic is not set back with it, or another topic is sent again.

    Key k is held when the topic is lost: its row that was published before must come again too.
    """
    make_topic(stack.kafka_bootstrap, f"{topic_prefix}.lines")
    process = group.start()
    with psycopg.connect(database, autocommit=True) as connection:
        ids = {key: [insert(connection, key) for _ in range(5)] for key in ("a", "k")}
        line = insert(connection, "a", kind="lines")
        wait_for(stack.kafka_bootstrap, narrow, 10)
        wait_for(stack.kafka_bootstrap, f"{topic_prefix}.lines", 1)
        ids["k"].append(insert(connection, "k", payload=LARGE))
        (view,) = held(database, "too_large")
        refused = relay(group, "republish", "--aggregatetype", "orders", "--from", "1", "--yes")
        assert f"hold {view.id} of this topic is open" in refused.err
        assert process.stop() == 0
        lose_topic(stack.kafka_bootstrap, narrow, max_message_bytes="10000")
        ids["a"].append(insert(connection, "a"))
        counted = relay(group, "republish", "--topic", narrow, "--from", "1", "--dry-run", "--json").json()
        assert (counted["goes"], counted["gone"], counted["obstacles"]) == (12, None, [])
        assert relay(group, "republish", "--topic", narrow, "--from", "1", "--why", "lost", "--yes").code == 0
        ids["a"].append(insert(connection, "a"))
        group.start()
        held(database, "too_large")
        ids["a"].append(insert(connection, "a"))
        assert first_arrivals(wait_for(stack.kafka_bootstrap, narrow, 8)) == {b"a": ids["a"]}
        widen(stack, narrow)
        assert relay(group, "hold", "release", view.id, "--yes", "--wait", "20").code == 0
        found = first_arrivals(wait_for(stack.kafka_bootstrap, narrow, 15))
        assert {key: found[key.encode()] for key in ids} == ids
        assert [record.id for record in records(stack.kafka_bootstrap, f"{topic_prefix}.lines")] == [line]


def test_a_bounded_range_goes_again_and_nothing_else(
    group: Relays, database: str, stack: Endpoints, topic: str
) -> None:
    """Fails when rows outside of the range go again, when new ones are passed over, or the topic stays held."""
    group.start()
    with psycopg.connect(database, autocommit=True) as connection:
        ids = [insert(connection, f"k{n % 3}") for n in range(12)]
        wait_for(stack.kafka_bootstrap, topic, 12)
        arguments = ["republish", "--aggregatetype", "orders", "--from", "4", "--to", "7", "--wait", "20"]
        said = relay(group, *arguments, given="y\n")
        assert said.code == 0, said
        ids.append(insert(connection, "k0"))
        found = [record.id for record in wait_for(stack.kafka_bootstrap, topic, 13)]
        assert [n + 1 for n, id_ in enumerate(ids) if found.count(id_) == 2] == [4, 5, 6, 7]
        assert {found.count(id_) for id_ in ids} == {1, 2}
        none_held(database)
        empty = relay(group, "republish", "--aggregatetype", "nothing", "--from", "1", "--yes")
        assert "no row of nothing lies in the range" in empty.err


def test_a_range_goes_again_while_writers_are_busy_and_the_two_meet(
    group: Relays, database: str, stack: Endpoints, topic: str
) -> None:
    """Fails when a release never catches up with busy writers, or a row in hand is passed over when the hold begins."""
    writer = Writer(database)
    writer.prepare()
    group.start()
    with writer.running():
        wait_for(stack.kafka_bootstrap, topic, 200)
        since = ["--aggregatetype", "orders", "--from", "2020-01-01T00:00:00Z"]
        said = relay(group, "republish", *since, "--yes", "--wait", "30")
        assert said.code == 0, said
    found = wait_for(stack.kafka_bootstrap, topic, writer.count)
    assert first_arrivals(found) == writer.committed
    assert len(found) >= writer.count + 200, "the range went again"


def test_an_owner_that_was_frozen_does_not_write_back_holds_that_were_set_back_meanwhile(
    group: Relays, database: str, stack: Endpoints, narrow: str
) -> None:
    """Fails when the order leaves the token in the table: whoever wakes renews the lease and goes on from its memory of the hold."""
    process = group.start()
    with psycopg.connect(database, autocommit=True) as connection:
        first = insert(connection, "k")
        wait_for(stack.kafka_bootstrap, narrow, 1)
        bad = insert(connection, "k", payload=LARGE)
        (view,) = held(database, "too_large")
        process.send(signal.SIGSTOP)
        eventually(lambda: read_status(database, "packhorse").owner is None, what="the lease is over")
        again = relay(group, "republish", "--aggregatetype", "orders", "--from", "1", "--yes")
        assert again.code == 0, again
        assert connection.execute("SELECT token FROM packhorse.relay").fetchone() == (None,)
        process.send(signal.SIGCONT)
        held(database, "too_large")
        widen(stack, narrow)
        done = relay(group, "hold", "release", view.id, "--yes", "--wait", "20")
        assert done.code == 0, done
    arrived = [record.id for record in records(stack.kafka_bootstrap, narrow) if record.key == b"k"]
    assert arrived == [first, first, bad]
