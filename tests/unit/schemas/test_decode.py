"""Decoding: versions newer and older than the reader's, and bytes that are none of ours."""

import contextlib
import dataclasses
import datetime as dt
import threading
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support import shop
from tests.support.avro_values import messages
from tests.support.schemas import MemorySource, message_class, module_of, record, shop_version

from packhorse.core.errors import RegistryUnavailable, Undecodable, UnknownSchema
from packhorse.schemas import Decoder, codec_of, encode_message
from packhorse.schemas.codec import Codec
from packhorse.schemas.framing import prefix

OLD_SHOP = module_of([shop_version("shop.orders-shop.OrderPlaced", 1)])
NOW = dt.datetime(2026, 1, 2, 3, 4, 5, 678_000, tzinfo=dt.UTC)
CANCELLED = shop.OrderCancelled(order_id=UUID(int=1), at=NOW)


def read_as(reader: Any, message: Any) -> Any:
    """Return *message*, written by its own class, as the class *reader* reads it."""
    source = MemorySource()
    return Decoder(source).decode(encode_message(message, source.add(type(message))), reader)


def undecodable(payload: bytes, cls: Any = shop.OrderCancelled) -> str:
    source = MemorySource(cls.__packhorse__.schema)
    with pytest.raises(Undecodable) as caught:
        Decoder(source).decode(payload, cls)
    return str(caught.value)


@given(st.data())
def test_a_newer_reader_reads_what_an_older_writer_wrote(data: st.DataObject) -> None:
    codec = Codec(OLD_SHOP.OrderPlaced)
    old = data.draw(messages(codec.schema, codec.classes))
    new = read_as(shop.OrderPlaced, old)
    assert (new.order_id, new.email, new.placed_at, new.labels) == (
        old.order_id,
        old.email,
        old.placed_at,
        old.labels,
    )
    assert [(line.sku, line.price.amount, line.price.rounded) for line in new.lines] == [
        (line.sku, line.price.amount, False) for line in old.lines
    ]
    assert new.status == old.status
    assert type(new.status) is shop.Status
    assert (new.weight, new.points, new.class_) == (old.weight, old.points, old.class_)
    assert new.voucher == old.coupon, "the alias carries the old name's value"
    assert (new.phone, new.gift, new.trace, new.reference) == (None, False, b"\x00\x01\xfe\xff", 0)
    assert type(new.delivery).__name__ == type(old.delivery).__name__


@given(st.data())
def test_an_older_reader_reads_what_a_newer_writer_wrote(data: st.DataObject) -> None:
    codec = codec_of(shop.OrderPlaced)
    drawn = data.draw(messages(codec.schema, codec.classes))
    new = dataclasses.replace(
        drawn, weight=0.5, points=1
    )  # double and long do not fit where v1 has float and int
    payload = encode_message(new, 1)
    with pytest.raises(Undecodable, match=r"weight: double was written, float is read \(rule type\)"):
        Decoder(MemorySource(shop.OrderPlaced.__packhorse__.schema)).decode(payload, OLD_SHOP.OrderPlaced)


def test_an_older_reader_leaves_out_what_it_does_not_know(tmp_path: Path) -> None:
    old = record(("a", "int"), ("gone", "string", "was there"), ("z", "int"))
    new = record(("b", {"type": "array", "items": "string"}), ("z", "int"), ("a", "int"))
    reader, writer = message_class(tmp_path, old), message_class(tmp_path, new)
    assert read_as(reader, writer(b=("x", "y"), z=1, a=2)) == reader(a=2, gone="was there", z=1)


def test_names_that_change_places_are_not_mixed_up(tmp_path: Path) -> None:
    old = record(("a", "int"), ("b", "int"), ("class", "int"))
    new = record(
        {"name": "b", "type": "int", "aliases": ["a"], "default": 0},
        {"name": "class_", "type": "int", "aliases": ["class"]},
        ("a", "int", 5),
    )
    reader, writer = message_class(tmp_path, new), message_class(tmp_path, old)
    assert read_as(reader, writer(a=1, b=2, class_=3)) == reader(b=2, class_=3, a=1)


def test_an_unknown_symbol_becomes_the_readers_default(tmp_path: Path) -> None:
    def enum(*symbols: str, **more: Any) -> dict[str, Any]:
        return record(("mood", {"type": "enum", "name": "Mood", "symbols": symbols, **more}))

    newer = message_class(tmp_path, enum("CALM", "WILD"))
    tolerant = message_class(tmp_path, enum("CALM", "OTHER", default="OTHER"))
    strict = message_class(tmp_path, enum("CALM"))
    wild = newer(mood=type_of(newer, "mood")("WILD"))
    assert read_as(tolerant, wild).mood == "OTHER"
    with pytest.raises(Undecodable, match=r"mood: a symbol that test.Mood does not know"):
        read_as(strict, wild)


def type_of(cls: Any, field: str) -> Any:
    return next(item.type for item in dataclasses.fields(cls) if item.name == field)


