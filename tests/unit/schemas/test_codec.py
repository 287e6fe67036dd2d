"""Encoding: what fits comes back as it was, what does not is refused by name, and nothing is turned into something else."""

import dataclasses
import datetime as dt
import enum
import json
import subprocess
import sys
from decimal import Decimal
from io import BytesIO
from pathlib import Path
from typing import Any
from uuid import UUID

import fastavro
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support import shop
from tests.support.avro_values import messages
from tests.support.schemas import MemorySource, message_class, record

from packhorse.core.errors import InvalidMessage, SchemaError, ValueMismatch
from packhorse.schemas import Decoder, codec_of, encode_message, split
from packhorse.schemas.mismatch import shown

ROOT = Path(__file__).parents[3]
NOW = dt.datetime(2026, 1, 2, 3, 4, 5, 678_000, tzinfo=dt.UTC)
PRICE = shop.Money(amount=Decimal("9.90"), currency=shop.Currency.EUR)
ORDER = shop.OrderPlaced(
    order_id=UUID(int=7),
    lines=(shop.Line(sku="A-1", quantity=2, price=PRICE), shop.Line(sku="B-2", quantity=1, price=PRICE)),
    placed_at=NOW,
)
SHOP_MESSAGES = (shop.OrderPlaced, shop.OrderCancelled, shop.CategoryMoved)


def order(**changes: Any) -> shop.OrderPlaced:
    return dataclasses.replace(ORDER, **changes)


def line(**changes: Any) -> shop.Line:
    return dataclasses.replace(ORDER.lines[0], **changes)


def refused(message: Any) -> ValueMismatch:
    with pytest.raises(ValueMismatch) as caught:
        encode_message(message, 1)
    return caught.value


@given(st.data())
@pytest.mark.parametrize("cls", SHOP_MESSAGES)
def test_what_was_encoded_is_decoded_as_it_was(cls: Any, data: st.DataObject) -> None:
    codec = codec_of(cls)
    message = data.draw(messages(codec.schema, codec.classes))
    source = MemorySource()
    payload = encode_message(message, source.add(cls))
    assert Decoder(source).decode(payload, cls) == message


ALL_SCALARS = record(
    ("boolean", "boolean"),
    ("int", "int"),
    ("long", "long"),
    ("float", "float"),
    ("double", "double"),
    ("bytes", "bytes"),
    ("string", "string"),
    ("nothing", "null"),
    ("uuid", {"type": "string", "logicalType": "uuid"}),
    ("uuid_bytes", {"type": "fixed", "size": 16, "name": "Id", "logicalType": "uuid"}),
    ("decimal", {"type": "bytes", "logicalType": "decimal", "precision": 40, "scale": 7}),
    (
        "fixed_decimal",
        {"type": "fixed", "size": 5, "name": "D", "logicalType": "decimal", "precision": 11, "scale": 11},
    ),
    ("date", {"type": "int", "logicalType": "date"}),
    ("time_millis", {"type": "int", "logicalType": "time-millis"}),
    ("time_micros", {"type": "long", "logicalType": "time-micros"}),
    ("millis", {"type": "long", "logicalType": "timestamp-millis"}),
    ("micros", {"type": "long", "logicalType": "timestamp-micros"}),
    ("local_millis", {"type": "long", "logicalType": "local-timestamp-millis"}),
    ("local_micros", {"type": "long", "logicalType": "local-timestamp-micros"}),
    ("union", ["null", "long", "double", "string", "bytes", {"type": "array", "items": "int"}]),
)


