"""A Debezium connector on an outbox, set up with what our own commands print, and taken away again."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from urllib.parse import urlsplit, urlunsplit

import psycopg
from tests.support.cli import Ran, packhorse
from tests.support.connect import PASSWORD, PASSWORD_VARIABLE, Connect
from tests.support.databases import unique_name
from tests.support.topics import Record, make_topic, records
from tests.support.wait import eventually


@dataclass(frozen=True, slots=True)
class Carrier:
    """
    One connector, its slot and its role.

    Attributes:
        url: The outbox's database, as its owner reaches it.
        name: Of the connector, the slot and the role.
    """

    connect: Connect
    url: str
    namespace: str
    name: str

    def packhorse(self, command: str, *arguments: str) -> Ran:
        """Run `packhorse relay …` on the connector's slot, as the owner of the tables."""
        return packhorse("relay", command, "--slot", self.name, *arguments, PACKHORSE_DATABASE_URL=self.url)

    def printed(self, form: str) -> str:
        """Return what `debezium-config` prints for the connector's own role."""
        parts = urlsplit(self.url)
        reader = urlunsplit(parts._replace(netloc=f"{self.name}@{parts.netloc.rpartition('@')[2]}"))
        ran = packhorse(
            *("relay", "debezium-config", "--namespace", self.namespace, "--name", self.name),
            *("--slot", self.name, "--format", form, "--heartbeat", "0.5"),
            *("--password-from", f"${{env:{PASSWORD_VARIABLE}}}"),
            PACKHORSE_DATABASE_URL=reader,
        )
        assert ran.code == 0, ran.err
        return ran.out

    def prepare(self) -> None:
        """Run the printed SQL, one statement after another."""
        lines = [line for line in self.printed("sql").splitlines() if not line.startswith("--")]
        with psycopg.connect(self.url, autocommit=True) as connection:
            for statement in filter(str.strip, "\n".join(lines).split(";\n")):
                connection.execute(statement.encode())

    def start(self, **changes: str) -> None:
        """Start the connector as printed, with *changes*: names with dashes for dots."""
        config = json.loads(self.printed("json"))["config"]
        changes = {name.replace("-", "."): value for name, value in changes.items()}
        self.connect.put(self.name, {**config, "slot.retry.delay.ms": "200", **changes})
        self.connect.await_running(self.name)

    def arrived(self, bootstrap: str, topic: str, wanted: set[str]) -> list[Record]:
        """Wait until all the *wanted* messages stand on *topic* and return theirs; a task that failed is told with its trace."""

        def there() -> list[Record]:
            assert self.connect.failure(self.name) is None, self.connect.failure(self.name)
            found = [record for record in records(bootstrap, topic) if record.id in wanted]
            return found if {record.id for record in found} == wanted else []

        return eventually(there, what=f"{len(wanted)} messages stand on {topic}", timeout=30)

    def stop(self) -> None:
        """Stop it, forget where it was and drop its slot: as the page on moving says."""
        self.connect.stop(self.name)
        self.connect.forget_offsets(self.name)
        self.connect.delete(self.name)
        with psycopg.connect(self.url, autocommit=True) as connection:
            self.drop_slot(connection)

    def drop_slot(self, connection: psycopg.Connection[tuple[object, ...]]) -> None:
        """Drop the slot once its reader has gone; nothing when there is none."""

        def gone() -> bool:
            connection.execute(
                "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE slot_name = %s AND NOT active",
                (self.name,),
            )
            found = connection.execute("SELECT FROM pg_replication_slots WHERE slot_name = %s", (self.name,))
            return found.fetchone() is None

        eventually(gone, what=f"slot {self.name} is gone", timeout=20)


@contextmanager
def carrier(connect: Connect, *, url: str, bootstrap: str, namespace: str) -> Iterator[Carrier]:
    """Provide a connector that is not started; connector, slot and role are gone afterwards."""
    made = Carrier(connect, url, namespace, unique_name("debezium"))
    make_topic(bootstrap, f"__debezium-heartbeat.{made.name}", partitions=1)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"CREATE ROLE {made.name} LOGIN REPLICATION PASSWORD '{PASSWORD}'".encode())
        try:
            yield made
        finally:
            connect.delete(made.name)
            made.drop_slot(connection)
            connection.execute(f"DROP OWNED BY {made.name}; DROP ROLE {made.name}".encode())
