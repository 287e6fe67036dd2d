"""Where many partitions end, while some have no leader and while no broker answers: one bounded question, whatever their number."""

from collections.abc import Iterator

import pytest
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]  # exported at run time
from tests.support.second_broker import SecondBroker, second_broker
from tests.support.stack import PrivateBroker, private_broker
from tests.support.wait import eventually

from packhorse.core.clock import SYSTEM_CLOCK
from packhorse.processor.kafka.offsets import Offsets, Place

TIMEOUT = 1.0


@pytest.fixture
def first() -> Iterator[PrivateBroker]:
    with private_broker() as broker:
        yield broker


@pytest.fixture
def second(first: PrivateBroker) -> Iterator[SecondBroker]:
    with second_broker(first) as broker:
        yield broker


def asked(offsets: Offsets, places: list[Place]) -> tuple[list[int | str], float]:
    """Return what each of *places* was answered, errors by their names, and how many seconds that took."""
    began = SYSTEM_CLOCK.monotonic()
    found = offsets.nexts(places, timeout=TIMEOUT)
    answers = [found[place] for place in places]
    return [one if isinstance(one, int) else one.name() for one in answers], SYSTEM_CLOCK.monotonic() - began


def test_a_broker_that_is_away_costs_one_wait_and_a_partition_without_leader_only_its_own_answer(
    first: PrivateBroker, second: SecondBroker, topic_prefix: str
) -> None:
    """
    Fails when each partition is waited for by itself: `packhorse top` says nothing for minutes while the broker is away; or when one
    partition without leader leaves those beside it without an answer.
    """
    topic = f"{topic_prefix}.orders"
    admin = AdminClient({"bootstrap.servers": first.direct_bootstrap})
    places = [(topic, partition) for partition in range(20)]
    brokers = [[1]] * 19 + [[2]]
    for made in admin.create_topics([NewTopic(topic, len(brokers), replica_assignment=brokers)]).values():
        made.result(30)
    properties: dict[str, str | int | float | bool] = {
        "bootstrap.servers": first.direct_bootstrap,
        "log_level": 0,
    }
    offsets = Offsets(properties)
    eventually(lambda: asked(offsets, places)[0] == [0] * 20, what="each partition is answered")

    second.kill()
    eventually(
        lambda: asked(offsets, places)[0][:19] == [0] * 19,
        what="those that have a leader are answered",
        timeout=40,
    )
    answers, took = asked(offsets, places)
    assert isinstance(answers[19], str)
    assert took < 3 * TIMEOUT + 1

    first.kill()
    answers, took = asked(
        Offsets(properties), places
    )  # as a command does, whose client has seen no broker yet
    assert all(isinstance(one, str) for one in answers)
    assert took < 3 * TIMEOUT + 1
