"""The check before a release: what is allowed, what breaks and how it is told; never less strict than Avro itself."""

import json
from io import BytesIO
from pathlib import Path
from typing import Any

import fastavro
import pytest
from avro.compatibility import ReaderWriterCompatibilityChecker, SchemaCompatibilityType
from avro.schema import make_avsc_object
from hypothesis import given
from hypothesis import strategies as st
from tests.support.avro_values import messages
from tests.support.schemas import SHOP, record, write_folder

from packhorse.schemas.compatibility import Finding, check
from packhorse.schemas.decode import BodyReader
from packhorse.schemas.direction import Direction
from packhorse.schemas.folder import load_folder
from packhorse.schemas.parse import parse_schema
from packhorse.schemas.resolution import Resolver
from packhorse.schemas.text import wire_schema

SUBJECT = "test.things-test.Made"


def findings(tmp_path: Path, *versions: Any, direction: Direction = Direction.BACKWARD) -> list[Finding]:
    return check(load_folder(write_folder(tmp_path, {SUBJECT: list(versions)})), direction)


def enum(*symbols: str, **more: Any) -> dict[str, Any]:
    return {"type": "enum", "name": "E", "symbols": list(symbols), **more}


def decimal(precision: int, scale: int) -> dict[str, Any]:
    return {"type": "bytes", "logicalType": "decimal", "precision": precision, "scale": scale}


def test_the_shops_versions_are_compatible() -> None:
    assert check(load_folder(SHOP)) == []


ALLOWED: list[tuple[str, Any, Any]] = [
    ("a field with a default is added", record(("a", "int")), record(("a", "int"), ("b", "int", 0))),
    ("a field is removed", record(("a", "int"), ("b", "int")), record(("a", "int"))),
    ("fields change places", record(("a", "int"), ("b", "int")), record(("b", "int"), ("a", "int"))),
    (
        "a field is renamed by alias",
        record(("a", "int")),
        record({"name": "b", "type": "int", "aliases": ["a"]}),
    ),
    ("an int is widened", record(("a", "int")), record(("a", "long"))),
    ("a field becomes optional", record(("a", "int")), record(("a", ["null", "int"]))),
    ("a symbol is added", record(("a", enum("X"))), record(("a", enum("X", "Y")))),
    (
        "a symbol goes and a default is there",
        record(("a", enum("X", "Y"))),
        record(("a", enum("X", default="X"))),
    ),
    ("a decimal gets more digits", record(("a", decimal(4, 2))), record(("a", decimal(9, 2)))),
    (
        "a mark for personal data is set",
        record(("a", "int")),
        record({"name": "a", "type": "int", "packhorse.personal": True}),
    ),
]


@pytest.mark.parametrize(("old", "new"), [case[1:] for case in ALLOWED], ids=[case[0] for case in ALLOWED])
def test_an_allowed_change_is_no_finding(tmp_path: Path, old: Any, new: Any) -> None:
    assert findings(tmp_path, old, new) == []


BREAKING: list[tuple[str, Any, Any, str, str]] = [
    (
        "a field without default is added",
        record(("a", "int")),
        record(("a", "int"), ("b", "int")),
        "b",
        "missing-default",
    ),
    ("a type changes", record(("a", "int")), record(("a", "string")), "a", "type"),
    ("bytes become text", record(("a", "bytes")), record(("a", ["null", "string"])), "a", "type"),
    ("a type is narrowed", record(("a", "long")), record(("a", "int")), "a", "type"),
    ("a record becomes a text", record(("a", record(name="In"))), record(("a", "string")), "a", "type"),
    ("an optional field becomes needed", record(("a", ["null", "int"])), record(("a", "int")), "a", "type"),
    (
        "a branch goes",
        record(("a", ["int", "string"])),
        record(("a", ["int", "boolean"])),
        "a",
        "missing-branch",
    ),
    ("a symbol goes", record(("a", enum("X", "Y"))), record(("a", enum("X"))), "a", "missing-symbol"),
    (
        "a type inside is renamed",
        record(("a", enum("X"))),
        record(("a", {**enum("X"), "name": "F"})),
        "a",
        "name",
    ),
    (
        "a fixed grows",
        record(("a", {"type": "fixed", "name": "F", "size": 2})),
        record(("a", {"type": "fixed", "name": "F", "size": 3})),
        "a",
        "size",
    ),
    ("a decimal's scale changes", record(("a", decimal(9, 2))), record(("a", decimal(9, 4))), "a", "decimal"),
    (
        "a decimal gets fewer digits",
        record(("a", decimal(9, 2))),
        record(("a", decimal(8, 2))),
        "a",
        "decimal",
    ),
    (
        "a number becomes a time",
        record(("a", "long")),
        record(("a", {"type": "long", "logicalType": "timestamp-millis"})),
        "a",
        "logical-type",
    ),
    (
        "milliseconds become microseconds",
        record(("a", {"type": "long", "logicalType": "timestamp-millis"})),
        record(("a", {"type": "long", "logicalType": "timestamp-micros"})),
        "a",
        "logical-type",
    ),
    (
        "deep inside",
        record(
            (
                "lines",
                {"type": "array", "items": record(("by", {"type": "map", "values": "int"}), name="Line")},
            )
        ),
        record(
            (
                "lines",
                {"type": "array", "items": record(("by", {"type": "map", "values": "string"}), name="Line")},
            )
        ),
        "lines[].by{}",
        "type",
    ),
]


