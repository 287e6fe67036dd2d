"""Two databases under the product's lane to hold to one contract: the simulation's and a real one, with the same handlers."""

from collections.abc import Callable, Generator, Sequence
from typing import Any, ClassVar, Protocol
from uuid import UUID

import psycopg
from tests.simulation.processor.adapter import PlainLane, adapted, run
from tests.simulation.processor.hub import Life, enter, leave
from tests.simulation.processor.messages import Deed
from tests.simulation.processor.process import Quiet, plant_of
from tests.simulation.processor.world import World

from packhorse.core.errors import PackhorseError
from packhorse.core.message import MessageType
from packhorse.processor import Context, Processor, Quarantine, Skip
from packhorse.processor.copies import CopiesMissed, Copy
from packhorse.processor.member.fence import Fence
from packhorse.processor.offsets.starting import LogEnds
from packhorse.processor.outcomes import Outcome
from packhorse.processor.partition.events import ChunkEnded, Ended
from packhorse.processor.plant import Plant
from packhorse.processor.record import Delivery, Record, Stream, delivery_of, digest_of, key_hash
from packhorse.processor.running.lane import Lane
from packhorse.processor.running.requests import Request
from packhorse.processor.running.work import (
    Member,
    Result,
    Work,
)
from packhorse.processor.storing import postgres
from packhorse.processor.storing.sql import queries_for
from packhorse.processor.storing.store import Move, Place, Steps, Store
from packhorse.processor.tiers.ladder import ReadTopic
from packhorse.processor.watching.renewer import Renewer
from packhorse.producer import Outbox

TOPIC, GROUP = "contract.orders", "contract"
KEY = key_hash(b"k")
STREAM = Stream(topic=TOPIC, topic_id=UUID(int=77), source=TOPIC)
STORE = Store(queries=queries_for("packhorse"), group=GROUP, schema="packhorse")
SOURCES = {TOPIC: ReadTopic(TOPIC, None)} | {
    f"{TOPIC}.{GROUP}.retry.{tier}": ReadTopic(TOPIC, tier) for tier in ("0s", "5s")
}
TABLES = (
    "inbox",
    "watermark",
    "quarantined_message",
    "failed_attempt",
    "retry_message",
    "parked_key",
    "parked_message",
    "started",
)
Asked = Request | Callable[[list[Any]], Request]
"""A request, or what makes one of the answers so far."""


class Placed:
    __packhorse__: ClassVar[MessageType] = MessageType(
        type="contract.Placed", version=1, namespace="contract", aggregatetype="orders", schema="{}"
    )


class Ground(Protocol):
    """Two lanes, the tables under them, and the group's own topics."""

    deeds: dict[UUID, Deed]
    app: Processor

    def ask(self, *requests: Asked, lane: int = 0, fence: Fence | None = None) -> list[Any]:
        """Return the answers of lane number *lane*; an error of our tree is an answer too."""

    def store(self, steps: Steps[Any]) -> Any:
        """Execute steps on a connection of their own."""

    def effects(self) -> list[UUID]:
        """Return whose handlers' writes are durable, in the order of their commits."""

    def copies(self) -> list[tuple[UUID, int]]:
        """Return what stands in the group's own topics: ids and attempts."""

    def lose_copies(self) -> None:
        """Let no further copy be confirmed."""

    def renew(self) -> int:
        """Let the process's renewer look once; return how many leases it has renewed."""

    def close(self) -> None:
        """End it."""


def delivery(n: int) -> Delivery:
    """Return the delivery of message *n*, at offset *n*."""
    headers = (("id", str(UUID(int=n)).encode()), ("type", b"contract.Placed"))
    return delivery_of(Record(TOPIC, 0, n, 0, 0, b"k", b"p", headers), STREAM)


