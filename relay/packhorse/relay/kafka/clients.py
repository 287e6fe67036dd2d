"""Make clients of confluent-kafka, so that a wrong property is named and nothing is written to the terminal."""

import logging
import re
from collections.abc import Callable, Mapping
from typing import TypeVar

from confluent_kafka import KafkaError, KafkaException, Producer, ThrottleEvent
from confluent_kafka.admin import AdminClient

from packhorse.core.errors import SettingsError
from packhorse.core.kafka_properties import Property


def _worth_telling(record: logging.LogRecord) -> bool:
    """
    Drop two texts of the client.

    It warns that the gapless guarantee is experimental: the relay checks each report itself. It calls a fatal error what the
    relay asked for: that rows are dropped before the client is made anew.
    """
    text = record.getMessage()
    return "enable.gapless.guarantee is experimental" not in text and "Local: Purged in" not in text


class Seldom:
    """
    Let a text of the client pass at most twice a minute.

    While a broker is away the client writes several lines a second for each connection; they differ in a measured time alone.
    What is dropped is counted, and said with the next line that passes.
    """

    __slots__ = ("_dropped", "_told")

    def __init__(self) -> None:
        self._told: dict[str, float] = {}
        self._dropped: dict[str, int] = {}

    def __call__(self, record: logging.LogRecord) -> bool:
        """Tell whether *record* is to be written."""
        text = record.getMessage()
        same = _MEASURED.sub("", text)
        if 0 <= record.created - self._told.get(same, -_SELDOM) < _SELDOM:
            self._dropped[same] = self._dropped.get(same, 0) + 1
            return False
        if len(self._told) >= _MOST_TEXTS:
            self._told.clear()
            self._dropped.clear()
        self._told[same] = record.created
        if dropped := self._dropped.pop(same, 0):
            record.msg, record.args = f"{text} ({dropped} times more since it was last told)", None
        return True


Made = TypeVar("Made")
_MEASURED = re.compile(r"\d+ms\b|#producer-\d+|, \d+ identical error\(s\) suppressed")
_SELDOM = 30.0
"""Seconds between two lines of the same text."""
_MOST_TEXTS = 1_000
_CLIENT_LOG = logging.getLogger("packhorse.relay.librdkafka")
_CLIENT_LOG.addFilter(_worth_telling)
_CLIENT_LOG.addFilter(Seldom())
_WORTH_A_LINE = 0.1
"""Seconds; shorter pauses are a quota at work and no trouble."""


def _heard(error: KafkaError) -> None:
    """Take note of nothing: what matters comes as a report, or as the client's fatal error."""


def _throttled(event: ThrottleEvent) -> None:
    """Tell that the broker holds this client back; it says so with each answer, and the client waits by itself."""
    if event.throttle_time >= _WORTH_A_LINE:
        _CLIENT_LOG.warning(
            "broker %s throttles this client: it waits %.1f s before it sends more; raise its quota", event.broker_name, event.throttle_time
        )  # fmt: skip


def producer(properties: Mapping[str, Property]) -> Producer:
    """
    Return a client that sends.

    Raises:
        SettingsError: A property is unknown or its value is not allowed; names it.
    """
    return _made(
        lambda: Producer({**properties, "error_cb": _heard, "throttle_cb": _throttled}, logger=_CLIENT_LOG)
    )


def admin(properties: Mapping[str, Property]) -> AdminClient:
    """
    Return a client that asks, and makes no topic by asking.

    What it fails at is raised; its own log would repeat that on the terminal.

    Raises:
        SettingsError: As in `producer`.
    """
    return _made(lambda: AdminClient({"log_level": 0, "allow.auto.create.topics": False, **properties}))


def _made(make: Callable[[], Made]) -> Made:
    try:
        return make()
    except KafkaException as error:
        raise SettingsError(f"kafka_properties: {error.args[0].str()}") from error
    except (AttributeError, TypeError, ValueError) as error:
        raise SettingsError(f"kafka_properties: {error}") from error