@pytest.mark.case("S-04")
@pytest.mark.parametrize(
    ("old", "new", "path", "rule"), [case[1:] for case in BREAKING], ids=[case[0] for case in BREAKING]
)
def test_a_breaking_change_is_found_with_field_and_rule(
    tmp_path: Path, old: Any, new: Any, path: str, rule: str
) -> None:
    """Fails when the resolution that decodes does not see the change, or the finding loses its path."""
    found = findings(tmp_path, old, new)
    assert [(one.subject, one.writer, one.reader, one.path, one.rule) for one in found] == [
        (SUBJECT, 1, 2, path, rule)
    ]
    assert str(found[0]).startswith(f"{SUBJECT}: v2 can't read what v1 wrote: {path}: ")


@pytest.mark.case("S-04")
def test_every_earlier_version_is_looked_at(tmp_path: Path) -> None:
    """
    v3 reads v2 and not v1: messages of v1 may still lie in the topic.

    Fails when `check` compares neighbours only.
    """
    versions = [
        record(("a", "int")),
        record(("a", "int"), ("b", "int", 0)),
        record(("a", "int"), ("b", "int")),
    ]
    assert [(one.writer, one.reader, one.path) for one in findings(tmp_path, *versions)] == [(1, 3, "b")]


def test_all_findings_are_told_and_not_the_first_alone(tmp_path: Path) -> None:
    old, new = record(("a", "int"), ("b", "int")), record(("a", "string"), ("b", "string"), ("c", "int"))
    assert [one.path for one in findings(tmp_path, old, new)] == ["a", "b", "c"]


def test_the_direction_is_a_setting(tmp_path: Path) -> None:
    versions = [record(("a", "int"), ("b", "int")), record(("a", "int"))]
    assert findings(tmp_path, *versions) == []
    for direction in (Direction.FORWARD, Direction.FULL):
        found = findings(tmp_path, *versions, direction=direction)
        assert [(one.writer, one.reader, one.path, one.rule) for one in found] == [
            (2, 1, "b", "missing-default")
        ]


def test_a_type_that_holds_itself_is_compared_once(tmp_path: Path) -> None:
    def node(inner: str) -> dict[str, Any]:
        return record(("root", record(("value", inner), ("next", ["null", "Node"], None), name="Node")))

    assert findings(tmp_path, node("int"), node("long")) == []
    assert [one.path for one in findings(tmp_path, node("int"), node("string"))] == ["root.value"]


_NAMES = ["a", "b", "c"]
_LEAVES = st.sampled_from(["null", "boolean", "int", "long", "float", "double", "bytes", "string"])


def _types(depth: int = 2) -> st.SearchStrategy[Any]:
    if depth == 0:
        return _LEAVES
    inner = st.deferred(lambda: _types(depth - 1))
    symbols = st.lists(st.sampled_from(["X", "Y", "Z"]), min_size=1, max_size=3, unique=True)
    return st.one_of(
        _LEAVES,
        st.builds(lambda items: {"type": "array", "items": items}, inner),
        st.builds(lambda items: {"type": "map", "values": items}, inner),
        st.builds(lambda found: {"type": "enum", "name": f"test.E{depth}", "symbols": found}, symbols),
        st.lists(_LEAVES, min_size=1, max_size=3, unique=True),
        st.builds(lambda size: {"type": "fixed", "name": f"test.F{depth}", "size": size}, st.integers(1, 2)),
    )


def _fields(name: str, with_default: bool) -> st.SearchStrategy[Any]:
    plain = st.builds(lambda kind: {"name": name, "type": kind}, _types())
    optional = st.builds(
        lambda kind: {"name": name, "type": ["null", kind], "default": None},
        _LEAVES.filter(lambda k: k != "null"),
    )
    return optional if with_default else plain