LONG = {"type": "long", "logicalType": "timestamp-micros"}
CHANGES: list[tuple[str, Any, Any, Any, Any]] = [
    ("int becomes long", "int", "long", 5, 5),
    ("int becomes double", "int", "double", 5, 5.0),
    ("long becomes float", "long", "float", 5, 5.0),
    ("text becomes bytes", "string", "bytes", "å", "å".encode()),
    ("bytes become text", "bytes", "string", "å".encode(), "å"),
    ("a type becomes optional", "string", ["null", "string"], "x", "x"),
    ("an optional type is given", ["null", "string"], "string", "x", "x"),
    ("an int becomes a long in a union", "int", ["string", "long"], 5, 5),
    ("a union grows", ["null", "int"], ["null", "string", "int"], 5, 5),
    (
        "items are promoted",
        {"type": "array", "items": "int"},
        {"type": "array", "items": "double"},
        (1, 2),
        (1.0, 2.0),
    ),
    (
        "values are promoted",
        {"type": "map", "values": "int"},
        {"type": "map", "values": "double"},
        {"a": 1},
        {"a": 1.0},
    ),
    (
        "milliseconds become microseconds and stay the same moment",
        {"type": "long", "logicalType": "timestamp-millis"},
        LONG,
        NOW,
        NOW,
    ),
    ("a number becomes a time", "long", LONG, 1, dt.datetime(1970, 1, 1, 0, 0, 0, 1, dt.UTC)),
    ("an int becomes a time", "int", LONG, 1, dt.datetime(1970, 1, 1, 0, 0, 0, 1, dt.UTC)),
    ("bytes become text in a union", "bytes", ["null", "string"], b"x", "x"),
    ("a time becomes a number", LONG, "long", dt.datetime(1970, 1, 1, 0, 0, 0, 1, dt.UTC), 1),
    (
        "a decimal's scale changes and the amount stays",
        {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2},
        {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 4},
        Decimal("1.25"),
        Decimal("1.25"),
    ),
]


@pytest.mark.parametrize(
    ("old", "new", "written", "read"), [c[1:] for c in CHANGES], ids=[c[0] for c in CHANGES]
)
def test_a_field_of_another_type_is_resolved(
    tmp_path: Path, old: Any, new: Any, written: Any, read: Any
) -> None:
    writer, reader = message_class(tmp_path, record(("x", old))), message_class(tmp_path, record(("x", new)))
    found = read_as(reader, writer(x=written)).x
    assert found == read
    assert type(found) is type(read)


UNREADABLE: list[tuple[str, Any, Any, Any]] = [
    ("a union's value that the reader has no branch for", ["null", "string"], ["null", "int"], "x"),
    ("an optional value that is not given", ["null", "string"], "string", None),
    ("a time read as another logical type", LONG, {"type": "long", "logicalType": "time-micros"}, NOW),
    ("bytes that are no text", "bytes", "string", b"\xff"),
    ("a text that is no uuid", "string", {"type": "string", "logicalType": "uuid"}, "personal text"),
    ("a number of days after year 9999", "int", {"type": "int", "logicalType": "date"}, 2**31 - 1),
    ("a number of micros after year 9999", "long", LONG, 2**62),
    ("a time of day of 25 hours", "int", {"type": "int", "logicalType": "time-millis"}, 90_000_000),
]


@pytest.mark.parametrize(
    ("old", "new", "written"), [c[1:] for c in UNREADABLE], ids=[c[0] for c in UNREADABLE]
)
def test_a_value_without_a_place_in_the_readers_schema_is_named_and_not_quoted(
    tmp_path: Path, old: Any, new: Any, written: Any
) -> None:
    writer, reader = message_class(tmp_path, record(("x", old))), message_class(tmp_path, record(("x", new)))
    with pytest.raises(Undecodable, match=r"no place in the reader's schema: x: ") as caught:
        read_as(reader, writer(x=written))
    assert "personal" not in str(caught.value)


def test_a_new_field_without_default_is_named(tmp_path: Path) -> None:
    old, new = record(("a", "int")), record(("a", "int"), ("b", "int"))
    with pytest.raises(
        Undecodable, match=r"field b was not written and has no default \(rule missing-default\)"
    ):
        read_as(message_class(tmp_path, new), message_class(tmp_path, old)(a=1))


def test_defaults_are_made_anew_for_each_message(tmp_path: Path) -> None:
    new = record(("a", "int"), ("tags", {"type": "map", "values": "int"}, {"x": 1}))
    old = message_class(tmp_path, record(("a", "int")))(a=1)
    reader = message_class(tmp_path, new)
    first, second = read_as(reader, old), read_as(reader, old)
    first.tags["y"] = 2
    assert second.tags == {"x": 1}


@pytest.mark.case("S-02")
def test_a_payload_of_another_type_is_not_taken_for_this_one() -> None:
    """
    Two types of one topic have ids of their own; whichever class a payload is read as, its own id decides.

    Fails when the decoder keeps its readers by class alone, or by id alone.
    """
    source = MemorySource()
    decoder = Decoder(source)
    placed = shop.OrderPlaced(order_id=UUID(int=1), lines=(), placed_at=NOW)
    payloads = [(one, encode_message(one, source.add(type(one)))) for one in (placed, CANCELLED)]
    for message, payload in payloads * 2:
        assert decoder.decode(payload, type(message)) == message
    with pytest.raises(
        Undecodable, match=r"shop.OrderPlaced was written, shop.OrderCancelled is read \(rule name\)"
    ):
        decoder.decode(payloads[0][1], shop.OrderCancelled)


