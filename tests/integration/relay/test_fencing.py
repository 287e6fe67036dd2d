"""A relay that was frozen with rows on the wire, and its successor: what readers see with and without fencing."""

import signal
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from tests.support.relay import Relays, Writer, insert, relays, row
from tests.support.stack import PrivateBroker
from tests.support.topics import first_arrivals, make_topic, records, wait_for
from tests.support.wait import eventually

from packhorse.core.clock import SYSTEM_CLOCK
from packhorse.core.kafka_properties import merged
from packhorse.local.settings import Endpoints
from packhorse.relay.kafka import DEFAULTS, OURS, KafkaBroker, fence_name
from packhorse.relay.model import ID
from packhorse.relay.ports import Failed
from packhorse.relay.postgres.status import read_status


@pytest.fixture
def proxied(
    tmp_path: Path, private_kafka: PrivateBroker, database: str, topic_prefix: str
) -> Iterator[Relays]:
    """Provide relays that reach the broker through its proxy."""
    make_topic(private_kafka.direct_bootstrap, f"{topic_prefix}.orders", partitions=1)
    with relays(
        tmp_path, database=database, bootstrap=private_kafka.bootstrap, namespace=topic_prefix
    ) as made:
        yield made


@pytest.mark.case("R-12")
@pytest.mark.parametrize("fenced", [True, False])
def test_what_a_frozen_relay_had_on_the_wire_comes_after_its_successor_s_rows_only_without_fencing(
    fenced: bool, proxied: Relays, private_kafka: PrivateBroker, database: str, topic_prefix: str
) -> None:
    """
    Fails when the setting does not reach the client: the older row would stand behind the newer.

    The request with row 2 waits in the proxy while its sender is frozen, the successor sends rows 2 and 3, then it arrives.
    """
    bootstrap, topic = private_kafka.direct_bootstrap, f"{topic_prefix}.orders"
    frozen = proxied.start(fenced=fenced)
    with psycopg.connect(database, autocommit=True) as connection:
        ids = [insert(connection, "k")]
        wait_for(bootstrap, topic, 1)
        eventually(lambda: read_status(database, "packhorse").lag_rows == 0, what="row 1 is published")
        private_kafka.proxy.freeze()
        ids.append(insert(connection, "k"))
        eventually(
            lambda: "confirms nothing" in (read_status(database, "packhorse").trouble or ""),
            what="row 2 is on its way",
        )
        frozen.send(signal.SIGSTOP)
        proxied.environment["PACKHORSE_KAFKA_BOOTSTRAP_SERVERS"] = bootstrap
        successor = proxied.start(fenced=fenced)
        successor.wait_for("this process owns the shard")
        ids.append(insert(connection, "k"))
        assert [record.id for record in wait_for(bootstrap, topic, 3)] == ids
        private_kafka.proxy.resume()
        if not fenced:
            eventually(lambda: len(records(bootstrap, topic)) > 3, what="the late row arrives")
        frozen.send(signal.SIGCONT)
        frozen.wait_for("no longer owns the shard")
        ids.append(insert(connection, "k"))
        found = [record.id for record in wait_for(bootstrap, topic, 4)]
    assert found == ids if fenced else found == [*ids[:3], ids[1], ids[3]]


@pytest.mark.case("R-12")
@pytest.mark.case("R-13")
def test_an_owner_that_the_broker_fenced_does_not_fence_its_successor(
    group: Relays, database: str, stack: Endpoints, topic: str
) -> None:
    """
    Fails when a fenced relay makes its client anew and goes on, because its lease runs by its own clock: the two would fence each
    other. The end at the broker's word, the record of trouble and the save each hold it alone.

    Somebody ends the lease in the table, so that the first relay believes in it for a minute still.
    """
    writer = Writer(database)
    writer.prepare()
    with writer.running(threads=1):
        first = group.start(lease=60, fenced=True)
        wait_for(stack.kafka_bootstrap, topic, 10)
        with psycopg.connect(database, autocommit=True) as connection:
            connection.execute(
                "UPDATE packhorse.relay SET lease_until = clock_timestamp() - interval '1 second'"
            )
        second = group.start(lease=60, fenced=True)
        second.wait_for("this process owns the shard")
        first.wait_for("no longer owns the shard")
        before = writer.count
        eventually(lambda: writer.count > before + 20, what="the applications go on")
    found = wait_for(stack.kafka_bootstrap, topic, writer.count)
    eventually(lambda: read_status(database, "packhorse").lag_rows == 0, what="every row is published")
    assert first_arrivals(found) == writer.committed
    last = {record.key: record.id for record in found}
    assert last == {key: ids[-1] for key, ids in writer.committed.items()}
    assert not second.said("another relay has taken over")
    assert read_status(database, "packhorse").epoch == 2


@pytest.mark.case("R-12")
def test_a_client_whose_name_another_one_took_confirms_nothing_more(
    stack: Endpoints, topic_prefix: str
) -> None:
    """
    Fails when two clients send under different names, or the name is taken when a client is made instead of at its first row.

    A standby that only waits must not fence the owner.
    """
    topic = f"{topic_prefix}.orders"
    make_topic(stack.kafka_bootstrap, topic, partitions=1)
    properties = merged(
        DEFAULTS, OURS, bootstrap_servers=stack.kafka_bootstrap, sasl_password=None, part="relay"
    )
    name = fence_name(topic_prefix, "packhorse", 0)
    owner, successor = (
        KafkaBroker(properties, namespace=topic_prefix, clock=SYSTEM_CLOCK, fence=name) for _ in range(2)
    )
    try:
        rows = [row(n) for n in range(5)]
        owner.send(rows[:1])
        eventually(lambda: owner.confirmed(0.1), what="row 0 is committed")
        owner.send(rows[1:2])
        successor.send(rows[2:3])
        eventually(lambda: successor.confirmed(0.1), what="row 2 is committed")
        owner.send(rows[3:4])
        failed = eventually(lambda: owner.confirmed(0.1) or owner.failed(), what="the owner is told")
        assert isinstance(failed, Failed)
        assert failed.fault is None
        assert failed.fenced
        assert "another relay has taken over" in failed.reason
        successor.send(rows[4:])
        eventually(lambda: successor.confirmed(0.1), what="row 4 is committed")
        assert [record.id for record in records(stack.kafka_bootstrap, topic)] == [
            rows[n][ID] for n in (0, 2, 4)
        ]
    finally:
        owner.close()
        successor.close()
