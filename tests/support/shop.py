"""Messages; made by `packhorse schemas generate`: change the schemas, then run it again."""

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum
from typing import ClassVar
from uuid import UUID

from packhorse.core.message import MessageType


@dataclass(frozen=True, slots=True, kw_only=True)
class Category:
    """Category, as its schema has it."""

    name: str
    children: "tuple[Category, ...]" = ()

    __avro__: ClassVar[str] = "shop.Category"


@dataclass(frozen=True, slots=True, kw_only=True)
class CategoryMoved:
    """A category moved, with all below it."""

    root: Category

    __packhorse__: ClassVar[MessageType] = MessageType(
        type="shop.CategoryMoved",
        version=1,
        namespace="shop",
        aggregatetype="catalog",
        schema='{"type":"record","name":"shop.CategoryMoved","fields":[{"name":"root","type":{"type":"record","name":"shop.Category","fields":[{"name":"name","type":"string"},{"name":"children","type":{"type":"array","items":"shop.Category"},"default":[]}]}}]}',
    )


class Currency(StrEnum):
    """Currency, as its schema has it."""

    EUR = "EUR"
    USD = "USD"
    SEK = "SEK"

    __avro__: ClassVar[str] = "shop.Currency"


@dataclass(frozen=True, slots=True, kw_only=True)
class Money:
    """An amount of one currency."""

    amount: Decimal
    currency: Currency
    rounded: bool = False

    __avro__: ClassVar[str] = "shop.Money"


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderCancelled:
    """OrderCancelled, as its schema has it."""

    order_id: UUID
    refund: Money | None = None
    at: dt.datetime

    __packhorse__: ClassVar[MessageType] = MessageType(
        type="shop.OrderCancelled",
        version=1,
        namespace="shop",
        aggregatetype="orders",
        schema='{"type":"record","name":"shop.OrderCancelled","fields":[{"name":"order_id","type":{"type":"string","logicalType":"uuid"}},{"name":"refund","type":["null",{"type":"record","name":"shop.Money","fields":[{"name":"amount","type":{"type":"bytes","logicalType":"decimal","precision":18,"scale":2}},{"name":"currency","type":{"type":"enum","name":"shop.Currency","symbols":["EUR","USD","SEK"]}},{"name":"rounded","type":"boolean","default":false}]}],"default":null},{"name":"at","type":{"type":"long","logicalType":"timestamp-micros"}}]}',
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """Line, as its schema has it."""

    sku: str
    quantity: int
    price: Money

    __avro__: ClassVar[str] = "shop.Line"


class Status(StrEnum):
    """Status, as its schema has it."""

    UNKNOWN = "UNKNOWN"
    OPEN = "OPEN"
    PAID = "PAID"
    SHIPPED = "SHIPPED"

    __avro__: ClassVar[str] = "shop.Status"


@dataclass(frozen=True, slots=True, kw_only=True)
class Courier:
    """
    Courier, as its schema has it.

    Attributes:
        street: Personal data.
    """

    street: str = field(repr=False)
    express: bool = False

    __avro__: ClassVar[str] = "shop.Courier"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pickup:
    """Pickup, as its schema has it."""

    shop: str

    __avro__: ClassVar[str] = "shop.Pickup"


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderPlaced:
    """
    A customer placed an order.

    Attributes:
        order_id: Unique for all time.
        email: Where the receipt goes. Personal data.
        class_: A word of Python's.
        phone: Personal data.
    """

    order_id: UUID
    email: str | None = field(default=None, repr=False)
    lines: tuple[Line, ...]
    placed_at: dt.datetime
    status: Status = Status.OPEN
    delivery: Courier | Pickup | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    weight: float = 0.0
    points: int = 0
    class_: str = "standard"
    voucher: str | None = None
    phone: str | None = field(default=None, repr=False)
    gift: bool = False
    trace: bytes = b"\x00\x01\xfe\xff"
    reference: int | str = 0

    __packhorse__: ClassVar[MessageType] = MessageType(
        type="shop.OrderPlaced",
        version=2,
        namespace="shop",
        aggregatetype="orders",
        schema='{"type":"record","name":"shop.OrderPlaced","fields":[{"name":"order_id","type":{"type":"string","logicalType":"uuid"}},{"name":"email","type":["null","string"],"default":null,"packhorse.personal":true},{"name":"lines","type":{"type":"array","items":{"type":"record","name":"shop.Line","fields":[{"name":"sku","type":"string"},{"name":"quantity","type":"int"},{"name":"price","type":{"type":"record","name":"shop.Money","fields":[{"name":"amount","type":{"type":"bytes","logicalType":"decimal","precision":18,"scale":2}},{"name":"currency","type":{"type":"enum","name":"shop.Currency","symbols":["EUR","USD","SEK"]}},{"name":"rounded","type":"boolean","default":false}]}}]}}},{"name":"placed_at","type":{"type":"long","logicalType":"timestamp-millis"}},{"name":"status","type":{"type":"enum","name":"shop.Status","symbols":["UNKNOWN","OPEN","PAID","SHIPPED"],"default":"UNKNOWN"},"default":"OPEN"},{"name":"delivery","type":["null",{"type":"record","name":"shop.Courier","fields":[{"name":"street","type":"string","packhorse.personal":true},{"name":"express","type":"boolean","default":false}]},{"type":"record","name":"shop.Pickup","fields":[{"name":"shop","type":"string"}]}],"default":null},{"name":"labels","type":{"type":"map","values":"string"},"default":{}},{"name":"weight","type":"double","default":0.0},{"name":"points","type":"long","default":0},{"name":"class","type":"string","default":"standard"},{"name":"voucher","type":["null","string"],"default":null,"aliases":["coupon"]},{"name":"phone","type":["null","string"],"default":null,"packhorse.personal":true},{"name":"gift","type":"boolean","default":false},{"name":"trace","type":{"type":"fixed","name":"shop.Trace","size":4},"default":"\\u0000\\u0001\\u00fe\\u00ff"},{"name":"reference","type":["long","string"],"default":0}]}',
    )
