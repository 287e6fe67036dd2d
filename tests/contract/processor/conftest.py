"""What the contracts of the processor's tables stand on."""

from collections.abc import Iterator

import pytest
from tests.contract.processor.parties import Party, parties
from tests.support.databases import fresh_database

from packhorse.local.settings import Endpoints


@pytest.fixture(scope="module")
def tables(stack: Endpoints, _template: str) -> Iterator[str]:
    """Provide a database that the tests of a module use one after another."""
    with fresh_database(stack.database_url, _template) as url:
        yield url


@pytest.fixture
def two(tables: str) -> Iterator[list[Party]]:
    """Provide two parties on empty tables."""
    with parties(tables, 2) as found:
        yield found


@pytest.fixture
def one(two: list[Party]) -> Party:
    """Provide one of them."""
    return two[0]
