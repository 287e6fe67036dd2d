"""Generated classes: what the files in the repository say, names that Python does not like, and clashes told by name."""

import dataclasses
import datetime as dt
import subprocess
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import mypy.api
import pytest
from tests.support import shop
from tests.support.schemas import SHOP, module_of, record, write_folder

from packhorse.core.errors import SchemaError
from packhorse.schemas.folder import load_folder
from packhorse.schemas.generate import generate, newest

ROOT = Path(__file__).parents[3]
SUBJECT = "test.things-test.Made"


def generated(tmp_path: Path, *fields: Any, **more: Any) -> str:
    return generate(newest(load_folder(write_folder(tmp_path, {SUBJECT: record(*fields, **more)}))))


def made(tmp_path: Path, *fields: Any, **more: Any) -> Any:
    return module_of(newest(load_folder(write_folder(tmp_path, {SUBJECT: record(*fields, **more)})))).Made


@pytest.mark.parametrize(
    ("folder", "file"),
    [
        ("tests/support/avro", "tests/support/shop.py"),
        ("schemas/avro", "examples/flights/messages.py"),
        ("examples/flights/serving/avro", "examples/flights/serving/messages.py"),
    ],
)
def test_the_committed_files_are_fresh(folder: str, file: str) -> None:
    assert generate(newest(load_folder(ROOT / folder))) == (ROOT / file).read_text(encoding="utf-8")


ODD = record(
    ("class", "string", 'it\'s "quoted"'),
    ("str", ["null", "string"], None),
    ("bytes", "bytes", "\u0000'\"\\\u00ff"),
    ("date", ["null", {"type": "int", "logicalType": "date"}], None),
    ("id", "long", -1),
    ("match", "double", 1e300),
    ("names", {"type": "array", "items": "string"}, ["a", "b\n"]),
    ("one", {"type": "array", "items": "int"}, [1]),
    ("ages", {"type": "map", "values": "int"}, {"a": 1, 'b"': 2}),
    ("mood", {"type": "enum", "name": "Mood", "symbols": ["None", "title", "mro", "name", "Fine"]}, "None"),
    ("inner", record(("x", "int", 3), ("mood", "Mood"), name="Inner"), {"mood": "title"}),
    ("amount", {"type": "bytes", "logicalType": "decimal", "precision": 5, "scale": 2}, "\u0001\u0000"),
    ("key", {"type": "string", "logicalType": "uuid"}, "00000000-0000-0000-0000-000000000007"),
    ("moment", {"type": "long", "logicalType": "timestamp-micros"}, 1),
    ("local", {"type": "long", "logicalType": "local-timestamp-millis"}, 1),
    ("day", {"type": "int", "logicalType": "date"}, 1),
    ("hour", {"type": "int", "logicalType": "time-millis"}, 3_600_000),
    {"name": "phone", "type": {"type": "map", "values": "string"}, "default": {}, "packhorse.personal": True},
    {
        "name": "doc",
        "type": "string",
        "doc": 'Has """three""", a back\\slash and ends with a "quote"',
        "default": "å\u202e",
    },
    (
        "a_very_long_name_of_a_field_that_goes_on_and_on",
        ["null", "long", "double", "string", "bytes", "boolean"],
        None,
    ),
    doc='Ends with a "quote"',
)
QUOTED = record(
    ("a", record(name="In", doc='Ends with a "quote"')), ("b", record(name="Slash", doc="Ends with a \\"))
)


def test_defaults_and_odd_names_become_python(tmp_path: Path) -> None:
    module = module_of(newest(load_folder(write_folder(tmp_path, {SUBJECT: ODD}))))
    message = module.Made()
    assert message.class_ == 'it\'s "quoted"'
    assert message.bytes_ == b"\x00'\"\\\xff"
    assert (message.names, message.one, message.ages) == (("a", "b\n"), (1,), {"a": 1, 'b"': 2})
    assert message.mood is module.Mood.None_
    assert [item.value for item in module.Mood] == ["None", "title", "mro", "name", "Fine"]
    assert message.inner == module.Inner(x=3, mood=module.Mood.title_)
    assert (message.amount, message.key) == (Decimal("2.56"), UUID(int=7))
    assert message.moment == dt.datetime(1970, 1, 1, 0, 0, 0, 1, dt.UTC)
    assert message.local == dt.datetime(1970, 1, 1, 0, 0, 0, 1_000)  # noqa: DTZ001
    assert (message.day, message.hour) == (dt.date(1970, 1, 2), dt.time(1))
    assert message.doc == "å\u202e"
    assert "phone" not in repr(message)
    assert module.Made() == message
    assert module.Made().ages is not message.ages


