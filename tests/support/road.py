"""The whole road in one process: a real database, broker and registry, a relay and a processor in threads."""

import shlex
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import UUID

import psycopg
from tests.support.cli import Ran, packhorse
from tests.support.schemas import module_of, write_folder

from packhorse.core.telemetry import NO_TELEMETRY, Telemetry
from packhorse.local.settings import Endpoints
from packhorse.processor import Processor
from packhorse.processor.clients import admin_properties
from packhorse.processor.compose import Composed as ComposedProcessor
from packhorse.processor.kafka.admin import BrokerQuestions
from packhorse.processor.settings import ProcessorSettings
from packhorse.processor.topics.plan import plan, wanted_by
from packhorse.producer import Outbox
from packhorse.relay.compose import Composed as ComposedRelay
from packhorse.relay.settings import RelaySettings
from packhorse.schemas.folder import load_folder

PARTITIONS = 2


class Road:
    """
    One namespace with one topic, `people`, and one message type, `Moved`: a personal field `email`, and a `number`.

    Attributes:
        app: The processor; a test adds the handler, for `road.moved`.
        moved: The message class.
        telemetry: What writer, relay and processor record to.
    """

    def __init__(
        self,
        folder: Path,
        *,
        database: str,
        endpoints: Endpoints,
        prefix: str,
        telemetry: Telemetry = NO_TELEMETRY,
    ) -> None:
        self.prefix, self.group, self.topic = prefix, f"movers-{prefix}", f"{prefix}.people"
        self.telemetry = telemetry
        self.environ = endpoints.variables() | {
            "PACKHORSE_DATABASE_URL": database,
            "PACKHORSE_NAMESPACE": prefix,
            "PACKHORSE_CONSOLE_TIMEOUT": "5",
        }
        self.avro = write_folder(folder / "avro", {f"{self.topic}-{prefix}.Moved": _schema(prefix)})
        self.moved: Any = module_of(load_folder(self.avro).versions).Moved
        self.app = Processor(self.group)
        self.outbox = Outbox(origin="tests", telemetry=telemetry)
        self.database = database
        registered = self.run("schemas", "register", "--avro-dir", self.avro)
        assert registered.code == 0, registered.err

    def run(self, *arguments: object, **more: Any) -> Ran:
        """Run a command with the road's settings."""
        return packhorse(*arguments, **(self.environ | more))

    def shell(self, line: str, why: str) -> Ran:
        """Run *line*, a command as it was printed without `packhorse`, for the reason *why*."""
        return self.run(*shlex.split(line), "--why", why)

    def make_topics(self) -> None:
        """Make the topic, and those of the group: what is missing, by the product's own plan."""
        broker = BrokerQuestions(admin_properties(ProcessorSettings.load({}, environ=self.environ)))
        wanted = wanted_by([self.app], [self.topic], partitions=PARTITIONS, replication=1)
        broker.apply(plan(wanted, broker.standing(wanted), default_max_bytes=1_048_588))

    def emit(self, number: int, *, key: str = "k", email: str = "ann@example.org") -> UUID:
        """Write one message in a transaction of its own, and commit."""
        with psycopg.connect(self.database) as connection:
            return self.outbox.emit(connection, self.moved(email=email, number=number), key=key)

    @contextmanager
    def relay(self) -> Iterator[None]:
        """Run a relay meanwhile."""
        composed = ComposedRelay(RelaySettings.load({}, environ=self.environ), telemetry=self.telemetry)
        thread = threading.Thread(target=composed.relay.run, name="relay")
        thread.start()
        try:
            yield
        finally:
            composed.relay.stop()
            thread.join(30)
            composed.close()

    @contextmanager
    def processor(self) -> Iterator[None]:
        """Run a processor meanwhile; its topics are made first."""
        self.make_topics()
        environ = self.environ | {"PACKHORSE_PROCESSOR_CONCURRENCY": "1"}
        composed = ComposedProcessor(
            self.app, ProcessorSettings.load({}, environ=environ), telemetry=self.telemetry
        )
        stop = threading.Event()
        thread = threading.Thread(target=composed.run, args=(stop,), name="processor")
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join(40)

    def status(self, message_id: UUID) -> Any:
        """Return what `packhorse status --json` says."""
        return self.run("status", message_id, "--json").json()


def _schema(prefix: str) -> dict[str, Any]:
    return {
        "type": "record",
        "name": "Moved",
        "namespace": prefix,
        "fields": [
            {"name": "email", "type": "string", "packhorse.personal": True},
            {"name": "number", "type": "int"},
        ],
    }
