"""Parties that write and drain parked keys on a real database: connections, messages, and a lane's answers without Kafka."""

import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeVar
from uuid import UUID

import psycopg
from tests.support.wait import eventually

from packhorse.core.errors import PackhorseError
from packhorse.core.message import MessageType
from packhorse.processor import Processor
from packhorse.processor.copies import Copy, copy_of
from packhorse.processor.outcomes import Outcome
from packhorse.processor.parking.followers import Followers
from packhorse.processor.record import Delivery, HeaderList, Record, Stream, delivery_of, digest_of, key_hash
from packhorse.processor.running.requests import (
    Begin,
    ClaimKey,
    ClaimKeys,
    CommitTransaction,
    CountDeliveries,
    Decode,
    DecodeAll,
    GetFirstFollowers,
    LeaveKey,
    LeaveKeys,
    LookUp,
    ReleaseKeys,
    Request,
    RollBack,
    RollBackToSavepoint,
    RunHandler,
    Savepoint,
    SendKept,
    Write,
)
from packhorse.processor.running.work import (
    RETURNED,
    Claim,
    Failure,
    InboxRow,
    Known,
    Ran,
    Released,
    Result,
)
from packhorse.processor.storing import postgres
from packhorse.processor.storing.sql import queries_for
from packhorse.processor.storing.store import HeldKey, Place, Quarantined, Steps, Store

T = TypeVar("T")

TOPIC, GROUP = "parties.orders", "parties"
STREAM = Stream(topic=TOPIC, topic_id=UUID(int=77), source=TOPIC)
TIER = Stream(topic=f"{TOPIC}.{GROUP}.retry.5s", topic_id=UUID(int=78), source=TOPIC)
STORE = Store(queries=queries_for("packhorse"), group=GROUP, schema="packhorse")
ALL = (
    "inbox",
    "watermark",
    "quarantined_message",
    "failed_attempt",
    "retry_message",
    "parked_key",
    "parked_message",
    "in_hand",
    "started",
    "pause",
)

FAILS = Ran(Failure.TEMPORARY, "failed", "E")
ODD_HEADERS: HeaderList = (("trace", b"\x00\xff"), ("trace", None), ("empty", b""), ("trace", b"again"))


class Placed:
    __packhorse__: ClassVar[MessageType] = MessageType(
        type="contract.Placed", version=1, namespace="parties", aggregatetype="orders", schema="{}"
    )


def app(after_quarantine: str = "park") -> Processor:
    """Return a processor with one handler, which the parties do not call: they are scripted."""
    made = Processor(GROUP, after_quarantine=after_quarantine)  # type: ignore[arg-type]

    @made.handler(Placed)
    def placed(message: Placed, ctx: Any) -> None:
        raise NotImplementedError

    @made.tombstone_handler(Placed)
    def gone(ctx: Any) -> None:
        raise NotImplementedError

    return made


def delivery(
    n: int,
    key: bytes = b"k",
    *,
    payload: bytes | None = b"p",
    headers: HeaderList = (),
    stream: Stream = STREAM,
) -> Delivery:
    """Return the first delivery of message *n*, which stands at offset *n*."""
    ours = (("id", str(UUID(int=n)).encode()), ("type", b"contract.Placed"))
    return delivery_of(Record(TOPIC, 0, n, 0, 0, key, payload, (*ours, *headers)), stream)


def failed(n: int, key: bytes = b"k", **more: Any) -> Result:
    """Return that message *n* failed and becomes the head of its key, or still is."""
    found = Result(delivery(n, key), Outcome.RETRY, 1, reason="failed", error="E", failed_as="failed")
    found = found._replace(
        delay=60.0, tier="1m", spent=61.5, key=key_hash(key), parks=True, digest=digest_of(b"p")
    )
    return found._replace(**more)


def parked(n: int, key: bytes = b"k", **more: Any) -> Result:
    """Return that message *n* is to wait behind the head of its key."""
    return Result(delivery(n, key), Outcome.PARKED, 0, key=key_hash(key))._replace(**more)


