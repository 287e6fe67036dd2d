"""Reading schemas: what is wrong is named with its place, and what is printed means the same."""

import json
from typing import Any

import fastavro
import pytest
from tests.support.schemas import SHOP, record

from packhorse.core.errors import SchemaError
from packhorse.schemas.folder import load_folder
from packhorse.schemas.parse import parse_schema
from packhorse.schemas.text import fingerprint, resolved_text, wire_schema, wire_text
from packhorse.schemas.tree import ABSENT


def parsed(raw: Any, *, strict: bool = True) -> Any:
    return parse_schema(json.dumps(raw), strict=strict)


@pytest.mark.parametrize(
    "version", load_folder(SHOP).versions, ids=lambda one: f"{one.subject}-{one.version}"
)
def test_the_resolved_text_means_the_same_and_needs_no_other(version: Any) -> None:
    again = parse_schema(version.text, strict=True)
    assert resolved_text(again) == version.text
    assert fingerprint(version.text) == version.fingerprint
    fastavro.parse_schema(json.loads(version.text))
    fastavro.parse_schema(wire_schema(again))


BROKEN: list[tuple[Any, str]] = [
    (5, "schema: 5 is no type"),
    ({"type": "nonsense"}, "'nonsense' is not known"),
    (record(("a", "nonsense")), "a: type 'nonsense' is not known"),
    (record(("a", {"type": "array"})), r"a\[\]: null is no type"),
    (record(("a", ["null", ["int"]])), "a: a union stands directly in a union"),
    (record(("a", ["int", "int"])), "a: the union has int twice"),
    (record(("a", [])), "a: the union is empty"),
    (record(("a", "int"), ("a", "int")), "field a stands twice"),
    (record(("2a", "int")), "A-Z a-z 0-9 _ is needed"),
    (record({"type": "int"}), "A-Z a-z 0-9 _ is needed"),
    (record(name="Ma-de"), "name 'test.Ma-de' is not allowed"),
    ({"type": "record", "name": "Bare", "fields": []}, "Bare has no namespace"),
    ({"type": "record", "name": 5, "fields": []}, "both must be text"),
    ({"type": "record", "name": "a.B"}, "fields null; a list is needed"),
    ({"type": "enum", "name": "a.E", "symbols": []}, "they must be names, each once"),
    ({"type": "enum", "name": "a.E", "symbols": ["A", "A"]}, "they must be names, each once"),
    ({"type": "enum", "name": "a.E", "symbols": ["A-B"]}, "A-B"),
    ({"type": "enum", "name": "a.E", "symbols": ["A"], "default": "B"}, "none of its symbols"),
    ({"type": "enum", "name": "a.E", "symbols": "AB"}, "a list of texts is needed"),
    ({"type": "fixed", "name": "a.F", "size": "4"}, "a number of bytes is needed"),
    (
        record(
            ("a", {"type": "enum", "name": "E", "symbols": ["A"]}),
            ("b", {"type": "enum", "name": "E", "symbols": ["B"]}),
        ),
        "test.E is defined twice",
    ),
    (
        record(("a", {"type": "string", "logicalType": "decimal", "precision": 4})),
        "logical type decimal on string: it stands on bytes or fixed",
    ),
    (record(("a", {"type": "bytes", "logicalType": "decimal"})), "precision null"),
    (record(("a", {"type": "bytes", "logicalType": "decimal", "precision": 0})), "1 to 1000 digits"),
    (
        record(("a", {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 5})),
        "scale 5; 0 to the precision of 4",
    ),
    (
        record(("a", {"type": "fixed", "name": "F", "size": 2, "logicalType": "decimal", "precision": 5})),
        "does not fit 2 bytes",
    ),
    (record(("a", {"type": "fixed", "name": "F", "size": 15, "logicalType": "uuid"})), "has 16 bytes"),
    (record(("a", {"type": "int", "logicalType": "timestamp-micros"})), "it stands on long"),
    (record({"name": "a", "type": "int", "packhorse.personal": "yes"}), "true or false is needed"),
    (record({"name": "a", "type": "int", "aliases": "b"}), "a list of texts is needed"),
]


@pytest.mark.parametrize(("raw", "told"), BROKEN)
def test_a_broken_schema_is_refused_with_the_place(raw: Any, told: str) -> None:
    with pytest.raises(SchemaError, match=told):
        parsed(raw)


@pytest.mark.parametrize("text", ["", "{", "[" * 100_000])
def test_text_that_is_no_json_is_refused(text: str) -> None:
    with pytest.raises(SchemaError, match="schema is no JSON"):
        parse_schema(text)


def test_a_readers_schema_may_hold_logical_types_that_we_would_not_write() -> None:
    """Another team's schema is read by Avro's own rule: a logical type that does not fit its base is ignored."""
    schema = parsed(record(("a", {"type": "string", "logicalType": "decimal", "precision": 4})), strict=False)
    assert schema.record.fields[0].type.logical is None


def test_unknown_logical_types_and_properties_are_left_alone() -> None:
    schema = parsed(record({"name": "a", "type": {"type": "string", "logicalType": "iban"}, "unit": "x"}))
    assert schema.record.fields[0].type.logical is None
    assert schema.record.fields[0].default is ABSENT


def test_names_are_found_by_avros_rules() -> None:
    inner = {
        "type": "record",
        "name": "Inner",
        "namespace": "other",
        "fields": [{"name": "me", "type": ["null", "Inner"]}],
    }
    schema = parsed(record(("a", inner), ("b", "other.Inner"), ("c", ["null", "Made"], None)))
    assert set(schema.names) == {"test.Made", "other.Inner"}
    assert schema.is_recursive()


def test_a_record_without_namespace_keeps_its_name_inside_another() -> None:
    schema = parsed(
        record(("a", {"type": "record", "name": "Bare", "namespace": "", "fields": []})), strict=False
    )
    assert set(parse_schema(resolved_text(schema)).names) == {"test.Made", "Bare"}


def test_the_fingerprint_is_of_the_meaning() -> None:
    plain = record(("a", "int", 1))
    documented = record({"doc": "An a.", "default": 1, "type": {"type": "int"}, "name": "a"}, doc="A record.")
    personal = record({"name": "a", "type": "int", "default": 1, "packhorse.personal": True})
    texts = [
        json.dumps(one)
        for one in (plain, documented, personal, record(("a", "int", 2)), record(("a", "int")))
    ]
    prints = [fingerprint(text) for text in texts]
    assert prints[0] == prints[1]
    assert len(set(prints)) == 4
    assert len({wire_text(parse_schema(text)) for text in texts}) == 1