@pytest.mark.parametrize(("width", "schema"), [(79, ODD), (88, QUOTED), (110, ODD), (200, ODD)])
def test_the_module_is_left_alone_by_the_formatter_and_clean_for_the_linter(
    tmp_path: Path, width: int, schema: Any
) -> None:
    file = tmp_path / "messages.py"
    file.write_text(
        generate(newest(load_folder(write_folder(tmp_path / "avro", {SUBJECT: schema})))), encoding="utf-8"
    )
    ruff = [sys.executable, "-m", "ruff"]
    config = ["--isolated", "--line-length", str(width)]
    checked = subprocess.run(
        [*ruff, "format", "--diff", *config, str(file)], capture_output=True, text=True, check=False
    )
    assert checked.returncode == 0, checked.stdout
    linted = subprocess.run(
        [*ruff, "check", *config, "--select", "E4,E7,E9,F,I,UP", str(file)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert linted.returncode == 0, linted.stdout


def test_the_module_is_clean_for_a_strict_type_checker(tmp_path: Path) -> None:
    """Fails when a member of an enum hides a method of str, or a field hides the type of the next one."""
    file = tmp_path / "odd_messages.py"
    folder = write_folder(tmp_path / "avro", {SUBJECT: ODD})
    file.write_text(generate(newest(load_folder(folder))), encoding="utf-8")
    options = [
        "--strict",
        "--config-file",
        str(ROOT / "pyproject.toml"),
        "--cache-dir",
        str(ROOT / ".mypy_cache"),
    ]
    found, errors, status = mypy.api.run([*options, str(file)])
    assert status == 0, found + errors


def test_only_what_is_used_is_imported(tmp_path: Path) -> None:
    """A linter would complain of the rest in the user's own repository."""
    words = "dt.date Mapping[ Decimal StrEnum UUID = field("
    text = generated(tmp_path, {"name": "a", "type": "string", "default": words, "doc": words})
    assert [line for line in text.splitlines() if "import" in line] == [
        "from dataclasses import dataclass",
        "from typing import ClassVar",
        "from packhorse.core.message import MessageType",
    ]


def test_classes_are_frozen_slotted_and_hashable(tmp_path: Path) -> None:
    message = made(tmp_path, ("a", {"type": "array", "items": "int"}))(a=(1,))
    with pytest.raises(dataclasses.FrozenInstanceError):
        message.a = ()
    assert not hasattr(message, "__dict__")
    assert hash(message) == hash(dataclasses.replace(message))
    with pytest.raises(TypeError):
        type(message)((1,))


def test_docs_become_docstrings() -> None:
    assert (shop.OrderPlaced.__doc__ or "").strip().splitlines()[0] == "A customer placed an order."
    assert "email: Where the receipt goes. Personal data." in (shop.OrderPlaced.__doc__ or "")


REFUSED: list[tuple[str, list[Any], str]] = [
    ("two underscores", [("__x", "int")], "field __x: a name that begins with two underscores"),
    (
        "one attribute twice",
        [("class", "int"), ("class_", "int")],
        "fields class and class_ both want the attribute class_",
    ),
    ("a symbol that is private", [("a", {"type": "enum", "name": "E", "symbols": ["_x"]})], "symbol _x"),
    (
        "one member twice",
        [("a", {"type": "enum", "name": "E", "symbols": ["None", "None_"]})],
        "two symbols want the member None_",
    ),
    ("a keyword as class", [("a", record(name="None"))], "can't have a class named None"),
    ("a name of the module's own", [("a", record(name="Decimal"))], "can't have a class named Decimal"),
    (
        "two types of one name",
        [("a", record(name="In")), ("b", {**record(name="In"), "namespace": "other"})],
        "other.In and test.In both want the class In",
    ),
    (
        "a field named like a class",
        [("money", record(name="money"))],
        "test.Made.money has the name of a class in this module",
    ),
    ("two branches of one type", [("a", ["int", "long"])], "two branches of the union are int in Python"),
    (
        "two kinds of bytes",
        [("a", ["bytes", {"type": "fixed", "name": "F", "size": 2}])],
        "are bytes in Python",
    ),
]


@pytest.mark.parametrize(
    ("fields", "told"), [case[1:] for case in REFUSED], ids=[case[0] for case in REFUSED]
)
def test_what_python_cannot_hold_is_refused_by_name(tmp_path: Path, fields: list[Any], told: str) -> None:
    with pytest.raises(SchemaError, match=f"{SUBJECT} v1: .*{told}"):
        generated(tmp_path, *fields)


def test_two_subjects_may_share_a_type_of_one_meaning_only(tmp_path: Path) -> None:
    mood = {"type": "enum", "name": "Mood", "symbols": ["CALM"]}
    other = "test.things-test.Other"
    write_folder(tmp_path, {SUBJECT: record(("a", mood)), other: record(("b", mood), name="Other")})
    text = generate(newest(load_folder(tmp_path)))
    assert text.count("class Mood(StrEnum)") == 1
    wild = {**mood, "symbols": ["WILD"]}
    folder = load_folder(write_folder(tmp_path, {other: record(("b", wild), name="Other")}))
    with pytest.raises(SchemaError, match=rf"{other} v1: test.Mood has another definition .* or use --only"):
        generate(newest(folder))
    assert "WILD" in generate(newest(folder, [other]))


def test_the_newest_version_is_made_and_types_for_reference_only_are_not() -> None:
    assert [(one.subject, one.version) for one in newest(load_folder(SHOP))] == [
        ("shop.catalog-shop.CategoryMoved", 1),
        ("shop.orders-shop.OrderCancelled", 1),
        ("shop.orders-shop.OrderPlaced", 2),
    ]
    with pytest.raises(SchemaError, match=r"has no message type shop\.Money; it has shop\.catalog"):
        newest(load_folder(SHOP), ["shop.Money"])


def test_a_folder_without_message_types_says_so(tmp_path: Path) -> None:
    folder = load_folder(write_folder(tmp_path, {"test.Made": record()}))
    with pytest.raises(SchemaError, match="has no message type"):
        newest(folder)
