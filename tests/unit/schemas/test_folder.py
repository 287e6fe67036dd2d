"""Loading a folder: places, names, versions and references, each mistake named with its file."""

from pathlib import Path
from typing import Any

import pytest
from tests.support.schemas import SHOP, record, write_folder

from packhorse.core.errors import SchemaError, SettingsError
from packhorse.schemas.folder import load_folder

SUBJECT = "test.things-test.Made"
MONEY: dict[str, Any] = {
    "type": "record",
    "name": "Money",
    "namespace": "test",
    "fields": [{"name": "cents", "type": "int"}],
}
MONEY_2: dict[str, Any] = {
    **MONEY,
    "fields": [*MONEY["fields"], {"name": "currency", "type": "string", "default": "EUR"}],
}


def refused(root: Path) -> str:
    with pytest.raises((SchemaError, SettingsError)) as caught:
        load_folder(root)
    return str(caught.value)


def test_the_shops_folder_is_loaded_in_order_and_with_references() -> None:
    folder = load_folder(SHOP)
    assert {
        subject: [one.version for one in versions] for subject, versions in folder.subjects().items()
    } == {
        "shop.Money": [1, 2],
        "shop.catalog-shop.CategoryMoved": [1],
        "shop.orders-shop.OrderCancelled": [1],
        "shop.orders-shop.OrderPlaced": [1, 2],
    }
    order = folder.subjects()["shop.orders-shop.OrderPlaced"][1]
    assert [(one.name, one.subject, one.version) for one in order.references] == [
        ("shop.Money", "shop.Money", 2)
    ]
    about = order.message_type
    assert (about.topic, about.subject, about.type, about.version) == (
        "shop.orders",
        "shop.orders-shop.OrderPlaced",
        "shop.OrderPlaced",
        2,
    )
    placed = [(one.subject, one.version) for one in folder.in_reference_order()]
    assert placed.index(("shop.Money", 2)) < placed.index(("shop.orders-shop.OrderCancelled", 1))
    assert len(placed) == len(folder.versions)


def test_a_new_version_of_a_reference_does_not_change_what_an_old_schema_means(tmp_path: Path) -> None:
    made = record(("price", "Money"))
    write_folder(tmp_path, {"test.Money": MONEY, SUBJECT: made})
    before = load_folder(tmp_path).subjects()[SUBJECT][0]
    write_folder(tmp_path, {"test.Money": [MONEY, MONEY_2]})
    assert load_folder(tmp_path).subjects()[SUBJECT][0].fingerprint == before.fingerprint
    pinned = {**made, "packhorse.references": {"test.Money": 2}}
    write_folder(tmp_path, {SUBJECT: [made, pinned]})
    assert "currency" in load_folder(tmp_path).subjects()[SUBJECT][1].text
    assert "packhorse.references" not in load_folder(tmp_path).subjects()[SUBJECT][1].own


def test_a_message_type_can_be_referred_to_by_its_name(tmp_path: Path) -> None:
    other = record(("of", "test.Made"), name="Other")
    write_folder(tmp_path, {SUBJECT: record(("a", "int")), "test.things-test.Other": other})
    reference = load_folder(tmp_path).subjects()["test.things-test.Other"][0].references[0]
    assert (reference.name, reference.subject, reference.version) == ("test.Made", SUBJECT, 1)


def test_a_folder_that_is_none_or_empty_is_refused_by_setting(tmp_path: Path) -> None:
    assert f"avro_dir {tmp_path / 'gone'} is no folder" in refused(tmp_path / "gone")
    assert f"avro_dir {tmp_path} has no <subject>/v<N>.avsc" in refused(tmp_path)


@pytest.mark.parametrize(
    "name",
    [
        "v1.avsc",
        "a/b/v1.avsc",
        f"{SUBJECT}/v01.avsc",
        f"{SUBJECT}/V1.avsc",
        f"{SUBJECT}/new.avsc",
        f"{SUBJECT}/v0.avsc",
    ],
)
def test_a_file_in_the_wrong_place_is_named(tmp_path: Path, name: str) -> None:
    (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / name).write_text("{}")
    assert f"{tmp_path / name}: the place of a schema is" in refused(tmp_path)


