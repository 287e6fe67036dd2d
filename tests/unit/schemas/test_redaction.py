"""What is personal in a schema, and values with it masked."""

import datetime as dt
import json
from decimal import Decimal
from uuid import UUID

import pytest
from tests.support import shop
from tests.support.schemas import MemorySource, record

from packhorse.schemas import Decoder, encode_message, masked, personal_paths
from packhorse.schemas.parse import parse_schema
from packhorse.schemas.tree import PERSONAL


def test_personal_fields_are_listed_by_path() -> None:
    schema = parse_schema(shop.OrderPlaced.__packhorse__.schema)
    assert personal_paths(schema) == ("email", "delivery.street", "phone")


def test_a_record_that_holds_itself_is_followed_once() -> None:
    node = record(
        {"name": "name", "type": "string", PERSONAL: True},
        ("next", {"type": "array", "items": "test.Node"}),
        name="Node",
    )
    assert personal_paths(parse_schema(json.dumps(node))) == ("name",)


@pytest.mark.case("X-07")
def test_a_masked_value_shows_everything_but_what_is_personal() -> None:
    """Fails when a union of records is looked at by its first branch only, or a field without a mark is masked."""
    order = shop.OrderPlaced(
        order_id=UUID(int=1),
        email="anna@example",
        lines=(
            shop.Line(
                sku="A", quantity=1, price=shop.Money(amount=Decimal("1.50"), currency=shop.Currency.SEK)
            ),
        ),
        placed_at=dt.datetime(2026, 1, 2, tzinfo=dt.UTC),
        delivery=shop.Courier(street="Secret Street"),
        labels={"a": "b"},
        trace=b"\x00\xff\x00\xff",
    )
    source = MemorySource()
    plain = Decoder(source).plain(encode_message(order, source.add(shop.OrderPlaced)))
    assert masked(plain.value, plain.schema) == {
        "order_id": str(UUID(int=1)),
        "email": "***",
        "lines": [
            {"sku": "A", "quantity": 1, "price": {"amount": "1.50", "currency": "SEK", "rounded": False}}
        ],
        "placed_at": "2026-01-02T00:00:00+00:00",
        "status": "OPEN",
        "delivery": {"street": "***", "express": False},
        "labels": {"a": "b"},
        "weight": 0.0,
        "points": 0,
        "class": "standard",
        "voucher": None,
        "phone": None,
        "gift": False,
        "trace": "AP8A/w==",
        "reference": 0,
    }
    json.dumps(masked(plain.value, plain.schema))


def test_what_the_schema_does_not_know_is_masked() -> None:
    schema = parse_schema(json.dumps(record(("known", "string"))))
    assert masked({"known": {"deep": "x"}, "other": "y"}, schema) == {"known": "***", "other": "***"}


def test_a_personal_list_or_record_is_masked_whole() -> None:
    schema = parse_schema(
        json.dumps(record({"name": "people", "type": {"type": "array", "items": "string"}, PERSONAL: True}))
    )
    assert masked({"people": ["Anna"]}, schema) == {"people": "***"}