@pytest.mark.case("S-05")
@pytest.mark.parametrize(
    "payload", [b"", b"\x00", b"\x00\x00\x00\x00", b"{}", b'{"a": 1}', b"\x01\x00\x00\x00\x01\x02"]
)
def test_a_payload_without_our_framing_is_undecodable(payload: bytes) -> None:
    """Fails when `split` does not look at the length or the first byte."""
    assert "0x00" in undecodable(payload) or "bytes; at least 5" in undecodable(payload)


def test_a_negative_schema_id_is_undecodable() -> None:
    assert "ids go up to" in undecodable(b"\x00\xff\xff\xff\xff\x02")


@pytest.mark.case("S-05")
def test_a_payload_that_is_cut_short_or_too_long_is_undecodable() -> None:
    """Fails when the end of the body is not compared with its length, or an error of fastavro's gets through."""
    payload = encode_message(CANCELLED, 1)
    for length in range(5, len(payload)):
        assert "is no Avro of its schema" in undecodable(payload[:length])
    assert f"which ends at byte {len(payload) - 5}" in undecodable(payload + b"\x00")


@pytest.mark.case("S-05")
@given(body=st.binary(max_size=60))
def test_any_bytes_are_read_or_undecodable(body: bytes) -> None:
    """Any other error would be taken for the handler's or for a bug, and the message tried again for nothing."""
    for cls in (shop.OrderPlaced, shop.OrderCancelled, shop.CategoryMoved):
        decoder = Decoder(MemorySource(cls.__packhorse__.schema))
        with contextlib.suppress(Undecodable):
            decoder.decode(prefix(1) + body, cls)


@pytest.mark.parametrize("depth", [1_000, 100_000, 1_000_000])
def test_nesting_without_end_is_undecodable_and_hurts_nobody(depth: int) -> None:
    """The compiled reader follows it until the process dies: fails (with the whole test run) when that one is used."""
    body = b"\x02x\x02" * depth + b"\x02x\x00" + b"\x00" * depth
    assert "RecursionError" in undecodable(prefix(1) + body, shop.CategoryMoved)


def test_a_schema_id_is_asked_for_once() -> None:
    source = MemorySource()
    decoder = Decoder(source)
    payload = encode_message(CANCELLED, source.add(shop.OrderCancelled))
    for _ in range(3):
        decoder.decode(payload, shop.OrderCancelled)
        decoder.plain(payload)
    assert source.asked == [1, 1], "once for each way of reading; the registry's client keeps the text"


@pytest.mark.case("S-09")
def test_trouble_with_the_registry_is_not_remembered() -> None:
    """The message is fine: once the registry is back it is read. Fails when a failed look-up is kept."""
    source = MemorySource()
    decoder = Decoder(source)
    payload = encode_message(CANCELLED, source.add(shop.OrderCancelled))
    source.trouble = RegistryUnavailable("away")
    with pytest.raises(RegistryUnavailable):
        decoder.decode(payload, shop.OrderCancelled)
    source.trouble = None
    assert decoder.decode(payload, shop.OrderCancelled) == CANCELLED


@pytest.mark.case("S-10")
def test_an_id_that_is_clearly_unknown_stops_that_message_alone() -> None:
    """Fails when an unknown id is taken for trouble with the registry, or keeps the next message from being read."""
    source = MemorySource()
    decoder = Decoder(source)
    good = encode_message(CANCELLED, source.add(shop.OrderCancelled))
    with pytest.raises(UnknownSchema, match="99"):
        decoder.decode(prefix(99) + good[5:], shop.OrderCancelled)
    assert decoder.decode(good, shop.OrderCancelled) == CANCELLED


@pytest.mark.parametrize("text", ["", "{", '{"type": "record"}', '"nonsense"', "[" * 100_000])
def test_a_schema_that_is_none_is_undecodable(text: str) -> None:
    with pytest.raises(Undecodable, match="schema 1 is no Avro schema"):
        Decoder(MemorySource(text)).decode(encode_message(CANCELLED, 1), shop.OrderCancelled)


def test_threads_share_a_decoder() -> None:
    source = MemorySource()
    decoder = Decoder(source)
    payload = encode_message(CANCELLED, source.add(shop.OrderCancelled))
    found: list[Any] = []
    threads = [
        threading.Thread(target=lambda: found.append(decoder.decode(payload, shop.OrderCancelled)))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [CANCELLED] * 8


def test_a_payload_is_shown_without_a_class() -> None:
    source = MemorySource()
    payload = encode_message(dataclasses.replace(CANCELLED), source.add(shop.OrderCancelled))
    plain = Decoder(source).plain(payload)
    assert plain.value == {"order_id": UUID(int=1), "refund": None, "at": NOW}
    assert "refund" not in repr(plain.value) or "value" not in repr(plain)