def test_a_gap_between_versions_is_named(tmp_path: Path) -> None:
    write_folder(tmp_path, {SUBJECT: [record(), record(), record()]})
    (tmp_path / SUBJECT / "v2.avsc").unlink()
    assert "v2.avsc is missing" in refused(tmp_path)


MISTAKES: list[tuple[dict[str, Any], str]] = [
    ({"test.things-test.Other": record()}, "asks for a type test.Other, the file defines test.Made"),
    ({"test.Made": "int"}, "the file defines a primitive"),
    (
        {"things-test.Made": record()},
        "topic 'things' in the folder's name is not <namespace>.<aggregatetype>",
    ),
    ({"test.thi ngs-test.Made": record()}, "topic name 'test.thi ngs' is not legal"),
    (
        {"test.things-test.E": {"type": "enum", "name": "test.E", "symbols": ["A"]}},
        "a message type is a record",
    ),
    ({SUBJECT: record(("a", "int", "x"))}, "field a: default 'x' is not allowed: int from"),
    ({SUBJECT: record(("a", ["null", "int"], "x"))}, "None is needed, or int from"),
    ({SUBJECT: record(("a", {"type": "fixed", "name": "F", "size": 2}, "x"))}, "exactly 2 bytes is needed"),
    ({SUBJECT: record(("a", {"type": "string", "logicalType": "uuid"}, "x"))}, "a text that is no UUID"),
    (
        {SUBJECT: record(("a", {"type": "bytes", "logicalType": "decimal", "precision": 2}, "\u0001\u0000"))},
        "a decimal of more than 2 digits",
    ),
    ({SUBJECT: record(("a", record(("b", "int"), name="In"), {}))}, "field b of test.In is missing"),
    ({SUBJECT: record(("a", record(("b", "int"), name="In"), {"b": 1, "c": 2}))}, "test.In has no field c"),
    ({SUBJECT: record(("a", "test.Nowhere"))}, "type 'test.Nowhere' is not known"),
    (
        {
            SUBJECT: {**record(("a", "test.Money")), "packhorse.references": {"test.Money": 3}},
            "test.Money": MONEY,
        },
        "pins test.Money to version 3",
    ),
    (
        {SUBJECT: {**record(), "packhorse.references": ["test.Money"]}},
        "an object from full names to versions",
    ),
    (
        {SUBJECT: record(("a", "test.Other")), "test.Other": record(("b", "test.Made"), name="Other")},
        "the references go in a circle",
    ),
    (
        {
            "test.Money": [MONEY, MONEY_2],
            "test.Fee": {**record(("of", "Money"), name="Fee")},
            SUBJECT: {
                **record(("fee", "Fee"), ("price", "Money")),
                "packhorse.references": {"test.Money": 2},
            },
        },
        "test.Money comes in with two meanings",
    ),
    (
        {
            "test.a-test.Twice": record(name="Twice"),
            "test.b-test.Twice": record(name="Twice"),
            SUBJECT: record(("x", "Twice")),
        },
        "test.Twice stands in test.a-test.Twice and in test.b-test.Twice",
    ),
]


@pytest.mark.parametrize(("subjects", "told"), MISTAKES, ids=[told[:40] for _, told in MISTAKES])
def test_a_mistake_is_named_with_its_file(tmp_path: Path, subjects: dict[str, Any], told: str) -> None:
    text = refused(write_folder(tmp_path, subjects))
    assert told in text
    assert "v1.avsc" in text


def test_a_file_that_is_no_text_is_named(tmp_path: Path) -> None:
    file = write_folder(tmp_path, {SUBJECT: record()}) / SUBJECT / "v1.avsc"
    file.write_bytes(b"\xff\xfe")
    assert str(file) in refused(tmp_path)
    file.write_text("{ not json")
    assert str(file) in refused(tmp_path)
