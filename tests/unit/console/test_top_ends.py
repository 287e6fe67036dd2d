"""Where topics end, asked of a broker that does not answer."""

from datetime import UTC, datetime
from typing import Any

import pytest

from packhorse.console.top import kafka
from packhorse.console.top.kafka import REST, TopicEnds

PLACES = [("a", 0), ("a", 1)]


class SetClock:
    """A clock that a test sets."""

    seconds = 100.0

    def now(self) -> datetime:
        return datetime.fromtimestamp(self.seconds, UTC)

    def monotonic(self) -> float:
        return self.seconds


class Broker:
    """One whose answers a test sets, and that counts what it is asked."""

    answer: Any = "timed out"
    asked = 0

    def ends(self, wanted: list[tuple[str, int]]) -> dict[tuple[str, int], int | str]:
        self.asked += 1
        return dict.fromkeys(wanted, self.answer)


def test_a_broker_that_is_away_does_not_cost_every_page_its_whole_time_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Fails when each look waits for a broker that has not answered a moment ago, or it is never asked again."""
    clock, broker = SetClock(), Broker()
    monkeypatch.setattr(kafka, "BrokerQuestions", lambda _: broker)
    ends = TopicEnds({}, clock=clock)
    assert [ends.ends(PLACES).said for _ in range(3)] == ["timed out"] * 3
    assert broker.asked == 1
    clock.seconds += REST
    broker.answer = 7
    found = [ends.ends(PLACES) for _ in range(2)]
    assert [(one.said, set(one.of.values())) for one in found] == [(None, {7})] * 2
    assert broker.asked == 3
