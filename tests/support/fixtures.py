"""
The fixtures that every test can ask for. Nothing is started before a test asks.

stack               Endpoints of the session's Kafka, Postgres and registry: `.kafka_bootstrap`, `.database_url`,
                    `.registry_url`, `.variables()` (for the environment of a process under test). Never hurt these.
database            URL of a fresh database, dropped after the test, with Packhorse's tables in it.
empty_database      URL of a fresh database with nothing in it.
connection          A connection to `database`, in autocommit.
roles               Maker of roles on that database's server (tests/support/roles.py), which are dropped after the test.
topic_prefix        A namespace that nobody else has: name topics and groups `f"{topic_prefix}.orders"`.
pooler              A PgBouncer in transaction mode before the session's Postgres (tests/support/pgbouncer.py):
                    `pooler.url(database)`. Skips where there is none.
private_kafka       A broker to hurt: kill, stop, start, pause, resume, and `.proxy` (tests/support/proxy.py).
                    `.bootstrap` is for the code under test and goes through the proxy, `.direct_bootstrap` around it.
private_database    A Postgres to hurt, the same way: `.url` (a fresh database with the tables, through the proxy) and
                    `.direct_url`.
connect             Kafka Connect with the real Debezium connector (tests/support/connect.py), on the session's broker.

The private servers start once in a session and are put right again before and after each test that uses them, so
use unique topics on them too. Killing and starting takes about 0.3 s for Postgres and 4 s for Kafka.
Wait with tests/support/wait.py, never with a sleep.
"""

from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any

import psycopg
import pytest
from tests.support.connect import Connect, fetch_connect, running_connect
from tests.support.databases import fresh_database, make_tables, template_with_tables, unique_name
from tests.support.pgbouncer import NoPgBouncer, Pooler, find_pgbouncer, pgbouncer
from tests.support.roles import Roles, roles_of
from tests.support.stack import (
    PrivateBroker,
    PrivateDatabase,
    fetch_downloads,
    private_broker,
    private_database_server,
    real_stack,
    temporary_folder,
    wants_local_stack,
)

from packhorse.local.settings import Endpoints

_ALWAYS_LOCAL = frozenset({"private_kafka", "person"})


def pytest_collection_finish(session: pytest.Session) -> None:
    """Fetch what the local stack needs before the first test: a slow line is not to count against its time limit."""
    if session.config.option.collectonly:
        return
    asked = {name for item in session.items for name in getattr(item, "fixturenames", ())}
    local = asked & _ALWAYS_LOCAL or ("stack" in asked and wants_local_stack())
    capture = session.config.pluginmanager.getplugin("capturemanager")
    with capture.global_and_fixture_disabled() if capture else nullcontext():
        if local:
            fetch_downloads()
        if "connect" in asked:
            fetch_connect()


@pytest.fixture(scope="session")
def stack() -> Iterator[Endpoints]:
    """Provide the session's real stack."""
    with real_stack() as endpoints:
        yield endpoints


@pytest.fixture(scope="session")
def _template(stack: Endpoints) -> Iterator[str]:
    with template_with_tables(stack.database_url) as name:
        yield name


@pytest.fixture
def database(stack: Endpoints, _template: str) -> Iterator[str]:
    """Provide the URL of a fresh database with the tables."""
    with fresh_database(stack.database_url, _template) as url:
        yield url


@pytest.fixture
def empty_database(stack: Endpoints) -> Iterator[str]:
    """Provide the URL of a fresh database."""
    with fresh_database(stack.database_url) as url:
        yield url


@pytest.fixture
def connection(database: str) -> Iterator[psycopg.Connection[Any]]:
    """Provide a connection to the fresh database."""
    with psycopg.connect(database, autocommit=True) as connection:
        yield connection


@pytest.fixture
def roles(connection: psycopg.Connection[Any], database: str) -> Iterator[Roles]:
    """Provide roles on the server of the fresh database."""
    with roles_of(connection, database) as roles:
        yield roles


@pytest.fixture(scope="session")
def pooler(stack: Endpoints) -> Iterator[Pooler]:
    """Provide a pooler that lends each transaction another server than the last."""
    try:
        find_pgbouncer()
    except NoPgBouncer as why:
        pytest.skip(str(why))
    with pgbouncer(stack.database_url) as running:
        yield running


@pytest.fixture
def topic_prefix() -> str:
    """Provide a namespace that nobody else has."""
    return unique_name("t")


@pytest.fixture(scope="session")
def _private_kafka() -> Iterator[PrivateBroker]:
    with private_broker() as broker:
        yield broker


@pytest.fixture
def private_kafka(_private_kafka: PrivateBroker) -> Iterator[PrivateBroker]:
    """Provide the broker that may be hurt."""
    _private_kafka.heal()
    yield _private_kafka
    _private_kafka.heal()


@pytest.fixture(scope="session")
def _private_database_server() -> Iterator[PrivateDatabase]:
    with private_database_server() as server:
        yield server


@pytest.fixture(scope="session")
def _private_template(_private_database_server: PrivateDatabase) -> Iterator[str]:
    with fresh_database(_private_database_server.direct_url) as url:
        make_tables(url)
        yield url.rpartition("/")[2]


@pytest.fixture
def private_database(
    _private_database_server: PrivateDatabase, _private_template: str
) -> Iterator[PrivateDatabase]:
    """Provide the Postgres that may be hurt, with a fresh database."""
    server = _private_database_server
    server.heal()
    server.database = "postgres"
    with fresh_database(server.direct_url, _private_template) as url:
        server.database = url.rpartition("/")[2]
        yield server
        server.heal()


@pytest.fixture(scope="session")
def connect(stack: Endpoints) -> Iterator[Connect]:
    """Provide Kafka Connect with the real Debezium connector, on the session's broker."""
    with temporary_folder() as folder, running_connect(folder, bootstrap=stack.kafka_bootstrap) as running:
        yield running
