"""The contract of `SchemaSource`, kept by the source in memory and by the registry's client on a real registry."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from tests.support import shop
from tests.support.databases import unique_name
from tests.support.schemas import MemorySource

from packhorse.core.errors import UnknownSchema
from packhorse.schemas import Registry, SchemaSource
from packhorse.schemas.parse import parse_schema
from packhorse.schemas.systems import RegistrySettings
from packhorse.schemas.text import wire_text


@dataclass(frozen=True, kw_only=True)
class Sourced:
    """A source, and a way to put a schema into what stands behind it."""

    source: SchemaSource
    add: Callable[[str], int]


@pytest.fixture(params=["memory", "registry"])
def sourced(request: pytest.FixtureRequest) -> Iterator[Sourced]:
    if request.param == "memory":
        yield Sourced(source=(memory := MemorySource()), add=lambda text: _added(memory, text))
        return
    stack = request.getfixturevalue("stack")
    subject = unique_name("subject")
    with Registry(RegistrySettings(registry_url=stack.registry_url)) as registry:
        yield Sourced(source=registry, add=lambda text: registry.register(subject, text, []).schema_id)


def _added(memory: MemorySource, text: str) -> int:
    memory.texts[len(memory.texts) + 1] = text
    return len(memory.texts)


@pytest.mark.parametrize("cls", [shop.OrderPlaced, shop.OrderCancelled, shop.CategoryMoved])
def test_a_schema_comes_back_with_the_same_bytes_and_marks(sourced: Sourced, cls: Any) -> None:
    text = cls.__packhorse__.schema
    found = sourced.source.schema_of(sourced.add(text))
    assert wire_text(parse_schema(found)) == wire_text(parse_schema(text))
    assert found.count("packhorse.personal") == text.count("packhorse.personal")


def test_an_answer_never_changes(sourced: Sourced) -> None:
    schema_id = sourced.add(shop.OrderCancelled.__packhorse__.schema)
    assert sourced.source.schema_of(schema_id) == sourced.source.schema_of(schema_id)


@pytest.mark.case("S-10")
@pytest.mark.parametrize("schema_id", [0, 2**31 - 1])
def test_an_id_that_is_not_there_is_clearly_unknown(sourced: Sourced, schema_id: int) -> None:
    """Fails when the client does not know the registry's code for it."""
    with pytest.raises(UnknownSchema, match=str(schema_id)):
        sourced.source.schema_of(schema_id)
