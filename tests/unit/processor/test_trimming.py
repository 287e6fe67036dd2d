"""When tiers are trimmed, how far, and what becomes of trouble."""

import logging
from collections.abc import Collection, Mapping

import pytest

from packhorse.core.errors import BrokerUnavailable
from packhorse.core.logs import Log, Value
from packhorse.processor.tiers.trimming import (
    EVERY,
    FORBIDDEN_FOR,
    LEAST_RECORDS,
    LONGEST_KEPT,
    Place,
    Trimmed,
    Trimmer,
)

ONE, OTHER = ("t.g.retry.5s", 0), ("t.g.retry.1m", 0)
MANY = 10 * LEAST_RECORDS


class Broker:
    """First offsets, and the orders it was given."""

    def __init__(self) -> None:
        self.first = {ONE: 0, OTHER: 0}
        self.orders: list[Mapping[Place, int]] = []
        self.asked = 0
        self.forbidden: set[str] = set()
        self.away = False

    def first_offsets(self, places: Collection[Place]) -> Mapping[Place, int]:
        if self.away:
            raise BrokerUnavailable("away")
        self.asked += 1
        return {place: self.first[place] for place in places if place in self.first}

    def delete_below(self, offsets: Mapping[Place, int]) -> Mapping[Place, Trimmed]:
        self.orders.append(dict(offsets))
        return {place: self._ended(place, offset) for place, offset in offsets.items()}

    def _ended(self, place: Place, offset: int) -> Trimmed:
        if place[0] in self.forbidden:
            return Trimmed(None, forbidden=True, text="TOPIC_AUTHORIZATION_FAILED")
        self.first[place] = max(self.first[place], offset)
        return Trimmed(self.first[place])


class Said(Log):
    """A log that keeps what is said."""

    def __init__(self, said: list[str]) -> None:
        super().__init__(logging.getLogger(__name__))
        self.said = said

    def warning(self, event: str, **fields: Value) -> None:
        self.said.append(event)


class Ground:
    """A trimmer, its broker and what it has logged."""

    def __init__(self) -> None:
        self.said: list[str] = []
        self.broker = Broker()
        self.trimmer = Trimmer({ONE[0], OTHER[0]}, self.broker, Said(self.said))


@pytest.fixture
def ground() -> Ground:
    return Ground()


def test_nothing_above_the_given_offset_and_no_other_topic_is_ever_touched(ground: Ground) -> None:
    """Fails when the order is the log's end, or goes to whatever topic is named."""
    offsets = {ONE: MANY, ("t", 0): MANY, ("t.g.quarantine", 0): MANY}
    assert ground.trimmer.trim(offsets, 0.0) == MANY
    assert ground.broker.orders == [{ONE: MANY}]


def test_a_partition_is_looked_at_once_a_minute_and_asked_for_its_start_once(ground: Ground) -> None:
    """Fails when each look of the watchdog asks the broker."""
    for second in range(int(2 * EVERY)):
        ground.trimmer.trim({ONE: MANY + 100 * second, OTHER: 5}, float(second))
    assert [set(order) for order in ground.broker.orders] == [{ONE}, {ONE}]
    assert ground.broker.asked == 1


def test_few_records_wait_for_more_or_for_an_hour(ground: Ground) -> None:
    ground.trimmer.trim({ONE: LEAST_RECORDS - 1}, 0.0)
    ground.trimmer.trim({ONE: LEAST_RECORDS - 1}, LONGEST_KEPT - 1)
    assert ground.broker.orders == []
    assert ground.trimmer.trim({ONE: LEAST_RECORDS - 1}, LONGEST_KEPT + EVERY) == LEAST_RECORDS - 1
    ground.trimmer.trim({ONE: LEAST_RECORDS - 1}, 3 * LONGEST_KEPT)
    assert len(ground.broker.orders) == 1, "with nothing below there is no order"


def test_a_partition_that_comes_back_is_asked_anew(ground: Ground) -> None:
    """Fails when what is known of a partition outlives its ownership: another owner has trimmed it since."""
    ground.trimmer.trim({ONE: MANY}, 0.0)
    ground.trimmer.trim({}, 1.0)
    ground.broker.first[ONE] = 3 * MANY
    assert ground.trimmer.trim({ONE: 3 * MANY + 1}, 2.0) == 0
    assert ground.broker.asked == 2


def test_a_tier_that_may_not_be_trimmed_is_told_once_and_the_rest_goes_on(ground: Ground) -> None:
    ground.broker.forbidden = {ONE[0]}
    for minute in range(30):
        ground.trimmer.trim({ONE: MANY, OTHER: (minute + 1) * LEAST_RECORDS}, minute * EVERY)
    assert sum(ONE in order for order in ground.broker.orders) == 1
    assert sum(OTHER in order for order in ground.broker.orders) == 30
    ground.trimmer.trim({ONE: MANY}, FORBIDDEN_FOR + EVERY)
    assert ONE in ground.broker.orders[-1], "it is tried again after an hour"
    assert len(ground.said) == 1
    assert "grant this client the right to delete records" in ground.said[0]


def test_a_broker_that_is_away_stops_nobody_and_is_told_once(ground: Ground) -> None:
    ground.broker.away = True
    assert ground.said == []
    for minute in range(3):
        assert ground.trimmer.trim({ONE: MANY}, minute * EVERY) == 0
    assert ground.said == ["tiers are not trimmed for now"]
    ground.broker.away = False
    assert ground.trimmer.trim({ONE: MANY}, 3 * EVERY) == MANY


def test_a_tier_that_does_not_exist_is_passed_over(ground: Ground) -> None:
    del ground.broker.first[ONE]
    assert ground.trimmer.trim({ONE: MANY, OTHER: MANY}, 0.0) == MANY
    assert ground.broker.orders == [{OTHER: MANY}]
