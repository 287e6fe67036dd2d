"""Any bytes of a topic, under any schema of the registry, are read or refused in bounded time and memory."""

import json
import time
from pathlib import Path
from typing import Any

import pytest
from tests.support.schemas import MemorySource, record, write_folder

from packhorse.core.errors import SchemaError, Undecodable
from packhorse.schemas import Decoder
from packhorse.schemas.bounds import MAX_FREE
from packhorse.schemas.folder import load_folder
from packhorse.schemas.framing import prefix

EMPTY = record(name="Empty")
NOTHING = {"type": "fixed", "name": "Nothing", "size": 0}
A_BILLION_THEN_END = b"\x80\xa8\xd6\xb9\x07\x00"
SOON = 5.0
"""Seconds; what is refused is refused within milliseconds, and what is not would run for minutes."""


def array_of(items: Any) -> dict[str, Any]:
    return {"type": "array", "items": items}


def doubled(times: int, leaf: Any) -> dict[str, Any]:
    """Return a record that holds *leaf* two to the power of *times*."""
    made = record(("x", leaf), name="R0")
    for number in range(1, times + 1):
        made = record(("a", made), ("b", f"R{number - 1}"), name=f"R{number}")
    return made


def plain(schema: Any, body: bytes) -> Any:
    text = schema if isinstance(schema, str) else json.dumps(schema)
    return Decoder(MemorySource(text)).plain(prefix(1) + body).value


UNBOUNDED: list[tuple[str, Any]] = [
    ("a list of nulls", array_of("null")),
    ("a list of records without fields", array_of(EMPTY)),
    ("a list of fixed of no bytes", array_of(NOTHING)),
    ("a list of records of nulls", array_of(record(("a", "null"), ("b", EMPTY), name="In"))),
    ("a list inside a map inside a union", {"type": "map", "values": ["int", array_of("null")]}),
    ("a record doubled thirty times", doubled(30, "null")),
    (
        "a record of many nulls",
        record(("n", "int"), *((f"f{n}", "null") for n in range(MAX_FREE + 1)), name="In"),
    ),
]


@pytest.mark.case("S-05")
@pytest.mark.parametrize("schema", [case[1] for case in UNBOUNDED], ids=[case[0] for case in UNBOUNDED])
def test_few_bytes_never_become_many_values(tmp_path: Path, schema: Any) -> None:
    """Fails, by running for minutes, when the decoder does not ask `check_bounded`; and when the folder does not."""
    with pytest.raises(Undecodable, match=r"schema 1 is not read: .*without bytes"):
        plain(schema, A_BILLION_THEN_END)
    folder = write_folder(tmp_path, {"test.things-test.Made": record(("x", schema))})
    with pytest.raises(SchemaError, match="without bytes"):
        load_folder(folder)


BOUNDED: list[tuple[str, Any, bytes, Any]] = [
    ("a message without fields", EMPTY, b"", {}),
    ("a union's branch without fields", record(("x", ["null", EMPTY])), b"\x02", {"x": {}}),
    ("a list of optional records without fields", array_of(["null", EMPTY]), b"\x04\x00\x02\x00", (None, {})),
    ("a map of nulls", {"type": "map", "values": "null"}, b"\x02\x02a\x00", {"a": None}),
    ("a field that is null", record(("x", "null"), ("y", "int")), b"\x02", {"x": None, "y": 1}),
    ("a record that holds itself", record(("n", ["null", "Made"])), b"\x02\x00", {"n": {"n": None}}),
    ("a record doubled ten times", array_of(doubled(10, "boolean")), b"\x00", ()),
]


@pytest.mark.parametrize(
    ("schema", "body", "value"), [case[1:] for case in BOUNDED], ids=[case[0] for case in BOUNDED]
)
def test_what_costs_its_bytes_is_read(schema: Any, body: bytes, value: Any) -> None:
    assert plain(schema, body) == value


def recursive(kind: Any) -> dict[str, Any]:
    return record(("x", kind), ("more", ["null", "Made"]))


DECIMAL = {"type": "bytes", "logicalType": "decimal", "precision": 6, "scale": 2}
SYMBOLS = {"type": "enum", "name": "E", "symbols": ["A", "B"]}
SLOW: list[tuple[str, Any, bytes]] = [
    ("a number of a million bytes", recursive("long"), b"\xff" * 1_000_000 + b"\x01\x00"),
    ("a decimal of a megabyte", DECIMAL, b"\x80\x89\x7a" + b"\x7f" * 1_000_000),
    ("a list that says it is endless", array_of("int"), b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01\x02"),
    ("a text that says it is endless", "string", b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01a"),
    ("a text of negative length", "string", b"\x01a"),
    ("a symbol of a negative number", record(("e", SYMBOLS)), b"\x01"),
    (
        "a symbol of a negative number in a list",
        record(("e", array_of(SYMBOLS)), ("f", "E")),
        b"\x02\x01\x00\x00",
    ),
    ("a symbol of a negative number, recursive", recursive(SYMBOLS), b"\x01\x00"),
    ("a number of more than 64 bits", recursive("long"), b"\xff" * 9 + b"\x7f\x00"),
    ("a decimal of more digits than it may have", DECIMAL, b"\x06\x0f\x42\x40"),
]


@pytest.mark.case("S-05")
@pytest.mark.parametrize(("schema", "body"), [case[1:] for case in SLOW], ids=[case[0] for case in SLOW])
def test_hostile_bytes_are_undecodable_at_once(schema: Any, body: bytes) -> None:
    """Fails when a decimal is made before its size is looked at, or numbers and symbols are read as fastavro reads them."""
    began = time.process_time()
    with pytest.raises(Undecodable):
        plain(schema, body)
    assert time.process_time() - began < SOON


def nested(depth: int) -> str:
    return '{"type":"array","items":' * depth + '"int"' + "}" * depth


@pytest.mark.parametrize("depth", [150, 250, 300, 350, 400, 450, 500, 900])
def test_a_schema_that_nests_deep_is_read_or_undecodable(depth: int) -> None:
    """Any other error would be taken for a fault of ours, and the message tried again for nothing."""
    try:
        assert plain(nested(depth), b"\x00") == ()
    except Undecodable as error:
        assert "deeper than can be read" in str(error)  # noqa: PT017 - either is right


def test_a_decimal_of_a_billion_digits_is_refused_before_it_is_counted(tmp_path: Path) -> None:
    """Fails, by running for minutes, when a schema's precision has no limit."""
    huge = {**DECIMAL, "precision": 1_000_000_000}
    assert plain(huge, b"\x02\x01") == b"\x01", "a reader ignores a logical type that is not right"
    with pytest.raises(SchemaError, match="1 to 1000 digits"):
        load_folder(write_folder(tmp_path, {"test.things-test.Made": record(("x", huge))}))
