"""What the Kafka client writes into the log, and how often."""

import logging

from packhorse.relay.kafka.clients import Seldom

AWAY = "FAIL [rdkafka#producer-2] [thrd:b:9092/1]: b:9092/1: Connect failed: Connection refused (after 3ms in state CONNECT)"


def record(text: str, at: float) -> logging.LogRecord:
    made = logging.LogRecord("librdkafka", logging.ERROR, "", 0, "%s", (text,), None)
    made.created = at
    return made


def test_a_text_that_comes_again_and_again_is_told_twice_a_minute_with_its_count() -> None:
    """Fails when a broker that is away for a night fills the log, or when what was left out is not counted."""
    seldom = Seldom()
    assert seldom(record(AWAY, 100.0))
    assert not seldom(record(AWAY.replace("3ms", "0ms"), 100.5))
    assert not seldom(record(AWAY.replace("producer-2", "producer-3"), 129.9))
    assert seldom(record(AWAY.replace("refused", "reset"), 101.0))
    again = record(AWAY, 130.0)
    assert seldom(again)
    assert again.getMessage() == f"{AWAY} (2 times more since it was last told)"


def test_a_clock_that_goes_back_silences_nothing() -> None:
    seldom = Seldom()
    assert seldom(record(AWAY, 100.0))
    assert seldom(record(AWAY, 50.0))