def _schemas() -> st.SearchStrategy[Any]:
    def once(fields: list[Any]) -> dict[str, Any]:
        seen: set[str] = set()
        kept = []
        for field in fields:  # a type is defined once in a schema
            names = [
                found for found in ("E1", "E2", "F1", "F2") if f"test.{found}" in json.dumps(field["type"])
            ]
            if not seen & set(names):
                seen |= set(names)
                kept.append(field)
        return record(*kept)

    choice = st.tuples(st.sampled_from(_NAMES), st.booleans())
    chosen = st.lists(choice, max_size=3, unique_by=lambda pair: pair[0])
    return chosen.flatmap(lambda pairs: st.tuples(*(_fields(*pair) for pair in pairs)).map(list)).map(once)


@given(_schemas(), _schemas())
def test_we_are_never_less_strict_than_avro(old: Any, new: Any) -> None:
    """A reader in another language rests on Avro's rules, so what they refuse we refuse."""
    resolver = Resolver(parse_schema(json.dumps(old)), parse_schema(json.dumps(new)), None)
    resolver.root()
    result = ReaderWriterCompatibilityChecker().get_compatibility(  # type: ignore[no-untyped-call]
        make_avsc_object(json.loads(json.dumps(new))), make_avsc_object(json.loads(json.dumps(old)))
    )
    if result.compatibility is not SchemaCompatibilityType.compatible:
        assert resolver.incompatibilities, (result.messages, result.locations)


@given(_schemas(), _schemas(), st.data())
def test_what_the_check_allows_is_read(old: Any, new: Any, data: st.DataObject) -> None:
    """No value of a writer that the check allows can be one that the reader stops at."""
    writer, reader = parse_schema(json.dumps(old)), parse_schema(json.dumps(new))
    resolver = Resolver(writer, reader, None)
    make = resolver.root()
    if resolver.incompatibilities or make is None:
        return
    buffer = BytesIO()
    fastavro.schemaless_writer(
        buffer, fastavro.parse_schema(wire_schema(writer)), data.draw(messages(writer))
    )
    BodyReader(writer, make).read(buffer.getvalue())


PERSONAL = {"name": "a", "type": "string", "packhorse.personal": True}
OPEN = {"name": "a", "type": "string"}
UNMARKED = {**OPEN, "packhorse.personal": False}


def person(field: Any) -> dict[str, Any]:
    return record(field, name="Person")


LOST: list[tuple[str, Any, Any, str]] = [
    ("the mark is left out", record(PERSONAL), record(OPEN), "a"),
    ("the field is renamed", record(PERSONAL), record({**OPEN, "name": "b", "aliases": ["a"]}), "b"),
    ("in a record", record(("p", person(PERSONAL))), record(("p", person(OPEN))), "p.a"),
    (
        "in a list that becomes optional",
        record(("p", {"type": "array", "items": person(PERSONAL)})),
        record(("p", ["null", {"type": "array", "items": person(OPEN)}])),
        "p[].a",
    ),
    (
        "in a record that holds itself",
        record(PERSONAL, ("more", ["null", "Made"])),
        record(OPEN, ("more", ["null", "Made"])),
        "a",
    ),
]


@pytest.mark.case("X-07")
@pytest.mark.parametrize("direction", list(Direction))
@pytest.mark.parametrize(("old", "new", "path"), [case[1:] for case in LOST], ids=[case[0] for case in LOST])
def test_a_mark_of_personal_data_is_not_lost_by_mistake(
    tmp_path: Path, old: Any, new: Any, path: str, direction: Direction
) -> None:
    """Fails when `check` looks only at what can be read: a field would be shown from its next version on."""
    found = [one for one in findings(tmp_path, old, new, direction=direction) if one.rule == "personal-mark"]
    assert [(one.path, one.rule) for one in found] == [(path, "personal-mark")]
    assert "v1 marks it as personal" in str(found[0])
    assert "can't read" not in str(found[0])


KEPT: list[tuple[str, list[Any]]] = [
    ("the mark is there", [record(PERSONAL), record(PERSONAL)]),
    ("it was taken away on purpose", [record(PERSONAL), record(UNMARKED)]),
    ("and not said again in the next version", [record(PERSONAL), record(UNMARKED), record(OPEN)]),
    ("the field is gone", [record(PERSONAL, ("b", "int")), record(("b", "int"))]),
    (
        "the record around it is marked",
        [
            record(("p", person(PERSONAL))),
            record({"name": "p", "type": person(OPEN), "packhorse.personal": True}),
        ],
    ),
]


@pytest.mark.parametrize("versions", [case[1] for case in KEPT], ids=[case[0] for case in KEPT])
def test_a_mark_may_go_on_purpose(tmp_path: Path, versions: list[Any]) -> None:
    assert findings(tmp_path, *versions) == []
