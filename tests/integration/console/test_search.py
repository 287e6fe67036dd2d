"""The bounded look into a topic, on a real broker."""

from collections.abc import Iterator
from datetime import timedelta
from functools import partial
from uuid import UUID

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]
from tests.support.console_rows import new_id

from packhorse.console.facts import Place
from packhorse.console.finding.model import AtPlace
from packhorse.console.truth.kafka import KafkaTopics, Limits
from packhorse.core.clock import SYSTEM_CLOCK
from packhorse.core.errors import SettingsError
from packhorse.core.partitions import partition_of
from packhorse.local.settings import Endpoints

PARTITIONS = 3
SINCE = timedelta(seconds=1)


@pytest.fixture
def topic(stack: Endpoints, topic_prefix: str) -> Iterator[str]:
    name = f"{topic_prefix}.aircraft"
    admin = AdminClient({"bootstrap.servers": stack.kafka_bootstrap})
    admin.create_topics([NewTopic(name, PARTITIONS, 1)])[name].result(10)
    yield name
    admin.delete_topics([name])[name].result(10)


def produce(stack: Endpoints, topic: str, ids: list[UUID], *, keyed: bool = True) -> None:
    producer = Producer({"bootstrap.servers": stack.kafka_bootstrap, "partitioner": "murmur2_random"})
    for number, each in enumerate(ids):
        where = {"key": "N14228"} if keyed else {"partition": number % PARTITIONS}
        producer.produce(topic, value=b"x", headers=[("id", str(each).encode()), ("type", b"t")], **where)
    assert producer.flush(10) == 0


def topics(stack: Endpoints, **limits: float) -> KafkaTopics:
    given = Limits(**{"records": 1000, "seconds": 10, "timeout": 5, **limits})  # type: ignore[arg-type]
    return KafkaTopics(stack.kafka_bootstrap, properties={}, sasl_password=None, limits=given)


def test_the_record_is_found_in_its_keys_partition(stack: Endpoints, topic: str) -> None:
    since = SYSTEM_CLOCK.now()
    ids = [new_id() for _ in range(5)]
    produce(stack, topic, ids)
    found = topics(stack).look(topic, key="N14228", message_id=ids[3], since=since)
    assert found.place is not None
    assert (found.place.topic, found.place.partition) == (topic, partition_of(b"N14228", PARTITIONS))
    assert found.place.offset == 3


def test_without_a_key_every_partition_is_searched(stack: Endpoints, topic: str) -> None:
    since = SYSTEM_CLOCK.now()
    ids = [new_id() for _ in range(9)]
    produce(stack, topic, ids, keyed=False)
    found = [
        topics(stack).look(topic, key=None, message_id=each, since=since).place for each in ids[-PARTITIONS:]
    ]
    assert sorted(place.partition for place in found if place is not None) == [0, 1, 2]


def test_what_is_not_there_is_not_there_to_the_end(stack: Endpoints, topic: str) -> None:
    since = SYSTEM_CLOCK.now()
    produce(stack, topic, [new_id() for _ in range(5)])
    found = topics(stack).look(topic, key="N14228", message_id=new_id(), since=since)
    assert found.place is None
    assert "5 records read, not there, to the end" in found.said


def test_a_search_stops_at_its_bound_and_says_so(stack: Endpoints, topic: str) -> None:
    since = SYSTEM_CLOCK.now()
    ids = [new_id() for _ in range(20)]
    produce(stack, topic, ids)
    found = topics(stack, records=10).look(topic, key="N14228", message_id=ids[-1], since=since)
    assert found.place is None
    assert "10 records read" in found.said
    assert "may stand further on" in found.said


def test_a_time_with_no_record_since_is_said_so(stack: Endpoints, topic: str) -> None:
    produce(stack, topic, [new_id()])
    later = SYSTEM_CLOCK.now() + timedelta(hours=1)
    assert "no record since" in topics(stack).look(topic, key="N14228", message_id=new_id(), since=later).said


def test_a_missing_topic_is_said_so(stack: Endpoints, topic_prefix: str) -> None:
    name = f"{topic_prefix}.nothing"
    said = topics(stack).look(name, key="k", message_id=new_id(), since=SYSTEM_CLOCK.now()).said
    assert said == f"not searched: topic {name} does not exist; see packhorse topics plan"


def test_a_broker_that_is_down_is_said_so_in_time() -> None:
    away = KafkaTopics("127.0.0.1:1", properties={}, sasl_password=None, limits=Limits(timeout=1))
    said = away.look("a.b", key="k", message_id=new_id(), since=SYSTEM_CLOCK.now()).said
    assert said.startswith("not searched: ")
    assert "is the broker up" in said


def test_a_property_that_would_commit_is_refused() -> None:
    with pytest.raises(SettingsError, match=r"enable\.auto\.commit"):
        KafkaTopics("x:1", properties={"enable.auto.commit": True}, sasl_password=None, limits=Limits())


def test_one_place_is_looked_at_and_names_its_message(stack: Endpoints, topic: str) -> None:
    """Fails when a place is answered with another record's id, or a place that holds none is an error."""
    ids = [new_id() for _ in range(5)]
    produce(stack, topic, ids)
    at = partial(Place, topic=topic, partition=partition_of(b"N14228", PARTITIONS))
    look = topics(stack).at
    assert [look(at(offset=number)).id for number in (0, 3, 4)] == [ids[0], ids[3], ids[4]]
    assert look(at(offset=5)) == AtPlace(id=None, said="the partition has records from 0 on, before 5")
    nowhere = Place(topic=topic, partition=99, offset=0)
    assert look(nowhere).said == "there is no such topic, or it has no such partition"
    assert look(Place(topic=f"{topic}.nothing", partition=0, offset=0)).id is None


def test_a_record_without_an_id_of_ours_names_nobody(stack: Endpoints, topic: str) -> None:
    producer = Producer({"bootstrap.servers": stack.kafka_bootstrap})
    several: list[dict[str, str | bytes | None]] = [{}, {"id": b"\xff"}, {"id": b"17"}, {"id": None}]
    for headers in several:
        producer.produce(topic, value=b"x", partition=0, headers=headers)
    assert producer.flush(10) == 0
    for offset in range(4):
        found = topics(stack).at(Place(topic=topic, partition=0, offset=offset))
        assert found == AtPlace(id=None, said="the record there has no id of a message in its headers")


def test_a_place_behind_a_broker_that_is_away_is_said_to_be_that() -> None:
    limits = Limits(records=10, seconds=1, timeout=1)
    away = KafkaTopics("127.0.0.1:1", properties={}, sasl_password=None, limits=limits)
    assert away.at(Place(topic="a.b", partition=0, offset=0)).said.startswith("not looked: ")