def member(n: int, app: Processor, row: Any = None) -> Member:
    """Return message *n* as a batch hands it to its lane."""
    found = Member(delivery=delivery(n), row=row, key=KEY)
    found.handler = app.handler_of("contract.Placed", tombstone=False)
    return found


def done(n: int, row: Any = None) -> Result:
    attempt = 1 if row is None else row.attempt
    return Result(delivery(n), Outcome.DONE, attempt, row=row, key=KEY, digest=digest_of(b"p"))


def failed(n: int, row: Any = None, **more: Any) -> Result:
    """Return that message *n* failed and is the head of its key."""
    result = Result(
        delivery(n), Outcome.RETRY, 1, "failed", "E", "failed", 30.0, row, key=KEY, parks=True, tier="5s"
    )
    return result._replace(spent=30.0, digest=digest_of(b"p"))._replace(**more)


def stopped(n: int, row: Any = None, **more: Any) -> Result:
    result = Result(
        delivery(n), Outcome.QUARANTINE, 1, "permanent", "E", "permanent", row=row, key=KEY, parks=True
    )
    return result._replace(**more)


def behind(n: int) -> Result:
    return Result(delivery(n), Outcome.PARKED, 1, key=KEY, digest=digest_of(b"p"))


def work() -> Work:
    return Work(stream=STREAM, partition=0, deliveries=[delivery(1)], position=0, leader_epoch=None)


def scripted(requests: Sequence[Asked], answers: list[Any]) -> Generator[Request, Any, ChunkEnded]:
    """Ask *requests* one after another, whatever the answers are."""
    for asked in requests:
        request = asked(answers) if callable(asked) else asked
        try:
            answers.append((yield request))
        except PackhorseError as error:
            answers.append(error)
    return ChunkEnded(ended=Ended.WELL)


def make_app(
    deeds: dict[UUID, Deed], effect: Callable[[Any, UUID], None], cut: Callable[[Any], None]
) -> Processor:
    """Return a handler that does what *deeds* say, in the transaction."""
    app = Processor(GROUP)

    @app.handler(Placed)
    def placed(message: Placed, ctx: Context) -> None:
        del message
        connection = ctx.connection
        effect(connection, ctx.id)
        match deeds.get(ctx.id):
            case Deed.FAILS:
                raise ValueError("fails")
            case Deed.STOPS:
                raise Quarantine("permanent")
            case Deed.SKIPS:
                raise Skip("skips")
            case Deed.CONTENDS:
                raise psycopg.errors.SerializationFailure("contends")
            case Deed.CUTS:
                cut(connection)

    return app


class FakeGround:
    """The simulated database."""

    def __init__(self) -> None:
        self.deeds: dict[UUID, Deed] = {}
        self.app = make_app(self.deeds, lambda connection, one: connection.effect(one), _lose)
        world = self._world = World(0)
        world.faults_left, world._slow = 0, 0.0
        world.app, world.sources = self.app, SOURCES
        for topic in (*SOURCES, self.app.quarantine_topic(TOPIC)):
            world.broker.make(topic)
        world.database.done = lambda name, values, answer: None
        world.database.tables.effects.clear()
        self._plant: Plant | None = None
        self._lanes: list[Lane] = []

    def _do(self, call: Callable[[], None]) -> None:
        hub = self._world.hub
        enter(hub)
        try:
            with adapted():
                hub.actors.clear()
                actor = hub.spawn(Life("lane"), "lane", call)
                while not actor.glet.dead:
                    hub.step()
        finally:
            leave()

    def ask(self, *requests: Asked, lane: int = 0, fence: Fence | None = None) -> list[Any]:
        answers: list[Any] = []

        def call() -> None:
            if not self._lanes:
                plant = self._plant = plant_of(self._world, Quiet(self._world, "lane"))
                object.__setattr__(plant, "store", STORE)
                self._lanes = [PlainLane(plant), PlainLane(plant)]
            self._lanes[lane].is_fresh()
            self._lanes[lane].run(scripted(requests, answers), work(), fence or Fence())

        self._do(call)
        return answers

    def store(self, steps: Steps[Any]) -> Any:
        found: list[Any] = []
        self._do(lambda: found.append(run(self._world.connect(), steps)))
        return found[0]

    def effects(self) -> list[UUID]:
        return list(self._world.database.tables.effects)

    def copies(self) -> list[tuple[UUID, int]]:
        logs = self._world.broker.logs.items()
        records = [one for (topic, _), log in logs if topic.startswith(f"{TOPIC}.") for one in log.records]
        found = [dict(one.headers) for one in records]
        return [(UUID((one["id"] or b"").decode()), int(one["attempt"] or 0)) for one in found]

    def lose_copies(self) -> None:
        self._world.fault = lambda what, chance=0.0: what == "copy lost"  # type: ignore[method-assign]

    def renew(self) -> int:
        found: list[int] = []

        def call() -> None:
            assert self._plant is not None
            found.append(Renewer(self._plant).renew())

        self._do(call)
        return found[0]

    def close(self) -> None:
        """Nothing is held."""


