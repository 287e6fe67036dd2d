"""The topics' side of the comparison on a real broker: what is deleted, compacted, absent or somebody else's."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from tests.support.cli import packhorse
from tests.support.topics import make_topic

from packhorse.core.clock import SYSTEM_CHANCE, SYSTEM_CLOCK
from packhorse.core.errors import BrokerUnavailable, SettingsError
from packhorse.local.settings import Endpoints
from packhorse.relay.verify.kafka import KafkaTopics
from packhorse.relay.verify.model import Topic

LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)


@pytest.fixture
def topics(stack: Endpoints) -> Iterator[KafkaTopics]:
    with KafkaTopics(stack.kafka_bootstrap, properties={}, sasl_password=None, clock=SYSTEM_CLOCK) as made:
        yield made


def send(bootstrap: str, topic: str, partition: int, *ids: str | None) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "log_level": 2})
    for id_ in ids:
        name = "other" if id_ is None else "id"
        producer.produce(topic, b"x", "k", partition=partition, headers=[(name, id_)])
    assert producer.flush(10) == 0


def send_in_transaction(bootstrap: str, topic: str, partition: int, id_: str) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "log_level": 2, "transactional.id": topic})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(topic, b"x", "k", partition=partition, headers=[("id", id_)])
    producer.commit_transaction(30)


def test_a_topic_is_read_from_a_time_to_the_ends_of_now_and_tells_what_it_may_have_deleted(
    stack: Endpoints, topics: KafkaTopics, topic_prefix: str
) -> None:
    """Fails when reading follows a growing topic, or a partition that has deleted records counts as whole."""
    bootstrap, name = stack.kafka_bootstrap, f"{topic_prefix}.orders"
    make_topic(bootstrap, name, partitions=3)
    ids = [str(SYSTEM_CHANCE.token()) for _ in range(4)]
    send(bootstrap, name, 0, *ids[:3], None, "no uuid")
    send(bootstrap, name, 1, ids[3])
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for future in admin.delete_records([TopicPartition(name, 0, 1)]).values():
        future.result(30)
    ids.append(str(SYSTEM_CHANCE.token()))
    send_in_transaction(bootstrap, name, 2, ids[4])
    topic = topics.describe(name)
    assert topic == Topic(name=name, partitions=3, compacted=False)
    stretches = topics.stretches(topic, LONG_AGO)
    assert [(one.low, one.start, one.end, one.maybe_cut) for one in stretches] == [
        (1, 1, 5, True),
        (0, 0, 1, False),
        (0, 0, 2, False),  # a record and the mark that its transaction is over
    ]
    send(bootstrap, name, 1, str(SYSTEM_CHANCE.token()))
    seen = [one for batch in topics.read([one for one in stretches if not one.empty]) for one in batch]
    assert sorted(str(one.id) for one in seen if one.id is not None) == sorted(ids[1:])
    assert sum(one.id is None for one in seen) == 2
    later = SYSTEM_CLOCK.now() + timedelta(hours=1)
    assert all(one.empty for one in topics.stretches(topic, later))


def test_a_compacted_and_an_absent_topic_are_told(
    stack: Endpoints, topics: KafkaTopics, topic_prefix: str
) -> None:
    make_topic(stack.kafka_bootstrap, f"{topic_prefix}.state", partitions=1, cleanup_policy="compact")
    assert topics.describe(f"{topic_prefix}.state").compacted
    assert topics.describe(f"{topic_prefix}.nowhere") == Topic(name=f"{topic_prefix}.nowhere", partitions=0)


def test_a_named_topic_that_neither_side_knows_is_refused(
    stack: Endpoints, database: str, topic_prefix: str
) -> None:
    """Fails when a mistyped --topic is answered with nothing missing."""
    environ = {
        "PACKHORSE_DATABASE_URL": database, "PACKHORSE_KAFKA_BOOTSTRAP_SERVERS": stack.kafka_bootstrap, "PACKHORSE_NAMESPACE": topic_prefix,
    }  # fmt: skip
    ran = packhorse(
        "relay", "verify", "--since", "2026-01-01T00:00Z", "--topic", f"{topic_prefix}.ordrs", **environ
    )
    assert ran.code == 3
    assert f"topic {topic_prefix}.ordrs does not exist" in ran.err


def test_a_broker_that_is_away_and_a_property_that_would_commit_are_named() -> None:
    with pytest.raises(SettingsError, match=r"enable\.auto\.commit=True"):
        KafkaTopics(
            "127.0.0.1:1", properties={"enable.auto.commit": True}, sasl_password=None, clock=SYSTEM_CLOCK
        )
    with (
        KafkaTopics(
            "127.0.0.1:1", properties={}, sasl_password=None, clock=SYSTEM_CLOCK, ask_within=0.5
        ) as away,
        pytest.raises(BrokerUnavailable, match=r"topic shop\.orders"),
    ):
        away.describe("shop.orders")
