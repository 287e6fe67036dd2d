"""A partition without leader, one with too few replicas, a topic that is forbidden: each is held alone and heals by itself."""

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # exported at run time
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)
from tests.support.relay import Relays, insert, relays
from tests.support.second_broker import SecondBroker, second_broker
from tests.support.stack import PrivateBroker, private_broker
from tests.support.topics import first_arrivals, records, wait_for
from tests.support.wait import eventually

from packhorse.core.partitions import partition_of
from packhorse.relay.postgres.status import read_status

ACLS = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
}
LEFT, RIGHT = (
    next(f"k{n}" for n in range(99) if partition_of(f"k{n}".encode(), 2) == partition) for partition in (0, 1)
)


@pytest.fixture(scope="module")
def first() -> Iterator[PrivateBroker]:
    """Provide a broker that asks for rights where somebody set some."""
    with private_broker(kafka=ACLS) as broker:
        yield broker


@pytest.fixture(scope="module")
def second(first: PrivateBroker) -> Iterator[SecondBroker]:
    """Provide a second one."""
    with second_broker(first) as broker:
        yield broker


@pytest.fixture
def beside(tmp_path: Path, first: PrivateBroker, database: str, topic_prefix: str) -> Iterator[Relays]:
    """Provide relays of the two brokers."""
    with relays(
        tmp_path, database=database, bootstrap=first.direct_bootstrap, namespace=topic_prefix
    ) as made:
        yield made


def place(bootstrap: str, topic: str, brokers: list[list[int]], **config: str) -> None:
    """Make *topic* with the replicas of each partition on *brokers*."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    settings = {name.replace("_", "."): value for name, value in config.items()}
    topics = [NewTopic(topic, len(brokers), replica_assignment=brokers, config=settings)]
    for future in admin.create_topics(topics).values():
        future.result(30)


def holds(database: str) -> list[tuple[object, ...]]:
    """Return what is held now."""
    with psycopg.connect(database) as connection:
        return connection.execute(
            "SELECT scope, aggregatetype, partition, code, heals FROM packhorse.relay_hold WHERE state <> 'ended' ORDER BY 2, 3"
        ).fetchall()


def all_published(database: str) -> None:
    eventually(
        lambda: not holds(database) and read_status(database, "packhorse").lag_rows == 0,
        what="no hold is left and nothing waits",
        timeout=40,
    )


@pytest.mark.case("R-10")
def test_partitions_that_lost_their_broker_are_held_alone_and_released_when_it_is_back(
    beside: Relays, first: PrivateBroker, second: SecondBroker, database: str, topic_prefix: str
) -> None:
    """
    Fails when silence of one partition stops the others, or a person is needed to release it.

    Partition 1 of "orders" has its only replica on the broker that is killed; "lines" needs two replicas in sync.
    """
    bootstrap, orders, lines = first.direct_bootstrap, f"{topic_prefix}.orders", f"{topic_prefix}.lines"
    place(bootstrap, orders, [[1], [2]])
    place(bootstrap, lines, [[1, 2]], min_insync_replicas="2")
    beside.start()
    sent: dict[bytes, list[str]] = {LEFT.encode(): [], RIGHT.encode(): []}
    replicated: list[str] = []
    with psycopg.connect(database, autocommit=True) as connection:

        def write() -> None:
            for key in (LEFT, RIGHT):
                sent[key.encode()].append(insert(connection, key))
            replicated.append(insert(connection, "k", kind="lines"))

        write()
        wait_for(bootstrap, orders, 2)
        wait_for(bootstrap, lines, 1)
        second.kill()
        write()
        wanted = [("partition", "lines", 0, True), ("partition", "orders", 1, True)]
        eventually(
            lambda: [(*scope, heals) for *scope, _, heals in holds(database)] == wanted,
            what="both partitions are held",
            timeout=40,
        )
        assert {hold[3] for hold in holds(database)} <= {"no_leader", "silent"}
        write()
        eventually(
            lambda: read_status(database, "packhorse").lag_rows == 0,
            what="the horizon passes what is held",
            timeout=20,
        )
        second.start()
        all_published(database)
    assert first_arrivals(records(bootstrap, orders)) == sent
    assert first_arrivals(records(bootstrap, lines)) == {b"k": replicated}


@pytest.mark.case("R-10")
def test_a_forbidden_topic_is_held_alone_and_released_when_the_right_is_back(
    beside: Relays, first: PrivateBroker, database: str, topic_prefix: str
) -> None:
    """Fails when a right that is taken away is told as trouble with the broker, or blames a row."""
    bootstrap, topic = first.direct_bootstrap, f"{topic_prefix}.secret"
    # on the broker that asks for rights; the second one was killed a moment ago and may lag behind
    place(bootstrap, topic, [[1]])
    place(bootstrap, f"{topic_prefix}.orders", [[1]])
    denied = AclBinding(
        ResourceType.TOPIC, topic, ResourcePatternType.LITERAL, "User:ANONYMOUS", "*", AclOperation.WRITE, AclPermissionType.DENY,
    )  # fmt: skip
    beside.start()
    admin = AdminClient({"bootstrap.servers": bootstrap})
    with psycopg.connect(database, autocommit=True) as connection:
        ids = [insert(connection, "k", kind="secret")]
        wait_for(bootstrap, topic, 1)
        for made in admin.create_acls([denied]).values():
            made.result(30)

        def denied_by_now() -> bool:
            """Write another row: the right is gone a moment after it was taken away, on each broker."""
            ids.append(insert(connection, "k", kind="secret"))
            return holds(database) == [("topic", "secret", None, "forbidden", True)]

        eventually(denied_by_now, what="the topic is held", timeout=30)
        other = insert(connection, "k")
        assert wait_for(bootstrap, f"{topic_prefix}.orders", 1)[0].id == other
        this = AclBindingFilter(
            ResourceType.TOPIC, topic, ResourcePatternType.LITERAL, "User:ANONYMOUS", "*", AclOperation.ANY, AclPermissionType.ANY
        )  # fmt: skip
        for deleted in admin.delete_acls([this]).values():
            deleted.result(30)
        all_published(database)
    assert first_arrivals(records(bootstrap, topic)) == {b"k": ids}
