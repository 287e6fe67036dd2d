"""The producer of copies on a real broker: whose copies wait for whose, what is named, what comes back by itself."""

import threading
from collections.abc import Iterator

import pytest
from tests.support.topics import delete_topic, make_topic, records, set_limit, wait_for_limit
from tests.support.wait import eventually

from packhorse.core.clock import SYSTEM_CHANCE
from packhorse.core.errors import BrokerUnavailable
from packhorse.core.logs import logger
from packhorse.local.settings import Endpoints
from packhorse.processor.clients import admin_properties, producer_properties
from packhorse.processor.copies import Copy
from packhorse.processor.kafka.producer import CopyProducer
from packhorse.processor.kafka.trimming import RecordDeleter
from packhorse.processor.settings import ProcessorSettings
from packhorse.processor.storing.store import Place
from packhorse.processor.tiers.trimming import Trimmer


@pytest.fixture
def kafka(stack: Endpoints) -> str:
    """Provide the broker's address."""
    return stack.kafka_bootstrap


@pytest.fixture
def topic(kafka: str, topic_prefix: str) -> str:
    """Provide a topic of two partitions."""
    name = f"{topic_prefix}.g.retry.5s"
    make_topic(kafka, name, partitions=2)
    return name


@pytest.fixture
def producer(stack: Endpoints) -> Iterator[CopyProducer]:
    """Provide the producer with the properties that a processor gives it."""
    made = CopyProducer(producer_properties(ProcessorSettings.load({}, environ=stack.variables())))
    yield made
    made.close()


def copy(topic: str, partition: int = 0, value: bytes | None = b"v") -> Copy:
    return Copy(
        id=SYSTEM_CHANCE.token(),
        attempt=2,
        topic=topic,
        partition=partition,
        key=b"k",
        value=value,
        headers=(("id", b"1"), ("x", None), ("id", b"2")),
    )


@pytest.mark.case("T-19")
@pytest.mark.case("T-12")
def test_copies_stand_where_they_say_byte_for_byte(producer: CopyProducer, kafka: str, topic: str) -> None:
    """Fails when places come in the order of the reports, or the client picks a partition by the key."""
    sent = [copy(topic, 1, b"a"), copy(topic, 0, None), copy(topic, 1, b"")]
    places = producer.send(sent)
    assert places == [Place(each.id, each.partition, at, 2) for each, at in zip(sent, (0, 0, 1), strict=True)]
    found = {(one.partition, one.offset): one for one in records(kafka, topic)}
    for each, place in zip(sent, places, strict=True):
        stood = found[place.partition, place.offset]
        assert (stood.key, stood.value, stood.headers) == (each.key, each.value, each.headers)
    assert producer.send([]) == []


@pytest.mark.case("T-14")
@pytest.mark.case("O-05")
def test_a_copy_that_the_client_refuses_keeps_no_other_from_going(
    producer: CopyProducer, kafka: str, topic: str
) -> None:
    """Fails when the first refusal ends the round: whatever is due behind it would never be sent."""
    producer.send([copy(topic)])
    with pytest.raises(BrokerUnavailable, match=rf"1 of 2 copies to {topic}: .*`packhorse topics plan`"):
        producer.send([copy(topic, 99), copy(topic)])
    assert len(records(kafka, topic)) == 2


@pytest.mark.case("T-14")
def test_what_one_topic_is_stuck_at_delays_nobody_else(producer: CopyProducer, topic: str) -> None:
    """Fails when a caller flushes the client: it would wait for the copies of all others too."""
    producer.send([copy(topic)])
    missing, ended = f"{topic}.missing", threading.Event()
    failures: list[BrokerUnavailable] = []

    def stuck() -> None:
        try:
            producer.send([copy(missing)])
        except BrokerUnavailable as error:
            failures.append(error)
        ended.set()

    beside = threading.Thread(target=stuck)
    beside.start()
    rounds = 0
    while not ended.is_set():
        producer.send([copy(topic)])
        rounds += 1
    beside.join()
    assert rounds > 3, "the others went on while one was stuck"
    assert f"1 of 1 copies to {missing}" in str(failures[0])


@pytest.mark.case("T-14")
def test_a_topic_that_is_missing_too_small_or_made_anew_is_named_and_goes_on_by_itself(
    producer: CopyProducer, kafka: str, topic: str
) -> None:
    """Fails when the client must be made anew, or a restart is needed, before copies go again."""
    missing = f"{topic}.missing"
    assert "`packhorse topics apply` makes it" in _failure(producer, copy(missing))
    make_topic(kafka, missing, partitions=1)
    eventually(lambda: _goes(producer, copy(missing)), what="the topic that was made takes copies")
    large = b"x" * 60_000
    set_limit(kafka, topic, 10_000)
    wait_for_limit(kafka, topic, large, refused=True)
    assert "64 KiB more than its source" in _failure(producer, copy(topic, value=large))
    set_limit(kafka, topic, 100_000)
    eventually(lambda: _goes(producer, copy(topic, value=large)), what="the larger limit counts")
    delete_topic(kafka, topic)
    eventually(lambda: topic in _failure(producer, copy(topic)), what="the deleted topic is named")
    make_topic(kafka, topic, partitions=1)
    eventually(lambda: _goes(producer, copy(topic)), what="the topic that was made anew takes copies")


def _failure(producer: CopyProducer, one: Copy) -> str:
    try:
        producer.send([one])
    except BrokerUnavailable as error:
        return str(error)
    return ""


def _goes(producer: CopyProducer, one: Copy) -> bool:
    return _failure(producer, one) == ""


def test_a_tier_is_trimmed_below_the_given_offset_and_no_further(
    producer: CopyProducer, stack: Endpoints, kafka: str, topic: str
) -> None:
    """Fails when the order goes to the log's end, or records of the other partition go with it."""
    for partition in (0, 1):
        producer.send([copy(topic, partition) for _ in range(1_500)])
    settings = ProcessorSettings.load({}, environ=stack.variables())
    deleter = RecordDeleter(admin_properties(settings))
    trimmer = Trimmer({topic, f"{topic}.gone"}, deleter, logger("processor"))
    offsets = {(topic, 0): 1_200, (topic, 1): 900, (f"{topic}.gone", 0): 5_000}
    assert trimmer.trim(offsets, 0.0) == 1_200
    assert deleter.first_offsets(list(offsets)) == {(topic, 0): 1_200, (topic, 1): 0}
    beyond = deleter.delete_below({(topic, 1): 9_999})[topic, 1]
    assert (beyond.first, beyond.forbidden) == (None, False)
    assert "OFFSET_OUT_OF_RANGE" in beyond.text