@given(st.data())
def test_every_scalar_comes_back_as_it_was(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    cls = _scalars_class(tmp_path_factory)
    codec = codec_of(cls)
    message = data.draw(messages(codec.schema, codec.classes))
    source = MemorySource()
    assert Decoder(source).decode(encode_message(message, source.add(cls)), cls) == message


_made: list[Any] = []


def _scalars_class(factory: pytest.TempPathFactory) -> Any:
    if not _made:
        _made.append(message_class(factory.mktemp("scalars"), ALL_SCALARS))
    return _made[0]


@pytest.mark.case("S-01")
def test_the_payload_is_the_schema_id_and_plain_avro() -> None:
    """
    Any client of the wire format reads it: a zero byte, the registry's id (not the version), Avro of the schema.

    Fails when `prefix` writes the version, or when the body is not what the reference reader of the schema reads.
    """
    payload = encode_message(shop.OrderCancelled(order_id=UUID(int=1), refund=PRICE, at=NOW), 0x01020304)
    assert payload[:5] == b"\x00\x01\x02\x03\x04"
    schema_id, body = split(payload)
    assert schema_id == 0x01020304
    schema = fastavro.parse_schema(json.loads(shop.OrderCancelled.__packhorse__.schema))
    read = fastavro.schemaless_reader(BytesIO(body), schema, None)
    assert read == {
        "order_id": UUID(int=1),
        "refund": {"amount": Decimal("9.90"), "currency": "EUR", "rounded": False},
        "at": NOW,
    }


FIRST, LAST = dt.datetime(1, 1, 1, tzinfo=dt.UTC), dt.datetime(9999, 12, 31, 23, tzinfo=dt.UTC)


class Loud(str):
    __slots__ = ()


class Number(enum.IntEnum):
    ONE = 1


def test_harmless_subclasses_and_other_zones_are_taken() -> None:
    zone = dt.timezone(dt.timedelta(hours=5, minutes=30))
    message = order(
        lines=list(ORDER.lines),
        points=Number.ONE,
        voucher=Loud("x"),
        placed_at=NOW.astimezone(zone),
        weight=3,
    )
    source = MemorySource()
    read = Decoder(source).decode(encode_message(message, source.add(shop.OrderPlaced)), shop.OrderPlaced)
    assert read == order(points=1, voucher="x", weight=3.0)


WRONG: list[tuple[str, dict[str, Any], str]] = [
    ("order_id", {"order_id": str(UUID(int=1))}, "uuid.UUID"),
    ("lines", {"lines": "A-1"}, "a tuple or list"),
    ("lines[1]", {"lines": (ORDER.lines[0], "B")}, "a Line"),
    ("lines[0].quantity", {"lines": (line(quantity=True),)}, "int from"),
    ("lines[0].quantity", {"lines": (line(quantity=1.0),)}, "int from"),
    ("lines[0].quantity", {"lines": (line(quantity=2**31),)}, "2147483647"),
    ("lines[0].sku", {"lines": (line(sku=b"A"),)}, "text"),
    ("placed_at", {"placed_at": NOW.replace(tzinfo=None)}, "aware datetime"),
    ("placed_at", {"placed_at": NOW.replace(microsecond=1)}, "whole milliseconds"),
    ("placed_at", {"placed_at": NOW.date()}, "aware datetime"),
    ("placed_at", {"placed_at": 1_700_000_000_000}, "aware datetime"),
    ("status", {"status": "OPEN"}, "Status: UNKNOWN, OPEN, PAID, SHIPPED"),
    ("status", {"status": "LOST"}, "Status: UNKNOWN, OPEN, PAID, SHIPPED"),
    ("status", {"status": shop.Currency.EUR}, "Status: UNKNOWN, OPEN, PAID, SHIPPED"),
    ("delivery", {"delivery": PRICE}, "None, or a Courier, or a Pickup"),
    ("delivery.express", {"delivery": shop.Courier(street="x", express=1)}, "True or False"),  # type: ignore[arg-type]
    ("delivery.shop", {"delivery": shop.Pickup(shop=5)}, "text"),  # type: ignore[arg-type]
    ("labels", {"labels": [("a", "b")]}, "a mapping from text"),
    ("labels['a']", {"labels": {"a": 5}}, "text"),
    ("labels['5']", {"labels": {5: "a"}}, "text"),
    ("weight", {"weight": "3.0"}, "float"),
    ("weight", {"weight": True}, "float"),
    ("weight", {"weight": Decimal("1.5")}, "float"),
    ("weight", {"weight": 2**53 + 1}, "float"),
    ("points", {"points": 2**63}, "int from"),
    ("points", {"points": None}, "int from"),
    ("class", {"class_": None}, "text"),
    ("class", {"class_": "\ud800"}, "text"),
    ("voucher", {"voucher": 5}, "None, or text"),
    ("gift", {"gift": "yes"}, "True or False"),
    ("gift", {"gift": 0}, "True or False"),
    ("trace", {"trace": b"abc"}, "exactly 4 bytes"),
    ("trace", {"trace": "abcd"}, "exactly 4 bytes"),
    ("trace", {"trace": bytearray(4)}, "exactly 4 bytes"),
    ("reference", {"reference": 1.5}, "int from"),
    ("reference", {"reference": True}, "int from"),
]


@pytest.mark.case("B-05")
@pytest.mark.parametrize(("path", "change", "allowed"), WRONG)
def test_a_wrong_value_is_refused_with_its_path_and_what_is_allowed(
    path: str, change: dict[str, Any], allowed: str
) -> None:
    """
    The error names the field, what was given and what is allowed; nothing is turned into something else in silence.

    Fails when a check of scalars.py is left to fastavro: it writes True as an int, cuts microseconds, reads a naive time
    as local and takes an int for a boolean.
    """
    error = refused(order(**change))
    assert error.path == path
    assert f"shop.OrderPlaced, {path}: given " in str(error)
    assert allowed in str(error).partition("; allowed: ")[2]


DECIMALS = [
    ("1.234", "too many digits after the point"),
    ("0.001", "too many digits after the point"),
    ("1E-3000000", "too many digits after the point"),
    ("1E+17", "too large"),
    ("1E+3000000", "too large"),
    ("99999999999999999.99", "too large"),
    ("NaN", ""),
    ("sNaN", ""),
    ("-Infinity", ""),
]


@pytest.mark.case("B-05")
@pytest.mark.parametrize(("text", "why"), DECIMALS)
def test_a_decimal_over_precision_or_scale_is_refused(text: str, why: str) -> None:
    """Fails when the scale is rounded to, or the digits are not counted, in `Decimals.take`."""
    wrong = line(price=dataclasses.replace(PRICE, amount=Decimal(text)))
    error = refused(order(lines=(ORDER.lines[0], wrong)))
    assert error.path == "lines[1].price.amount"
    assert why in str(error)
    assert "at most 18 digits, 16 before the point and 2 after it" in str(error)


@pytest.mark.parametrize(
    "text", ["1", "1.0", "1.00", "1.000", "1E+3", "0E+99", "-0.00", "-0.01", "9999999999999999.99"]
)
def test_a_decimal_is_taken_when_nothing_of_it_is_lost(text: str) -> None:
    message = shop.OrderCancelled(
        order_id=UUID(int=1), refund=dataclasses.replace(PRICE, amount=Decimal(text)), at=NOW
    )
    source = MemorySource()
    read = Decoder(source).decode(
        encode_message(message, source.add(shop.OrderCancelled)), shop.OrderCancelled
    )
    assert read == message


@pytest.mark.parametrize(
    ("value", "offset"),
    [(FIRST, 1), (LAST, -2)],
    ids=["before year 1", "after year 9999"],
)
def test_a_time_that_utc_cannot_hold_is_refused(value: dt.datetime, offset: int) -> None:
    moment = value.replace(tzinfo=dt.timezone(dt.timedelta(hours=offset)))
    assert refused(shop.OrderCancelled(order_id=UUID(int=1), at=moment)).path == "at"


def test_a_date_with_a_time_is_refused(tmp_path: Path) -> None:
    made = message_class(tmp_path, record(("day", {"type": "int", "logicalType": "date"})))
    assert "would lose its time" in str(refused(made(day=NOW)))


@pytest.mark.parametrize("value", [1e39, -1e39, 2**24 + 1])
def test_a_float_of_32_bits_must_hold_the_value(tmp_path: Path, value: float) -> None:
    assert refused(message_class(tmp_path, record(("x", "float")))(x=value)).path == "x"


@pytest.mark.case("X-07")
def test_a_personal_value_is_told_by_its_type_alone() -> None:
    """Fails when `Mismatch.as_error` shows what was given in a personal field, or anything that may hold one."""
    assert "secret@example" not in str(refused(order(email=b"secret@example")))
    assert str(refused(order(email=b"secret@example"))).endswith("given bytes; allowed: None, or text (str)")


def test_half_a_surrogate_pair_is_named_in_personal_fields_too() -> None:
    """Fails when a text is refused with the words that text is allowed."""
    assert "given str; allowed: None, or text (str) without half a surrogate pair" in str(
        refused(order(email="\ud800"))
    )
    courier = shop.Courier(street="Secret Street 1")
    assert "Secret" not in str(refused(order(voucher=courier)))
    assert "Secret" not in str(refused(order(voucher={"street": "Secret Street 1"})))
    assert "Secret" not in str(refused(order(voucher=["Secret Street 1"])))
    assert "Secret" not in repr(order(email="Secret", delivery=courier, phone="Secret"))


def test_keys_of_a_personal_map_are_not_told(tmp_path: Path) -> None:
    field = {"name": "friends", "type": {"type": "map", "values": "int"}, "packhorse.personal": True}
    error = refused(message_class(tmp_path, record(field))(friends={"Anna Secret": "x"}))
    assert error.path == "friends[*]"
    assert "Secret" not in str(error)


def test_what_was_given_is_cut_short() -> None:
    assert len(str(refused(order(placed_at="x" * 100_000)))) < 300
    assert "int of 100001 bits" in str(refused(order(points=2**100_000)))
    assert shown(Decimal("1" * 500)).endswith("…")


def test_nesting_ends_where_every_reader_can_follow() -> None:
    """A payload that we could write and not read would be quarantined by every reader."""
    deepest = shop.Category(name="leaf")
    for _ in range(62):
        deepest = shop.Category(name="x", children=(deepest,))
    source = MemorySource()
    payload = encode_message(shop.CategoryMoved(root=deepest), source.add(shop.CategoryMoved))
    assert Decoder(source).decode(payload, shop.CategoryMoved).root == deepest
    error = refused(shop.CategoryMoved(root=shop.Category(name="x", children=(deepest,))))
    assert "at most 64 records inside each other" in str(error)
    assert len(str(error)) < 500


@dataclasses.dataclass(frozen=True)
class NoMessage:
    pass


def test_only_message_classes_are_taken() -> None:
    with pytest.raises(SchemaError, match="NoMessage is no message class"):
        encode_message(NoMessage(), 1)  # type: ignore[arg-type]
    with pytest.raises(SchemaError, match="an instance of it is needed"):
        encode_message(shop.OrderPlaced, 1)  # type: ignore[arg-type]


@pytest.mark.parametrize("schema_id", [-1, 2**31])
def test_an_id_that_no_registry_gives_is_refused(schema_id: int) -> None:
    with pytest.raises(InvalidMessage, match=str(schema_id)):
        encode_message(ORDER, schema_id)


def test_a_class_that_was_changed_by_hand_is_refused_by_field() -> None:
    @dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
    class OrderCancelled:
        order_id: UUID
        refund: shop.Money | None = None
        when: dt.datetime
        __packhorse__ = shop.OrderCancelled.__packhorse__

    with pytest.raises(SchemaError, match=r"shop.orders-shop.OrderCancelled v1: .* has no at, which"):
        codec_of(OrderCancelled)  # type: ignore[type-var]


@pytest.mark.case("S-08")
def test_writing_knows_no_registry() -> None:
    """
    A message is encoded while every connection fails, and nothing that could open one is even imported.

    Fails when the codec asks the registry for the id or the schema, or imports its client.
    """
    program = """
import socket, sys
from tests.support import shop
from uuid import UUID
import datetime as dt
def refuse(*_): raise AssertionError("a connection")
socket.socket.connect = refuse
from packhorse.schemas import encode_message
order = shop.OrderCancelled(order_id=UUID(int=1), at=dt.datetime(2026, 1, 1, tzinfo=dt.UTC))
print(len(encode_message(order, 7)), sorted({"httpx", "psycopg", "typer", "pydantic"} & set(sys.modules)))
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, cwd=ROOT
    )
    assert done.stdout.split(maxsplit=1)[1].strip() == "[]", done.stderr