def _lose(connection: Any) -> None:
    connection.lose()
    raise psycopg.OperationalError("cut")


class _Topics:
    """The group's own topics, as the plant's port."""

    def __init__(self) -> None:
        self.log: list[Copy] = []
        self.lost = False

    def send(self, copies: Sequence[Copy]) -> list[Place]:
        if self.lost:
            raise CopiesMissed("not sent", {})
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
    """A real database."""

    def __init__(self, url: str) -> None:
        self.deeds: dict[UUID, Deed] = {}
        self.app = make_app(self.deeds, _insert, _terminate)
        self._url = url
        self._topics = _Topics()
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("DROP TABLE IF EXISTS effect")
            connection.execute(
                "CREATE TABLE effect (n bigint GENERATED ALWAYS AS IDENTITY, id uuid NOT NULL)"
            )
            for name in TABLES:
                connection.execute(f"DELETE FROM packhorse.{name}".encode())
        conninfo = postgres.settings_of(url, idle_ms=20_000, lock_ms=300)
        self._own = postgres.connect(conninfo)
        plant = self._plant = Plant(
            app=self.app,
            sources=SOURCES,
            member=UUID(int=5),
            conninfo=conninfo,
            store=STORE,
            decoder=_Nothing(),
            copies=self._topics,
            broker=_Nothing(),
            outbox=Outbox(origin="contract"),
        )
        self._lanes = [Lane(plant), Lane(plant)]

    def close(self) -> None:
        self._own.end()
        for lane in self._lanes:
            lane.close()

    def ask(self, *requests: Asked, lane: int = 0, fence: Fence | None = None) -> list[Any]:
        answers: list[Any] = []
        self._lanes[lane].is_fresh()
        self._lanes[lane].run(scripted(requests, answers), work(), fence or Fence())
        return answers

    def store(self, steps: Steps[Any]) -> Any:
        return postgres.run(self._own, steps)

    def effects(self) -> list[UUID]:
        return [row[0] for row in self._own.execute("SELECT id FROM effect ORDER BY n")]

    def copies(self) -> list[tuple[UUID, int]]:
        return [(copy.id, copy.attempt) for copy in self._topics.log]

    def lose_copies(self) -> None:
        self._topics.lost = True

    def renew(self) -> int:
        renewer = Renewer(self._plant)
        found = renewer.renew()
        renewer.renew()  # with nothing to do it closes its connection
        return found


def _insert(connection: Any, one: UUID) -> None:
    connection.execute("INSERT INTO effect (id) VALUES (%s)", (one,))


def _terminate(connection: Any) -> None:
    connection.execute("SELECT pg_terminate_backend(pg_backend_pid())")


def move(old: int, new: int) -> Steps[Any]:
    return STORE.move_watermarks([Move(STREAM.topic_id, 0, old, new, 3)])
