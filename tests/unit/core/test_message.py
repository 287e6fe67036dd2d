"""A message that breaks a rule can't be made."""

from datetime import datetime
from typing import Any
from uuid import UUID

import pytest

from packhorse.core.errors import InvalidMessage, PayloadTooLarge
from packhorse.core.message import MAX_TEXT, Message, MessageType, checked_payload


def message(**fields: Any) -> Message:
    plain: dict[str, Any] = {
        "id": UUID(int=1),
        "aggregatetype": "aircraft",
        "aggregateid": "N1",
        "type": "airline.FlightDeparted",
        "schema_version": "1",
        "payload": b"x",
    }
    return Message(**(plain | fields))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("aggregatetype", ""),
        ("type", ""),
        ("schema_version", ""),
        ("aggregateid", "a\0b"),
        ("actor", "x" * (MAX_TEXT + 1)),
        ("tenant", 7),
        ("expires_at", datetime.fromisoformat("2026-01-01")),
    ],
)
def test_a_field_that_breaks_its_rule_is_named(field: str, value: object) -> None:
    with pytest.raises(InvalidMessage, match=field):
        message(**{field: value})


def test_a_message_may_have_no_key_and_no_payload() -> None:
    made = message(aggregateid=None, payload=None)

    assert made.aggregateid is None
    assert made.payload is None


@pytest.mark.case("B-06")
def test_a_payload_over_the_limit_is_refused_with_size_and_limit() -> None:
    """Fails when the limit is compared with `>=`, or not at all."""
    assert checked_payload(bytes(10), limit=10) == bytes(10)
    assert checked_payload(None, limit=0) is None
    with pytest.raises(PayloadTooLarge, match=r"11 bytes, the limit is 10"):
        checked_payload(bytes(11), limit=10)


def test_the_subject_is_made_of_topic_and_record() -> None:
    made = MessageType(
        type="airline.FlightDeparted", version=1, namespace="airline", aggregatetype="aircraft", schema="{}"
    )

    assert made.topic == "airline.aircraft"
    assert made.subject == "airline.aircraft-airline.FlightDeparted"
