"""Another client reads what we write and we read what it writes, on a real registry: confluent-kafka's own Avro classes."""

import dataclasses
import datetime as dt
from collections.abc import Iterator
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from confluent_kafka.schema_registry import (
    SchemaReference,
    SchemaRegistryClient,
    topic_record_subject_name_strategy,
)
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from tests.support import shop
from tests.support.registry import MemoryTable
from tests.support.schemas import SHOP

from packhorse.core.errors import SchemaNotRegistered
from packhorse.local.settings import Endpoints
from packhorse.schemas import Decoder, Registry, encode_message
from packhorse.schemas.fit import check_fit
from packhorse.schemas.folder import load_folder
from packhorse.schemas.register import register
from packhorse.schemas.systems import RegistrySettings

NOW = dt.datetime(2026, 1, 2, 3, 4, 5, 678_000, tzinfo=dt.UTC)
PRICE = shop.Money(amount=Decimal("9.90"), currency=shop.Currency.EUR, rounded=True)
MESSAGES: list[Any] = [
    shop.OrderPlaced(
        order_id=UUID(int=7),
        email="anna@example",
        lines=(shop.Line(sku="A", quantity=2, price=PRICE), shop.Line(sku="Å", quantity=-1, price=PRICE)),
        placed_at=NOW,
        status=shop.Status.SHIPPED,
        delivery=shop.Pickup(shop="Lund"),
        labels={"a": "b"},
        weight=0.5,
        points=2**40,
        reference="ref",
    ),
    shop.OrderCancelled(order_id=UUID(int=7), refund=PRICE, at=NOW + dt.timedelta(microseconds=1)),
    shop.OrderCancelled(order_id=UUID(int=8), at=NOW),
    shop.CategoryMoved(root=shop.Category(name="a", children=(shop.Category(name="b"),))),
]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Elsewhere(shop.OrderCancelled):
    """The same message in a topic that nobody registered it for."""

    __packhorse__ = dataclasses.replace(shop.OrderCancelled.__packhorse__, namespace="other")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Ours:
    """The shop's schemas in the stack's registry."""

    registry: Registry
    ids: dict[str, int]
    client: SchemaRegistryClient

    def id_of(self, message: Any) -> int:
        return self.ids[message.__packhorse__.subject]


@pytest.fixture(scope="module")
def ours(stack: Endpoints) -> Iterator[Ours]:
    with (
        Registry(RegistrySettings(registry_url=stack.registry_url)) as registry,
        SchemaRegistryClient({"url": stack.registry_url}) as client,
    ):
        # Versions come in order, so the last id of a subject is its newest version's, which the classes are made from.
        ids = {
            one.version.subject: one.schema_id for one in register(load_folder(SHOP), registry, MemoryTable())
        }
        yield Ours(registry=registry, ids=ids, client=client)


def plain(value: Any) -> Any:
    """Return a message as fastavro gives it: records are dicts, lists are lists."""
    if dataclasses.is_dataclass(value):
        return {item.name.rstrip("_"): plain(getattr(value, item.name)) for item in dataclasses.fields(value)}
    if isinstance(value, tuple):
        return [plain(item) for item in value]
    return dict(value) if isinstance(value, dict) else value


def context(message: Any) -> SerializationContext:
    return SerializationContext(message.__packhorse__.topic, MessageField.VALUE)


@pytest.mark.case("S-01")
@pytest.mark.parametrize("message", MESSAGES, ids=lambda one: type(one).__name__)
def test_confluents_deserializer_reads_our_payload(ours: Ours, message: Any) -> None:
    """Fails when the header holds the version, or references can't be followed from the id alone."""
    payload = encode_message(message, ours.id_of(message))
    assert AvroDeserializer(ours.client)(payload, context(message)) == plain(message)


@pytest.mark.case("S-02")
@pytest.mark.parametrize("message", MESSAGES, ids=lambda one: type(one).__name__)
def test_we_read_what_confluents_serializer_writes(ours: Ours, message: Any) -> None:
    """
    Its bytes are ours, under the subject of each type; with a registered schema it takes the same id.

    Fails when our subjects are not those of the ecosystem's TopicRecordName rule, or schemas of one topic share an id.
    """
    stored = ours.client.get_schema(ours.id_of(message))
    serializer = AvroSerializer(
        ours.client,
        stored,
        lambda value, _: _branch_named(value),
        {
            "auto.register.schemas": False,
            "use.latest.version": False,
            "subject.name.strategy": topic_record_subject_name_strategy,
        },
    )
    payload = serializer(message, context(message))
    assert payload == encode_message(message, ours.id_of(message))
    assert Decoder(ours.registry).decode(payload, type(message)) == message


def _branch_named(message: Any) -> Any:
    """Name the branch where fastavro would have to guess between two records."""
    found = plain(message)
    if found.get("delivery") is not None:
        found["delivery"] = (f"shop.{type(message.delivery).__name__}", found["delivery"])
    return found


@pytest.mark.case("S-03")
@pytest.mark.parametrize("message", MESSAGES, ids=lambda one: type(one).__name__)
def test_generated_classes_fit_what_the_registry_holds(ours: Ours, message: Any) -> None:
    check_fit(type(message), ours.registry)


@pytest.mark.case("S-03")
def test_a_subject_that_the_registry_lacks_is_named(ours: Ours) -> None:
    with pytest.raises(
        SchemaNotRegistered, match=r"other\.orders-shop\.OrderCancelled v1, .* is not in the registry"
    ):
        check_fit(Elsewhere, ours.registry)


def test_references_are_in_the_registry_as_such(ours: Ours) -> None:
    stored = ours.client.get_schema(ours.ids["shop.orders-shop.OrderPlaced"])
    assert [reference.name for reference in stored.references or []] == ["shop.Money"]
    assert isinstance((stored.references or [])[0], SchemaReference)
    assert "Currency" not in (stored.schema_str or "")
