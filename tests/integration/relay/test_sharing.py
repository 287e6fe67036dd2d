"""Several shards and several relays: joins, deaths, another number of shards, under writers that never stop."""

import signal
from uuid import UUID

import psycopg
import pytest
from tests.support.cli import packhorse_started
from tests.support.relay import RelayProcess, Relays, Writer, insert
from tests.support.topics import first_arrivals, wait_for
from tests.support.wait import eventually

from packhorse.core.errors import NotReady
from packhorse.core.person import Person
from packhorse.local.settings import Endpoints
from packhorse.relay.errors import StatementFailed
from packhorse.relay.orders.postgres import PostgresOrders
from packhorse.relay.orders.republish import Wanted
from packhorse.relay.postgres.outbox import PostgresOutbox
from packhorse.relay.postgres.status import read_all
from packhorse.relay.resharding.model import Step
from packhorse.relay.resharding.postgres import PostgresResharding


@pytest.fixture
def writer(database: str) -> Writer:
    """Provide a writer of many keys, so that each shard has some."""
    made = Writer(database, keys=24)
    made.prepare()
    return made


def reshard(database: str, number: int) -> None:
    """Change the number of shards, as the command does."""
    table = PostgresResharding(database, "packhorse")

    def there() -> bool:
        return table.advance(number, person=Person(user="test"), why=None)[0] in {Step.SWITCH, Step.DONE}

    try:
        eventually(there, what=f"there are {number} shards", timeout=30)
    finally:
        table.close()


def owners(database: str) -> list[str | None]:
    """Return who owns each shard."""
    return [shard.owner for shard in read_all(database, "packhorse")]


def shared_evenly(database: str, processes: int, shards: int) -> None:
    """Wait until each shard has an owner, and all processes have as many."""

    def even() -> bool:
        found = owners(database)
        counts = {owner: found.count(owner) for owner in found}
        return (
            None not in counts
            and len(found) == shards
            and sorted(counts.values()) == [shards // processes] * processes
        )

    eventually(even, what=f"{processes} processes share {shards} shards evenly", timeout=30)


def all_published(database: str) -> None:
    """Wait until the table says that nothing waits in any shard."""

    def nothing_waits() -> bool:
        found = read_all(database, "packhorse")
        return all(shard.lag_rows == 0 and shard.target is None for shard in found)

    eventually(nothing_waits, what="every row is published, by the table", timeout=30)


@pytest.mark.case("R-13")
def test_relays_join_and_die_and_the_number_of_shards_changes_without_loss_or_swap(
    group: Relays, writer: Writer, database: str, stack: Endpoints, topic: str
) -> None:
    """
    Fails when shards are dealt anew from horizons that differ, when a shard is given back before it is drained, or when a
    process keeps what another one owns.
    """
    with writer.running():
        first = group.start()
        first.wait_for("this process owns the shard")
        reshard(database, 4)
        shared_evenly(database, 1, 4)
        second = group.start()
        shared_evenly(database, 2, 4)
        first.send(signal.SIGKILL)
        first.ended()
        shared_evenly(database, 1, 4)
        third = group.start()
        shared_evenly(database, 2, 4)
        reshard(database, 2)
        shared_evenly(database, 2, 2)
        assert second.stop() == 0
        reshard(database, 1)
    found = wait_for(stack.kafka_bootstrap, topic, writer.count)
    all_published(database)
    assert first_arrivals(found) == writer.committed
    assert third.stop() == 0


def test_a_change_that_was_begun_is_taken_back_or_gone_on_with(group: Relays, database: str) -> None:
    """Fails when a died command leaves the shards stopped for good, or another number is mixed in."""
    table = PostgresResharding(database, "packhorse")
    try:
        assert table.advance(3, person=Person(user="test"), why=None)[0] is Step.ORDER
        with pytest.raises(Exception, match="a change to 3 shards is on its way"):
            table.advance(2, person=Person(user="test"), why=None)
        assert [each.shards_wanted for each in read_all(database, "packhorse")] == [3]
        assert table.abort(person=Person(user="test"), why=None)
        relay = group.start()
        relay.wait_for("this process owns the shard")
        assert table.advance(3, person=Person(user="test"), why=None)[0] is Step.ORDER
        eventually(
            lambda: table.advance(3, person=Person(user="test"), why=None)[0] is Step.SWITCH,
            what="three shards",
        )
        shared_evenly(database, 1, 3)
        assert relay.stop() == 0
    finally:
        table.close()


def test_a_shard_that_is_gone_ends_no_process(database: str) -> None:
    """Fails when a relay that wakes after the shards were dealt anew dies of it, with all other shards of its process."""
    outbox = PostgresOutbox(database, "packhorse", batch_rows=10, shard=3)
    try:
        with pytest.raises(NotReady):
            outbox.own(UUID(int=1), "test", 5)
        with pytest.raises(StatementFailed, match="shard 3 is gone"):
            outbox.orders()
    finally:
        outbox.close()


def test_no_range_is_sent_again_while_the_shards_change(database: str) -> None:
    """Fails when a topic is held then: nobody would own its shard until the change is done, and the change waits for the hold."""
    table = PostgresResharding(database, "packhorse")
    try:
        with psycopg.connect(database, autocommit=True) as connection:
            insert(connection, "k")
        with PostgresOrders(database, "packhorse") as orders:
            found = orders.found(Wanted(aggregatetype="orders", first=1))
            assert table.advance(2, person=Person(user="test"), why=None)[0] is Step.ORDER
            with pytest.raises(NotReady, match="the number of shards changes"):
                orders.republish(found, person=Person(user="test"), why=None)
            assert table.abort(person=Person(user="test"), why=None)
            assert len(orders.republish(found, person=Person(user="test"), why=None)) == 1
        with pytest.raises(NotReady, match="or release it"):
            table.advance(2, person=Person(user="test"), why=None)
    finally:
        table.close()


@pytest.mark.case("R-12")
@pytest.mark.case("R-13")
def test_a_stand_by_takes_over_after_a_kill_and_a_clean_stop_leaves_the_shard_free(
    group: Relays, database: str
) -> None:
    """Fails when a clean stop keeps the lease, or a dead owner's is never taken over."""

    def owned_by(process: RelayProcess) -> bool:
        return str(owners(database)[0]).endswith(f":{process.process.pid}")

    first = group.start()
    eventually(lambda: owned_by(first), what="the first one owns the shard")
    second = group.start()
    second.wait_for("stands by")
    first.send(signal.SIGKILL)
    first.ended()
    eventually(lambda: owned_by(second), what="the stand-by owns the shard")
    assert second.stop() == 0
    assert owners(database) == [None]


def test_the_command_shows_and_changes_the_shards(group: Relays, database: str) -> None:
    relay = group.start()
    relay.wait_for("this process owns the shard")
    with packhorse_started("relay", "shards", "2", "--yes", PACKHORSE_DATABASE_URL=database) as command:
        out, err = command.communicate(timeout=60)
    assert command.returncode == 0, err
    assert "from now on there are 2 shards" in err
    assert len(out.splitlines()) == 2
    shared_evenly(database, 1, 2)
