"""Two lanes to hold to one contract: the simulation's and the product's, each with the same handlers."""

from collections.abc import Sequence
from typing import Any, ClassVar, Protocol
from uuid import UUID

import psycopg
from tests.simulation.processor.database import Database
from tests.simulation.processor.lane import Copies, Deed, Script, record
from tests.simulation.processor.lane import Lane as SimulatedLane

from packhorse.core.errors import BrokerUnavailable, PackhorseError
from packhorse.core.message import MessageType
from packhorse.processor import Context, Processor, Quarantine, Skip
from packhorse.processor.copies import Copy
from packhorse.processor.member.fence import Fence
from packhorse.processor.offsets.starting import LogEnds
from packhorse.processor.partition.events import (
    BatchEnded,
    Ended,
)
from packhorse.processor.plant import Plant
from packhorse.processor.record import Delivery, Stream, delivery_of
from packhorse.processor.running.batch import Batch
from packhorse.processor.running.lane import Lane
from packhorse.processor.running.lanework import drive
from packhorse.processor.running.work import Member, Request, Work
from packhorse.processor.storing import postgres
from packhorse.processor.storing.sql import queries_for
from packhorse.processor.storing.store import Place, Store
from packhorse.producer import Outbox

TOPIC, GROUP = "contract.orders", "contract"
STREAM = Stream(topic=TOPIC, topic_id=UUID(int=77), source=TOPIC)


class Placed:
    __packhorse__: ClassVar[MessageType] = MessageType(
        type="contract.Placed", version=1, namespace="contract", aggregatetype="orders", schema="{}"
    )


class Ground(Protocol):
    """A lane, the tables under it, and the quarantine topic."""

    script: Script

    def ask(self, *requests: Request, lane: int = 0, fence: Fence | None = None) -> list[Any]:
        """Return the answers of lane number *lane*; an error of our tree is an answer too."""

    def first_watermark(self, offset: int) -> bool:
        """Write the first watermark of partition 0."""

    def adopt_watermark(self, old: int, new: int) -> bool:
        """Take the watermark over."""

    def effects(self) -> list[UUID]:
        """Return whose handlers' writes are durable, in the order of their commits."""

    def copies(self) -> list[UUID]:
        """Return what stands in the quarantine topic."""

    def lose_copies(self) -> None:
        """Let no further copy be confirmed."""


def delivery(n: int, offset: int | None = None) -> Delivery:
    """Return the delivery of message *n*."""
    at = n if offset is None else offset
    return delivery_of(record(TOPIC, 0, at, UUID(int=n), "contract.Placed"), STREAM)


def member(n: int, app: Processor, row: Any = None) -> Member:
    """Return message *n* as a batch hands it to its lane."""
    found = Member(delivery=delivery(n), row=row)
    found.handler = app.handler_of("contract.Placed", tombstone=False)
    found.message = None
    return found


def work(deliveries: Sequence[Delivery] = ()) -> Work:
    return Work(
        stream=STREAM, partition=0, deliveries=deliveries or [delivery(1)], position=0, leader_epoch=None
    )


def scripted(requests: Sequence[Request], answers: list[Any]) -> Batch:
    """Ask *requests* one after another, whatever the answers are."""
    for request in requests:
        try:
            answers.append((yield request))
        except PackhorseError as error:
            answers.append(error)
    return BatchEnded(ended=Ended.WELL, position=0, leader_epoch=None, handled=0, records=0, size=0)


def make_app(script: Script) -> Processor:
    """Return handlers that do what *script* says, in the transaction."""
    app = Processor(GROUP)

    @app.handler(Placed)
    def placed(message: Placed, ctx: Context) -> None:
        del message
        ctx.connection.execute("INSERT INTO effect (id) VALUES (%s)", (ctx.id,))
        match script.next(ctx.id):
            case Deed.FAILS:
                raise ValueError("fails")
            case Deed.STOPS:
                raise Quarantine("permanent")
            case Deed.SKIPS:
                raise Skip("skips")
            case Deed.CONTENDS:
                raise psycopg.errors.SerializationFailure("contends")
            case Deed.CUTS:
                ctx.connection.execute("SELECT pg_terminate_backend(pg_backend_pid())")

    return app


