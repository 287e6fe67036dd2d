"""Message classes made of their fields: the same as their constructor makes, and never around one that does more."""

from dataclasses import dataclass, field
from functools import partialmethod
from typing import Any, Self

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support import shop
from tests.support.avro_values import messages

from packhorse.schemas.building import builder_of
from packhorse.schemas.codec import Codec

SHOP = Codec(shop.OrderPlaced)


@given(st.data())
def test_what_is_built_is_what_the_constructor_makes(data: st.DataObject) -> None:
    message = data.draw(messages(SHOP.schema, SHOP.classes))
    values = {name: getattr(message, name) for name in type(message).__dataclass_fields__}
    built = builder_of(type(message))(values)
    assert type(built) is type(message)
    assert (built, repr(built)) == (message, repr(message))


@dataclass(frozen=True, slots=True)
class Plain:
    """Set directly."""

    amount: int
    note: str = ""


@dataclass
class WithDict:
    """Has no slots."""

    amount: int


@dataclass(frozen=True, slots=True)
class Checked:
    """Looks at what it is made of."""

    amount: int

    def __post_init__(self) -> None:
        if self.amount < 0:
            raise ValueError("negative")


@dataclass(frozen=True, slots=True)
class Own:
    """Has a constructor of its own, which dataclass leaves alone."""

    amount: int

    def __init__(self, amount: int) -> None:
        object.__setattr__(self, "amount", amount * 2)


@dataclass(frozen=True, slots=True, init=False)
class Inherits(Own):
    """Has its parent's constructor."""

    amount: int


@dataclass(frozen=True, slots=True)
class Counted:
    """Is told when one is made."""

    amount: int

    def __new__(cls, *values: Any, **named: Any) -> Self:
        del values, named
        MADE.append(cls.__name__)
        return object.__new__(cls)


@dataclass(frozen=True, slots=True)
class Partly:
    """Sets a field by itself."""

    amount: int
    double: int = field(init=False, default=7)


@dataclass(slots=True)
class Bounded:
    """Looks at each value that is set."""

    amount: int

    def __setattr__(self, name: str, value: int) -> None:
        object.__setattr__(self, name, min(value, 5))


@dataclass(frozen=True, slots=True)
class Replaced:
    """Has a constructor that is no function."""

    amount: int


def _times(made: Replaced, amount: int, factor: int) -> None:
    object.__setattr__(made, "amount", amount * factor)


Replaced.__init__ = partialmethod(_times, factor=2)  # type: ignore[method-assign,assignment]


def written() -> type:
    """Return a class with a constructor of its own, whose source has the same name as what dataclass writes."""
    space: dict[str, Any] = {"dataclass": dataclass}
    exec(
        "@dataclass(frozen=True, slots=True)\nclass Written:\n    amount: int\n"
        "    def __init__(self, amount): object.__setattr__(self, 'amount', amount * 2)\n",
        space,
    )
    found: type = space["Written"]
    return found


@dataclass(frozen=True, slots=True)
class Child(Plain):
    """Has a parent's slot."""

    more: int = 0


MADE: list[str] = []


def test_a_plain_class_is_made_without_its_constructor(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fails when the fast way isn't taken any more."""
    build = builder_of(Plain)
    monkeypatch.setattr(Plain, "__init__", None)
    made = build({"amount": 3, "note": "n"})
    assert (made.amount, made.note) == (3, "n")


@pytest.mark.parametrize(
    ("cls", "values", "expected"),
    [
        (WithDict, {"amount": 1}, {"amount": 1}),
        (Own, {"amount": 1}, {"amount": 2}),
        (Inherits, {"amount": 1}, {"amount": 2}),
        (Partly, {"amount": 1}, {"amount": 1, "double": 7}),
        (Bounded, {"amount": 9}, {"amount": 5}),
        (Replaced, {"amount": 1}, {"amount": 2}),
        (written(), {"amount": 1}, {"amount": 2}),
        (Child, {"amount": 1, "note": "n", "more": 2}, {"amount": 1, "note": "n", "more": 2}),
        (dict, {"amount": 1}, {}),
    ],
)
def test_a_class_that_says_how_it_is_made_is_called(
    cls: Any, values: dict[str, Any], expected: dict[str, Any]
) -> None:
    made = builder_of(cls)(values)
    assert type(made) is cls
    assert {name: getattr(made, name) for name in expected} == expected


def test_what_a_class_refuses_is_refused() -> None:
    with pytest.raises(ValueError, match="negative"):
        builder_of(Checked)({"amount": -1})


def test_who_counts_what_is_made_counts_each() -> None:
    MADE.clear()
    builder_of(Counted)({"amount": 1})
    assert MADE == ["Counted"]