def done(n: int, key: bytes = b"k", row: InboxRow | None = None) -> Result:
    return Result(
        delivery(n, key), Outcome.DONE, 1 if row is None else row.attempt, key=key_hash(key), row=row
    )


def stopped(n: int, key: bytes = b"k", **more: Any) -> Result:
    found = Result(delivery(n, key), Outcome.QUARANTINE, 1, reason="permanent", failed_as="permanent")
    return found._replace(key=key_hash(key), parks=True)._replace(**more)


class Party:
    """One connection, and what a lane does on it."""

    def __init__(self, url: str, *, lock_ms: int = 2_000) -> None:
        self.connection = postgres.connect(postgres.settings_of(url, idle_ms=20_000, lock_ms=lock_ms))
        self._xid = ""

    def run(self, steps: Steps[T]) -> T:
        return postgres.run(self.connection, steps)

    def begin(self) -> None:
        self._xid = postgres.begin(self.connection)

    def write(
        self,
        *results: Result,
        claim: Claim | None = None,
        claims: Sequence[Claim] = (),
        stream: Stream = STREAM,
        topic_age: int = 0,
    ) -> bool | Released:
        """Record *results* in the open transaction."""
        steps = STORE.write(stream, results, self._xid, claim=claim, claims=claims, topic_age=topic_age)
        try:
            return self.run(steps)
        except postgres.UniqueViolation:
            return False

    def commit(self) -> None:
        postgres.command(self.connection, b"COMMIT")

    def roll_back(self) -> None:
        postgres.command(self.connection, b"ROLLBACK")

    def record(self, *results: Result, **more: Any) -> bool:
        """Record *results* in a transaction of their own."""
        self.begin()
        written = self.write(*results, **more)
        self.commit() if written else self.roll_back()
        return bool(written)

    def known(self, *numbers: int, keys: Sequence[bytes] = ()) -> Known:
        ids = [UUID(int=n) for n in numbers]
        return self.run(STORE.look_up(STREAM, 0, ids, [key_hash(key) for key in keys]))

    def row(self, n: int) -> InboxRow:
        return self.known(n).rows[UUID(int=n)]

    def fetch(self, text: str, *values: object) -> list[Any]:
        with postgres.translated(self.connection):
            return self.connection.execute(text, values).fetchall()

    def effects(self) -> list[int]:
        """Return whose handlers' writes are durable, in the order in which they were made."""
        return [row[0].int for row in self.fetch("SELECT id FROM effect ORDER BY n")]

    def expire(self) -> None:
        """Let time pass until every lease has run out."""
        self.connection.execute(
            "UPDATE packhorse.parked_key SET lease_until = clock_timestamp() - interval '1 s'"
        )

    def close(self) -> None:
        self.connection.end()


class Beside:
    """A step that runs in a thread of its own, because it is going to wait for a lock."""

    def __init__(self, act: Callable[[], Any]) -> None:
        self.result: Any = None
        self._act = act
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        try:
            self.result = self._act()
        except PackhorseError as error:
            self.result = error

    def get(self) -> Any:
        self._thread.join(10)
        assert not self._thread.is_alive()
        return self.result


def waits(party: Party, other: Party) -> None:
    """Wait until *other*'s statement waits for a lock."""
    pid = other.connection.info.backend_pid
    eventually(
        lambda: party.fetch("SELECT cardinality(pg_blocking_pids(%s))", pid)[0][0] > 0,
        what=f"{pid} waits for a lock",
    )


@contextmanager
def parties(url: str, count: int, **more: Any) -> Iterator[list[Party]]:
    """Provide *count* parties on empty tables, with a watermark at 0."""
    with psycopg.connect(url, autocommit=True) as connection:
        for name in ALL:
            connection.execute(f"DELETE FROM packhorse.{name}".encode())
        connection.execute(
            "CREATE TABLE IF NOT EXISTS effect (n bigint GENERATED ALWAYS AS IDENTITY, id uuid NOT NULL); DELETE FROM effect"
        )
    found = [Party(url, **more) for _ in range(count)]
    try:
        found[0].run(STORE.first_watermark(STREAM, 0, 0))
        yield found
    finally:
        for party in found:
            party.close()


