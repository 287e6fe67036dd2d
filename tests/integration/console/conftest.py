"""What the tests of the console stand on, besides tests/support/fixtures.py."""

from collections.abc import Iterator
from typing import Any

import pytest
from tests.support.cli import Ran, packhorse
from tests.support.console_services import service_over

from packhorse.console.acting.postgres import Database, opened
from packhorse.console.service import Service


@pytest.fixture
def tables(database: str) -> Iterator[Database]:
    """Provide the console's sessions on the fresh database."""
    with opened(database, schema="packhorse", timeout=5) as tables:
        yield tables


@pytest.fixture
def service(tables: Database) -> Service:
    """Provide the console over it."""
    return service_over(tables)


@pytest.fixture
def run(database: str) -> Any:
    """Provide what runs a command on it, and returns how that ended."""

    def runs(*arguments: object, **more: Any) -> Ran:
        return packhorse(*arguments, **{"PACKHORSE_DATABASE_URL": database, **more})

    return runs
