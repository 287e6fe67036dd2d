"""Names that Kafka and Postgres take."""

import pytest

from packhorse.core.errors import SettingsError
from packhorse.core.naming import checked_identifier, checked_topic, quarantine_topic, retry_topic, topic_name


@pytest.mark.parametrize("name", ["", ".", "..", "a b", "größe", "a/b", "x" * 250, "a\n"])
def test_a_name_that_kafka_refuses_is_refused(name: str) -> None:
    with pytest.raises(SettingsError, match="not legal"):
        checked_topic(name)


def test_names_of_a_group_come_from_the_source_topic() -> None:
    assert topic_name("airline", "aircraft") == "airline.aircraft"
    assert retry_topic("airline.aircraft", "figures", "5s") == "airline.aircraft.figures.retry.5s"
    assert quarantine_topic("airline.aircraft", "figures") == "airline.aircraft.figures.quarantine"


def test_a_group_name_that_makes_the_topic_too_long_is_refused() -> None:
    with pytest.raises(SettingsError, match="249"):
        quarantine_topic("t" * 200, "g" * 60)


@pytest.mark.parametrize(
    "name", ["", "1a", "Packhorse", 'a"; DROP TABLE x; --', "pg_catalog", "x" * 64, "a-b"]
)
def test_an_identifier_that_needs_quotes_is_refused(name: str) -> None:
    with pytest.raises(SettingsError, match="database schema"):
        checked_identifier(name, what="database schema")


def test_a_plain_identifier_passes() -> None:
    assert checked_identifier("packhorse_2", what="database schema") == "packhorse_2"