_COMMANDS = {
    CommitTransaction: b"COMMIT",
    RollBack: b"ROLLBACK",
    Savepoint: b"SAVEPOINT member",
    RollBackToSavepoint: b"ROLLBACK TO SAVEPOINT member",
}


class Script:
    """How runs end: by message number, one after another; what is not told returns."""

    def __init__(self, **ends: list[Ran]) -> None:
        self.ends = {int(name[1:]): list(told) for name, told in ends.items()}
        self.runs: list[int] = []

    def __call__(self, delivery: Delivery) -> Ran:
        number = delivery.id.int
        self.runs.append(number)
        left = self.ends.get(number)
        return left.pop(0) if left else RETURNED


@dataclass(slots=True)
class Answers:
    """
    Answers requests as a lane does.

    Attributes:
        party: The connection.
        ran: Says how a handler's run ends, after it wrote its effect.
        topic: Where copies go.
        stream: Where what is written was read from.
    """

    party: Party
    ran: Callable[[Delivery], Ran] = lambda delivery: RETURNED
    topic: list[Copy] = field(default_factory=list)
    stream: Stream = STREAM

    def __call__(self, request: Request) -> object:
        party = self.party
        match request:
            case Begin():
                party.begin()
            case RunHandler(member):
                text = "INSERT INTO effect (id) VALUES (%s)"
                with postgres.translated(party.connection):
                    party.connection.execute(text, (member.delivery.id,))
                return self.ran(member.delivery)
            case Write(results, claim, claims):
                return party.write(*results, claim=claim, claims=claims, stream=self.stream)
            case CommitTransaction() | RollBack() | Savepoint() | RollBackToSavepoint():
                postgres.command(party.connection, _COMMANDS[type(request)])
            case Decode():
                return object()
            case DecodeAll(payloads):
                return [object() for _ in payloads]
            case SendKept(ids):
                self.send(ids)
            case _:
                return party.run(steps_of(request))
        return None

    def send(self, ids: Sequence[UUID]) -> None:
        self.produce(self.party.run(STORE.uncopied(TOPIC, ids)))

    def produce(self, uncopied: Sequence[Quarantined]) -> None:
        """Send copies and record where they stand."""
        self.topic.extend(copy_of(message, GROUP) for message in uncopied)
        places = [
            Place(message.id, message.partition, len(self.topic), message.attempt, message.tier)
            for message in uncopied
        ]
        self.party.run(STORE.confirm_copies(TOPIC, places))


def steps_of(request: Request) -> Steps[object]:
    match request:
        case LookUp(ids, keys):
            return STORE.look_up(STREAM, 0, ids, keys)
        case CountDeliveries(ids):
            return STORE.count_deliveries(STREAM, ids)
        case _:
            return _steps_of_keys(request)


def _steps_of_keys(request: Request) -> Steps[object]:
    match request:
        case ClaimKey(key, held):
            return STORE.claim(TOPIC, key, "test", held)
        case ReleaseKeys(keys, held):
            return STORE.release(TOPIC, keys, held)
        case ClaimKeys(keys):
            return STORE.claim_keys(TOPIC, keys, "test")
        case GetFirstFollowers(keys):
            return STORE.first_followers(TOPIC, keys)
        case LeaveKey(claim):
            return STORE.leave(TOPIC, claim)
        case LeaveKeys(claims):
            return STORE.leave_all([HeldKey(TOPIC, *claim) for claim in claims])
        case _:
            raise TypeError(request)


def driven(steps: Generator[Request, Any, T], answers: Callable[[Request], object]) -> T:
    """Do what *steps* asks for, until it has ended."""
    try:
        request = next(steps)
        while True:
            try:
                answer = answers(request)
            except PackhorseError as error:
                request = steps.throw(error)
            else:
                request = steps.send(answer)
    except StopIteration as end:
        result: T = end.value
        return result


def followers(of: Processor, **more: Any) -> Followers:
    return Followers(app=of, jitter=lambda: 0.0, skip_unknown=False, running=[], **more)
