"""What a person has edited as JSON becomes bytes again, by the rules of message classes."""

import json
from typing import Any

import pytest

from packhorse.core.errors import ValueMismatch
from packhorse.schemas.decode import Decoder
from packhorse.schemas.parse import parse_schema
from packhorse.schemas.plain import changed_fields, encode_plain
from packhorse.schemas.redaction import masked, shown

SCHEMA = json.dumps(
    {
        "type": "record",
        "name": "tests.Odd",
        "fields": [
            {"name": "n", "type": ["null", "long"]},
            {"name": "who", "type": "string", "packhorse.personal": True},
            {"name": "raw", "type": "bytes"},
            {"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
            {"name": "on", "type": {"type": "int", "logicalType": "date"}},
            {"name": "id", "type": {"type": "string", "logicalType": "uuid"}},
            {
                "name": "cents",
                "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2},
            },
            {"name": "kind", "type": {"type": "enum", "name": "tests.Kind", "symbols": ["A", "B"]}},
            {"name": "tags", "type": {"type": "map", "values": {"type": "array", "items": "string"}}},
            {"name": "next", "type": ["null", "tests.Odd"]},
            {"name": "rate", "type": ["null", "double", "string"]},
        ],
    }
)
VALUE: dict[str, Any] = {
    "n": 7,
    "who": "ann",
    "raw": "AP8=",
    "at": "2026-08-01T12:00:00.000001+00:00",
    "on": "2026-08-01",
    "id": "019b76da-a800-7000-8000-000000000000",
    "cents": "12.50",
    "kind": "B",
    "tags": {"x": ["y"]},
    "next": None,
    "rate": 0.5,
}


class One:
    """A source of one schema."""

    def schema_of(self, schema_id: int) -> str:
        assert schema_id == 3
        return SCHEMA


def encoded(value: Any) -> bytes:
    return encode_plain(value, parse_schema(SCHEMA), 3, what="tests.Odd")


@pytest.mark.parametrize("more", [{}, {"next": VALUE}, {"n": None, "rate": "a word"}, {"rate": None}])
def test_what_is_shown_is_taken_back_byte_for_byte(more: dict[str, Any]) -> None:
    """Fails when a kind of value has no way back from what eyes are shown."""
    payload = encoded(VALUE | more)
    plain = Decoder(One()).plain(payload)
    assert shown(plain.value) == VALUE | more
    assert encoded(shown(plain.value)) == payload


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"n": "7"}, "n: given str '7'"),
        ({"n": 2**70}, "n: "),
        ({"raw": "no base64!"}, "raw: given str 'no base64!'; allowed: bytes in base64"),
        ({"at": "noon"}, "at: given str 'noon'; allowed: a time and date in ISO 8601"),
        ({"cents": "12.505"}, "cents: "),
        ({"id": "x"}, "id: given str 'x'; allowed: a UUID"),
        ({"kind": "C"}, "kind: given str 'C'; allowed: one of A, B"),
        ({"tags": {"x": [1]}}, "tags['x'][0]: given int 1"),
        ({"next": {"n": 1}}, "next.who: "),
        ({"new": 1}, "new: given int; allowed: no such field"),
        ({"who": 5}, "who: given int; allowed: text"),
        ({"who": "***"}, "who: given str; allowed: the value itself, not its mask"),
    ],
)
def test_a_value_that_does_not_fit_is_named(more: dict[str, Any], said: str) -> None:
    """Fails when an edited value is bent to fit, or a personal one is quoted."""
    with pytest.raises(ValueMismatch) as caught:
        encoded(VALUE | more)
    assert said in str(caught.value)


def test_a_missing_field_is_named_and_no_object_is_refused() -> None:
    with pytest.raises(ValueMismatch, match="raw: given None; allowed: a value: the field is missing"):
        encoded({name: value for name, value in VALUE.items() if name != "raw"})
    with pytest.raises(ValueMismatch, match="the message: given list of 0; allowed: an object"):
        encoded([])


def test_changes_are_told_by_their_paths_alone() -> None:
    assert changed_fields(VALUE, VALUE | {"n": 8, "tags": {"x": ["z"]}}) == ["n", "tags.x"]
    assert changed_fields({"a": 1}, {"b": 1}) == ["a", "b"]
    assert masked(VALUE, parse_schema(SCHEMA))["who"] == "***"
