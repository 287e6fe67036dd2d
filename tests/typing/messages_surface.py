"""
The types of generated message classes as a user sees them; checked by mypy, never run.

A line marked `type: ignore` must be an error: mypy warns of an ignore that nothing needs.
"""

import datetime as dt
from collections.abc import Mapping
from decimal import Decimal
from typing import assert_type
from uuid import UUID

from tests.support.shop import Courier, Currency, Line, Money, OrderPlaced, Pickup, Status

from packhorse.core.message import MessageType, TypedMessage
from packhorse.schemas import Decoder, Registry, SchemaSource, codec_of, encode_message
from packhorse.schemas.codec import Codec


def build(now: dt.datetime) -> OrderPlaced:
    price = Money(amount=Decimal("9.90"), currency=Currency.EUR)
    return OrderPlaced(
        order_id=UUID(int=1),
        lines=(Line(sku="A", quantity=1, price=price),),
        placed_at=now,
        delivery=Pickup(shop="Lund"),
        labels={"a": "b"},
        status=Status.PAID,
        weight=3,
    )


def read(order: OrderPlaced) -> None:
    assert_type(order.order_id, UUID)
    assert_type(order.email, str | None)
    assert_type(order.lines, tuple[Line, ...])
    assert_type(order.lines[0].price.amount, Decimal)
    assert_type(order.placed_at, dt.datetime)
    assert_type(order.status, Status)
    assert_type(order.delivery, Courier | Pickup | None)
    assert_type(order.labels, Mapping[str, str])
    assert_type(order.class_, str)
    assert_type(order.trace, bytes)
    assert_type(order.reference, int | str)
    assert_type(OrderPlaced.__packhorse__, MessageType)


def carry(order: OrderPlaced, source: SchemaSource, registry: Registry) -> None:
    message: TypedMessage = order
    payload = encode_message(message, 7)
    assert_type(codec_of(OrderPlaced), Codec[OrderPlaced])
    assert_type(Decoder(source).decode(payload, OrderPlaced), OrderPlaced)
    also: SchemaSource = registry
    del also


def mistakes(order: OrderPlaced, now: dt.datetime) -> None:
    order.gift = True  # type: ignore[misc]
    OrderPlaced(order_id="1", lines=(), placed_at=now)  # type: ignore[arg-type]
    OrderPlaced(order_id=UUID(int=1), lines=())  # type: ignore[call-arg]
    OrderPlaced(order_id=UUID(int=1), lines=(), placed_at=now, colour="red")  # type: ignore[call-arg]
    Line("A", 1)  # type: ignore[call-arg]
    Money(amount=9.9, currency=Currency.EUR)  # type: ignore[arg-type]
    Money(amount=Decimal(1), currency="EUR")  # type: ignore[arg-type]
    encode_message(object(), 7)  # type: ignore[arg-type]
