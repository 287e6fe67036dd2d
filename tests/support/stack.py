"""
A real Kafka, Postgres and schema registry for the tests, started only when a test asks for one.

Where it comes from, in this order:

1. what the environment names: PACKHORSE_DATABASE_URL, PACKHORSE_KAFKA_BOOTSTRAP_SERVERS and PACKHORSE_REGISTRY_URL,
   all three (the database's user must be allowed to create databases);
2. containers through testcontainers, where PACKHORSE_TEST_STACK=docker asks for them and a daemon answers;
3. the local stack of `packhorse.local`, one for the pytest session; it ends with the session, however that ends.

Brokers and databases that a test may kill are always local ones (`PrivateBroker`, `PrivateDatabase`).
The fixtures are in `tests/support/fixtures.py`.
"""

import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from tests.support.proxy import Proxy

from packhorse.local.artifacts import ensure_all
from packhorse.local.maven import fetch
from packhorse.local.places import cache_folder
from packhorse.local.settings import (
    DATABASE_VARIABLE,
    KAFKA_VARIABLE,
    REGISTRY_VARIABLE,
    Endpoints,
    StackSettings,
    database_url,
    kafka_bootstrap,
)
from packhorse.local.show import TerminalProgress
from packhorse.local.stack import Stack, held_stack

# Without the optimizing compiler a broker is up in half the processor time.
QUICK_JAVA = ("-Xmx512m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")

# Processes are killed here, not machines: the system keeps what they wrote. Databases are made and dropped by the hundred.
QUICK_POSTGRES = {"fsync": "off"}

MODE_VARIABLE = "PACKHORSE_TEST_STACK"


def named_stack(environment: Mapping[str, str]) -> Endpoints | None:
    """Return the stack that the environment names; None when it names none of the three services."""
    names = (DATABASE_VARIABLE, KAFKA_VARIABLE, REGISTRY_VARIABLE)
    given = [name for name in names if environment.get(name)]
    if not given:
        return None
    if missing := [name for name in names if name not in given]:
        raise RuntimeError(f"{', '.join(given)} set and {', '.join(missing)} not: set all three or none")
    return Endpoints(
        database_url=environment[DATABASE_VARIABLE],
        kafka_bootstrap=environment[KAFKA_VARIABLE],
        registry_url=environment[REGISTRY_VARIABLE],
    )


@contextmanager
def real_stack() -> Iterator[Endpoints]:
    """Provide the session's stack from where the module's text says."""
    if (named := named_stack(os.environ)) is not None:
        yield named
    elif not wants_local_stack():
        from tests.support.containers import container_stack

        with container_stack() as endpoints:
            yield endpoints
    else:
        with (
            temporary_folder() as folder,
            held_stack(
                stack_settings(folder, kafka_java_options=QUICK_JAVA, postgres=QUICK_POSTGRES)
            ) as stack,
        ):
            yield stack.endpoints


def wants_local_stack() -> bool:
    """Tell whether the session's stack is a local one."""
    if named_stack(os.environ) is not None:
        return False
    if os.environ.get(MODE_VARIABLE) != "docker":
        return True
    from tests.support.containers import docker_answers

    return not docker_answers()


def fetch_downloads() -> None:
    """Fetch what a local stack needs into the user's cache, and show it on standard error."""
    cache = cache_folder(os.environ, Path.home())
    with TerminalProgress(Console(stderr=True)) as progress:
        ensure_all(cache, fetch, progress)


def stack_settings(folder: Path, **given: object) -> StackSettings:
    """Return the settings of a local stack in *folder*, with the user's own cache of downloads."""
    cache = cache_folder(os.environ, Path.home())
    return StackSettings(folder=folder, cache=cache, **given)  # type: ignore[arg-type]


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """Provide a folder that also an unprivileged Postgres can enter (pytest's own are closed to others)."""
    folder = Path(tempfile.mkdtemp(prefix="packhorse-test-"))
    folder.chmod(0o755)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


class PrivateServer:
    """
    One service that a test may hurt; `heal` puts it right again.

    Attributes:
        proxy: Stands before the service.
        port: Name of the service's port that the proxy leads to.
    """

    def __init__(self, stack: Stack, service: str, proxy: Proxy, port: str) -> None:
        self.stack = stack
        self.service = service
        self.proxy = proxy
        self.port = port
        proxy.target = (proxy.host, stack.ports[port])

    def kill(self) -> None:
        """Kill it with SIGKILL, child processes too; returns when it is gone."""
        self.stack.kill(self.service)

    def stop(self) -> None:
        """Stop it cleanly; returns when it is gone."""
        self.stack.stop(self.service)

    def start(self) -> None:
        """
        Start it on the same data; returns when it answers. Nothing when it runs.

        Its own port may be another when somebody took the old one meanwhile; the proxy's stays, and leads to it.
        """
        self.stack.start(self.service)
        self.proxy.target = (self.proxy.host, self.stack.ports[self.port])

    def pause(self) -> None:
        """Freeze it with SIGSTOP, child processes too."""
        self.stack.pause(self.service)

    def resume(self) -> None:
        """Let a frozen one go on."""
        self.stack.resume(self.service)

    def heal(self) -> None:
        """Make it run and its proxy behave, whatever was done to them."""
        self.proxy.resume()
        if self.stack.status()[0].pid is not None:
            self.resume()
        self.start()


class PrivateBroker(PrivateServer):
    """A broker that advertises its proxy to those who come through it."""

    @property
    def bootstrap(self) -> str:
        """The address for the code under test: everything goes through the proxy."""
        return self.proxy.address

    @property
    def direct_bootstrap(self) -> str:
        """The address for the test itself: around the proxy."""
        return kafka_bootstrap(self.stack.ports)


class PrivateDatabase(PrivateServer):
    """A database server with a proxy before it, and a fresh database on it."""

    database = "postgres"

    @property
    def url(self) -> str:
        """The database's URL for the code under test: through the proxy."""
        return database_url({"postgres": self.proxy.port}, self.database)

    @property
    def direct_url(self) -> str:
        """The database's URL for the test itself: around the proxy."""
        return database_url(self.stack.ports, self.database)


# A broker that was killed is let in again only when its old session has run out: nine seconds by default.
QUICK_RESTART = {"broker.session.timeout.ms": "1500", "broker.heartbeat.interval.ms": "300"}


@contextmanager
def private_broker(*, kafka: Mapping[str, str] | None = None, **given: object) -> Iterator[PrivateBroker]:
    """Run a broker of its own; *kafka* are settings on top of ours, *given* other fields of StackSettings."""
    with temporary_folder() as folder, Proxy(("127.0.0.1", 0)) as proxy:
        settings = stack_settings(
            folder,
            services=("kafka",),
            kafka={**QUICK_RESTART, **(kafka or {})},
            kafka_java_options=QUICK_JAVA,
            advertised_port=proxy.port,
            **given,
        )
        with held_stack(settings) as stack:
            yield PrivateBroker(stack, "kafka", proxy, "kafka_advertised")


@contextmanager
def private_database_server(**given: object) -> Iterator[PrivateDatabase]:
    """Run a Postgres of its own; *given* are fields of StackSettings, such as `postgres={"…": "…"}`."""
    with (
        temporary_folder() as folder,
        Proxy(("127.0.0.1", 0)) as proxy,
        held_stack(stack_settings(folder, services=("postgres",), **given)) as stack,
    ):
        yield PrivateDatabase(stack, "postgres", proxy, "postgres")
