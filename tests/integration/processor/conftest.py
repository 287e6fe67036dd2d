"""The ground of the processor's tests: one database a module, its tables empty for each test, and a topic a test."""

import gc
from collections.abc import Iterator

import pytest
from tests.support.databases import fresh_database
from tests.support.processing import Ground

from packhorse.local.settings import Endpoints


@pytest.fixture(autouse=True, scope="module")
def clients_let_go() -> None:
    """
    Free the Kafka clients of the modules before.

    Each holds one of this process' 1,024 keys of thread-local storage until it is destroyed. A processor that has run here refers to
    itself, so its clients wait for the collector, which seldom looks at all of a process as large as this one.
    """
    gc.collect()


@pytest.fixture(scope="module")
def shared_tables(stack: Endpoints, _template: str) -> Iterator[str]:
    """Provide a database that the tests of a module use one after another."""
    with fresh_database(stack.database_url, _template) as url:
        yield url


@pytest.fixture
def ground(stack: Endpoints, shared_tables: str, topic_prefix: str) -> Ground:
    """Provide one partition, nothing in it."""
    return Ground(stack, shared_tables, topic_prefix)


@pytest.fixture
def wide_ground(stack: Endpoints, shared_tables: str, topic_prefix: str) -> Ground:
    """Provide two partitions."""
    return Ground(stack, shared_tables, topic_prefix, partitions=2)
