"""A failed member is gone back from to its own savepoint, never to an earlier member's: that one is recorded as done."""

import threading
from collections.abc import Callable, Generator, Iterator
from typing import Any, ClassVar
from uuid import UUID

import psycopg
import pytest
from tests.contract.processor.parties import GROUP, STORE, STREAM, delivery
from tests.support.databases import fresh_database

from packhorse.core.message import MessageType
from packhorse.local.settings import Endpoints
from packhorse.processor import Context, Processor, Skip
from packhorse.processor.member.fence import Fence
from packhorse.processor.partition.events import ChunkEnded, Ended
from packhorse.processor.plant import Plant
from packhorse.processor.record import key_hash
from packhorse.processor.running.attempting import attempt
from packhorse.processor.running.endings import Contention
from packhorse.processor.running.lane import Lane
from packhorse.processor.running.requests import Request, RollBack
from packhorse.processor.running.verdict import Attempt
from packhorse.processor.running.work import Member, Work
from packhorse.processor.storing import postgres
from packhorse.processor.storing.pipelining.postgres import MOST
from packhorse.processor.tiers.ladder import ReadTopic
from packhorse.producer import Outbox

NOTHING: Any = None
HELD = 1.5
"""Seconds that another holds the row that the first member's statement waits for: beyond the second's time-out."""


class Placed:
    __packhorse__: ClassVar[MessageType] = MessageType(
        type="contract.Placed", version=1, namespace="contract", aggregatetype="orders", schema="{}"
    )


def waits(ctx: Context) -> None:
    """Wait behind what the one before has queued, until the time-out."""
    ctx.connection.execute("SELECT 1")


def swallows(ctx: Context) -> None:
    try:
        ctx.connection.execute("SELECT 1")
    except Exception:  # noqa: BLE001 it is what such handlers do
        return


def skips(ctx: Context) -> None:
    try:
        ctx.connection.execute("SELECT 1")
    except Exception as error:
        raise Skip("nothing to do") from error


def queues_many(ctx: Context) -> None:
    for _ in range(MOST + 1):
        ctx.pipeline.execute("SELECT 1")
    raise ValueError("its own")


@pytest.fixture
def database(stack: Endpoints, _template: str) -> Iterator[str]:
    with fresh_database(stack.database_url, _template) as url:
        yield url


def app_of(second: Callable[[Context], object], *, refused: bool) -> Processor:
    """Return a processor whose first message queues an update, and whose second does what *second* does."""
    app = Processor(GROUP)

    @app.handler(Placed, timeout="700ms")
    def placed(message: Placed, ctx: Context) -> None:
        del message
        if ctx.id != UUID(int=1):
            second(ctx)
            return
        if refused:
            ctx.pipeline.execute("INSERT INTO account VALUES (9, -1)")
        ctx.pipeline.execute("UPDATE account SET balance = balance + 1 WHERE n = 1")

    return app


def carried_out(app: Processor, database: str, *, lock_ms: int) -> None:
    """Let a lane run both in one transaction, with savepoints."""
    plant = Plant(
        app=app,
        sources={STREAM.topic: ReadTopic(STREAM.topic, None)},
        member=UUID(int=5),
        conninfo=postgres.settings_of(database, idle_ms=20_000, lock_ms=lock_ms),
        store=STORE,
        decoder=NOTHING,
        copies=NOTHING,
        broker=NOTHING,
        outbox=Outbox(origin="contract"),
    )
    handler = app.handler_of("contract.Placed", tombstone=False)
    members = [
        Member(delivery=delivery(n), key=key_hash(b"%d" % n), handler=handler, message=Placed())
        for n in (1, 2)
    ]
    how = Attempt(jitter=lambda: 0.0, clock=lambda: 0.0, time=1.0, careful=True)
    deliveries = [member.delivery for member in members]
    work = Work(stream=STREAM, partition=0, deliveries=deliveries, position=0, leader_epoch=None)

    def batch() -> Generator[Request, Any, ChunkEnded]:
        try:
            yield from attempt(members, how)
        except Contention:
            yield RollBack()
        return ChunkEnded(ended=Ended.WELL)

    lane = Lane(plant)
    try:
        lane.is_fresh()
        lane.run(batch(), work, Fence())
    finally:
        lane.close()
        plant.deadlines.close()


@pytest.mark.case("P-14")
@pytest.mark.case("P-33")
@pytest.mark.parametrize("second", [waits, swallows, skips, queues_many])
@pytest.mark.parametrize("refused", [False, True], ids=["waits for a lock", "is refused"])
def test_what_an_earlier_member_queued_is_done_or_not_recorded(
    database: str, *, refused: bool, second: Callable[[Context], object]
) -> None:
    """
    The first member's statement fails while the second is in hand, whose savepoint was therefore never set.

    Fails when the second is judged by itself then: going back to its savepoint goes back to the first one's, which has the same
    name and stands, and the first is committed as done without its effect.
    """
    with psycopg.connect(database, autocommit=True) as other:
        other.execute("CREATE TABLE account (n int PRIMARY KEY, balance int CHECK (balance >= 0))")
        other.execute("INSERT INTO account VALUES (1, 0)")
        release = threading.Timer(HELD, lambda: other.execute("ROLLBACK"))
        if not refused:
            other.execute("BEGIN")
            other.execute("SELECT * FROM account WHERE n = 1 FOR UPDATE")
            release.start()
        carried_out(app_of(second, refused=refused), database, lock_ms=5_000 if second is waits else 300)
        if not refused:
            release.join()
        balance = other.execute("SELECT balance FROM account WHERE n = 1").fetchone()
        rows: dict[UUID, str] = dict(
            other.execute("SELECT message_id, outcome FROM packhorse.inbox").fetchall()
        )
    done = rows.get(UUID(int=1)) == "done"
    assert balance == (1 if done else 0,)
    assert not (refused and done)
