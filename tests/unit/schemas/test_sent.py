"""Message classes of JSON that somebody has sent."""

from typing import Any

import pytest
from tests.support.shop import Category, CategoryMoved, Courier, OrderPlaced

from packhorse.core.errors import ValueMismatch
from packhorse.schemas.sent import message_from_json

ORDER = {
    "order_id": "019b76da-a800-7000-8000-000000000000",
    "lines": [{"sku": "x", "quantity": 1, "price": {"amount": "2.50", "currency": "EUR"}}],
    "placed_at": "2026-08-01T12:00:00+02:00",
}


def test_what_is_left_out_takes_the_schemas_defaults() -> None:
    """Fails when a message that was sent differs from one that a program makes with the same values."""
    found = message_from_json(OrderPlaced, {**ORDER, "class": "first", "delivery": {"street": "x"}})
    made = OrderPlaced(
        order_id=found.order_id,
        lines=found.lines,
        placed_at=found.placed_at,
        class_="first",
        delivery=Courier(street="x"),
    )
    assert found == made
    assert str(found.lines[0].price.amount) == "2.50"
    assert found.placed_at.isoformat() == "2026-08-01T10:00:00+00:00"


def test_a_type_that_holds_itself_is_taken() -> None:
    """Fails when records inside records are made of something else than their classes."""
    found = message_from_json(CategoryMoved, {"root": {"name": "a", "children": [{"name": "b"}]}})
    assert found == CategoryMoved(root=Category(name="a", children=(Category(name="b"),)))


@pytest.mark.parametrize(
    ("more", "path", "allowed"),
    [
        ({"order_id": None}, "order_id", "a UUID"),
        ({"order_id": "no"}, "order_id", "a UUID"),
        ({"lines": [{"sku": "x"}]}, "lines[0].quantity", "a value: the field is missing"),
        ({"class_": "x"}, "class_", "no such field"),
        ({"status": "GONE"}, "status", "one of UNKNOWN, OPEN, PAID, SHIPPED"),
        ({"points": 2**63}, "points", ""),
        ({"weight": True}, "weight", ""),
        ({"trace": "AAAA"}, "trace", ""),
    ],
)
def test_what_does_not_fit_is_told_by_its_path(more: dict[str, Any], path: str, allowed: str) -> None:
    """Fails when a value is bent until it fits, or its place or what is allowed there can't be told apart from its value."""
    with pytest.raises(ValueMismatch) as caught:
        message_from_json(OrderPlaced, {**ORDER, **more})
    assert caught.value.path == path
    assert caught.value.allowed.startswith(allowed)


def test_nesting_without_end_is_refused() -> None:
    """Fails when a body of nothing but brackets takes the process down."""
    deep: dict[str, Any] = {"name": "x"}
    for _ in range(5_000):
        deep = {"name": "x", "children": [deep]}
    with pytest.raises(ValueMismatch):
        message_from_json(CategoryMoved, {"root": deep})
