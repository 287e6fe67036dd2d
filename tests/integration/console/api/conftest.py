"""What the tests of the API stand on."""

from collections.abc import Iterator
from typing import Any

import httpx
import psycopg
import pytest
from tests.support.console_api import Console, console_on, token_for


@pytest.fixture
def console(database: str) -> Iterator[Console]:
    with console_on(database) as console:
        yield console


@pytest.fixture
def operator(console: Console, connection: psycopg.Connection[Any]) -> Iterator[httpx.Client]:
    with console.asked_by(token_for(connection, "operator", name="olga")) as client:
        yield client


@pytest.fixture
def viewer(console: Console, connection: psycopg.Connection[Any]) -> Iterator[httpx.Client]:
    with console.asked_by(token_for(connection, "viewer", name="vera")) as client:
        yield client
