"""What is noticed of topics that are deleted, made anew or grow, and how often it is told."""

import logging
from collections.abc import Mapping, Sequence
from uuid import UUID

import pytest

from packhorse.core.errors import BrokerUnavailable
from packhorse.core.logs import Log, Value
from packhorse.processor.tiers.ladder import ReadTopic
from packhorse.processor.topics.watching import EVERY, Standing, TopicWatch

READ = {"t": ReadTopic("t", None), "t.g.retry.0s": ReadTopic("t", "0s")}


class Ground(Log):
    """A watch, what it is answered, and what it has said."""

    def __init__(self) -> None:
        super().__init__(logging.getLogger(__name__))
        self.said: list[str] = []
        self.topics = {"t": Standing(UUID(int=1), 2), "t.g.retry.0s": Standing(UUID(int=2), 2)}
        self.away = False
        self.asked = 0
        self.now = 0.0
        self.watch = TopicWatch(READ, self, self)

    def error(self, event: str, **fields: Value) -> None:
        self.said.append(f"{fields['topic']}: {event}")

    def identities(self, topics: Sequence[str]) -> Mapping[str, Standing]:
        self.asked += 1
        if self.away:
            raise BrokerUnavailable("away")
        return {topic: self.topics[topic] for topic in topics if topic in self.topics}

    def look(self, after: float = EVERY) -> frozenset[str]:
        self.now += after
        return self.watch.look(self.now)


@pytest.fixture
def ground() -> Ground:
    made = Ground()
    made.look()
    return made


def test_a_topic_that_was_made_anew_is_named_once(ground: Ground) -> None:
    """Fails when the id of the last look is not kept over one in which the topic was gone."""
    assert ground.look() == frozenset()
    del ground.topics["t"]
    assert ground.look() == frozenset()
    assert ground.look() == frozenset()
    ground.topics["t"] = Standing(UUID(int=9), 2)
    assert ground.look() == {"t"}
    assert ground.look() == frozenset()
    assert [text.partition(",")[0].partition(";")[0] for text in ground.said] == [
        "t: a topic does not exist any more",
        "t: a topic was deleted and made anew",
    ]


def test_what_changed_while_the_broker_was_away_is_found_after_it(ground: Ground) -> None:
    ground.away = True
    ground.topics["t"] = Standing(UUID(int=9), 2)
    assert ground.look() == frozenset()
    ground.away = False
    assert ground.look() == {"t"}


def test_a_source_that_has_grown_is_told_once_for_each_count(ground: Ground) -> None:
    for count in (3, 3, 4):
        ground.topics["t"] = Standing(UUID(int=1), count)
        assert ground.look() == frozenset()
    assert [text.partition(";")[0] for text in ground.said] == [
        "t.g.retry.0s: a source has more partitions than a tier of it"
    ] * 2


def test_the_broker_is_not_asked_at_each_turn(ground: Ground) -> None:
    for _ in range(20):
        ground.look(EVERY / 10)
    assert ground.asked <= 4