class FakeGround:
    """The simulation's lane."""

    def __init__(self) -> None:
        self.script = Script({})
        self.app = make_app(self.script)
        self._database = Database()
        self._database.now = 1.0
        self._lost = False
        self._copies = Copies(lambda what: self._lost)
        self._connections = [self._database.connect(), self._database.connect()]

    def ask(self, *requests: Request, lane: int = 0, fence: Fence | None = None) -> list[Any]:
        fake = SimulatedLane(self._connections[lane], work(), self.script, self._copies, fence or Fence())
        answers: list[Any] = []
        drive(scripted(requests, answers), fake.execute)
        return answers

    def first_watermark(self, offset: int) -> bool:
        return self._connections[0].first_watermark(STREAM, 0, offset)

    def adopt_watermark(self, old: int, new: int) -> bool:
        return self._connections[0].adopt_watermark(STREAM, 0, old=old, new=new)

    def effects(self) -> list[UUID]:
        return list(self._database.tables.effects)

    def copies(self) -> list[UUID]:
        return list(self._copies.log)

    def lose_copies(self) -> None:
        self._lost = True


class _Topic:
    """The quarantine topic, as the plant's port."""

    def __init__(self) -> None:
        self.log: list[Copy] = []
        self.lost = False

    def send(self, copies: Sequence[Copy]) -> list[Place]:
        if self.lost:
            raise BrokerUnavailable("not sent")
        self.log.extend(copies)
        return [Place(copy.id, copy.partition, at, copy.attempt) for at, copy in enumerate(copies)]


class _Nothing:
    def decode(self, payload: bytes, cls: type[Any]) -> Any:
        raise NotImplementedError

    def topic_id(self, topic: str) -> UUID:
        raise NotImplementedError

    def log_ends(self, group: str, topic: str, partition: int) -> LogEnds:
        raise NotImplementedError


class RealGround:
    """The product's lane on a real database."""

    def __init__(self, url: str) -> None:
        self.script = Script({})
        self.app = make_app(self.script)
        self._url = url
        self._topic = _Topic()
        self._store = Store(queries=queries_for("packhorse"), group=GROUP, schema="packhorse")
        with psycopg.connect(url) as connection:
            connection.execute(
                "DROP TABLE IF EXISTS effect; "
                "CREATE TABLE effect (n bigint GENERATED ALWAYS AS IDENTITY, id uuid NOT NULL); "
                "TRUNCATE packhorse.inbox, packhorse.watermark, packhorse.quarantined_message, packhorse.failed_attempt"
            )
        plant = Plant(
            app=self.app,
            sources={TOPIC: TOPIC},
            conninfo=postgres.settings_of(url, idle_ms=20_000, lock_ms=300),
            store=self._store,
            decoder=_Nothing(),
            copies=self._topic,
            broker=_Nothing(),
            outbox=Outbox(origin="contract"),
        )
        self._lanes = [Lane(plant), Lane(plant)]

    def close(self) -> None:
        for lane in self._lanes:
            lane.close()

    def ask(self, *requests: Request, lane: int = 0, fence: Fence | None = None) -> list[Any]:
        answers: list[Any] = []
        self._lanes[lane].connection()
        self._lanes[lane].run(scripted(requests, answers), work(), fence or Fence())
        return answers

    def first_watermark(self, offset: int) -> bool:
        return postgres.run(self._lanes[0].connection(), self._store.first_watermark(STREAM, 0, offset))

    def adopt_watermark(self, old: int, new: int) -> bool:
        steps = self._store.adopt_watermark(STREAM, 0, old=old, new=new)
        return postgres.run(self._lanes[0].connection(), steps)

    def effects(self) -> list[UUID]:
        with psycopg.connect(self._url) as connection:
            return [row[0] for row in connection.execute("SELECT id FROM effect ORDER BY n")]

    def copies(self) -> list[UUID]:
        return [copy.id for copy in self._topic.log]

    def lose_copies(self) -> None:
        self._topic.lost = True
