"""Which deliveries of a chunk are run, and how long the others wait, asked with what the database knows."""

from dataclasses import replace
from datetime import UTC, datetime
from itertools import count
from typing import ClassVar, Literal
from uuid import UUID

import pytest

from packhorse.core.message import MessageType
from packhorse.processor import Context, Processor
from packhorse.processor.breaking.brake import seen
from packhorse.processor.copies import wake_up
from packhorse.processor.member.intake import Intake
from packhorse.processor.outcomes import Outcome
from packhorse.processor.partition.events import ChunkEnded, Ended
from packhorse.processor.record import Delivery, Record, Stream, delivery_of, digest_of, key_hash
from packhorse.processor.running.batch import run_batch
from packhorse.processor.running.finishing import LOOK_AGAIN
from packhorse.processor.running.requests import (
    CountDeliveries,
    LookUp,
    ReleaseKeys,
    RunHandler,
)
from packhorse.processor.running.seats import joined
from packhorse.processor.running.sorting import Sorted, sort
from packhorse.processor.running.work import (
    RETURNED,
    InboxRow,
    Known,
    Released,
    Work,
)

TIER = Stream(topic="shop.orders.billing.retry.0s", topic_id=UUID(int=2), source="shop.orders", tier="0s")
ID, KEY = UUID(int=7), "hash of k"


class Placed:
    __packhorse__: ClassVar[MessageType] = MessageType(
        type="shop.Placed", version=1, namespace="shop", aggregatetype="orders", schema="{}"
    )


def copy(offset: int, attempt: int) -> Delivery:
    """Return a copy of the one message, for *attempt*."""
    headers = (("id", str(ID).encode()), ("attempt", str(attempt).encode()), ("group", b"billing"))
    return delivery_of(Record(TIER.topic, 0, offset, 0, 0, b"k", b"v", headers), TIER)


def sorted_(*copies: Delivery, attempt: int) -> tuple[list[int], list[int]]:
    """Return the offsets that are run and those that are duplicates, when *attempt* is the recorded one and due."""
    row = InboxRow(Outcome.RETRY, attempt, due_in=0.0, age=1.0, state="redriven", copied=True, tier="0s")
    known = Known(0, True, None, {ID: row}, {KEY: ID})
    work = Work(stream=TIER, partition=0, deliveries=copies, position=0, leader_epoch=0)
    found = sort([(one, KEY) for one in copies], known, work)
    return [one.delivery.record.offset for one in found.members], [
        one.record.offset for one in found.duplicates
    ]


@pytest.mark.case("T-15")
def test_a_copy_of_an_earlier_attempt_in_the_same_chunk_does_not_hide_the_one_that_is_due() -> None:
    """
    Fails when copies of one chunk are told apart by their id alone.

    A tier is read again from below (a restore, offsets that were reset) and holds the copy of attempt 4, which was run, and that
    of attempt 5, which was not: the first one is a duplicate, and the second one would be dropped with it and never come again.
    """
    assert sorted_(copy(5, 4), copy(8, 5), attempt=5) == ([8], [5])
    assert sorted_(copy(5, 5), copy(8, 5), attempt=5) == ([5], [8])
    assert sorted_(copy(5, 4), copy(8, 4), attempt=5) == ([], [5, 8])


def test_a_key_that_another_drains_is_looked_at_again_long_before_that_one_s_lease_is_over() -> None:
    """
    Fails when the finished head is held for the rest of the lease: a follower that failed meanwhile is the new head, and its copy
    stands behind this one in the tier, of the same key: due in a fifth of a second, it would run in half a minute.
    """
    done = InboxRow(Outcome.DONE, 5, due_in=0.0, age=1.0, state="redriven", copied=True)
    work = Work(stream=TIER, partition=0, deliveries=[copy(5, 5)], keys=[KEY], position=0, leader_epoch=0)
    chunk = run_batch(work, Processor("billing"), jitter=lambda: 0.0, clock=lambda: 0.0)
    answers = {
        LookUp: Known(0, True, None, {ID: done}, {KEY: ID}),
        ReleaseKeys: Released(busy={KEY: 29.0}),
        CountDeliveries: None,
    }
    request = next(chunk)
    while not isinstance(request, ReleaseKeys):
        request = chunk.send(answers[type(request)])
    with pytest.raises(StopIteration) as ended:
        chunk.send(answers[ReleaseKeys])
    assert ended.value.value.left == (5,)
    assert ended.value.value.held == {5: LOOK_AGAIN}


SOURCE = Stream(topic="shop.orders", topic_id=UUID(int=1), source="shop.orders")


def first_delivery(offset: int, value: bytes = b"v") -> Delivery:
    headers = (("id", str(ID).encode()),)
    return delivery_of(Record(SOURCE.topic, 0, offset, 0, 0, b"k", value, headers), SOURCE)


def sorted_source(*deliveries: Delivery, row: InboxRow | None) -> Sorted:
    known = Known(0, True, None, {} if row is None else {ID: row})
    work = Work(stream=SOURCE, partition=0, deliveries=deliveries, position=0, leader_epoch=0)
    return sort([(one, KEY) for one in deliveries], known, work)


@pytest.mark.case("X-10")
@pytest.mark.parametrize(("due_in", "runs"), [(0.0, True), (1.5, False), (90.0, False)])
def test_an_attempt_that_a_version_without_tiers_has_recorded_is_made_where_it_waits(
    due_in: float, runs: bool
) -> None:
    """No copy of it stands in any tier. Fails when its record is taken for one that waits as a copy: it would never run."""
    row = InboxRow(Outcome.RETRY, 2, due_in=due_in, age=1.0, state=None, copied=True)
    found = sorted_source(first_delivery(4), row=row)
    assert bool(found.members) is runs
    assert found.wait == (None if runs else due_in)
    assert found.duplicates == []


def test_an_id_for_two_payloads_in_one_chunk_is_no_duplicate() -> None:
    """Fails when equal ids of one chunk are told apart by nothing else."""
    found = sorted_source(first_delivery(4), first_delivery(5), first_delivery(6, b"other"), row=None)
    assert [one.delivery.record.offset for one in found.members] == [4, 6]
    assert found.members[1].delivery.id != ID
    assert [one.record.offset for one in found.duplicates] == [5]


@pytest.mark.case("T-07", "T-08")
@pytest.mark.parametrize(
    ("tier", "due_in", "age", "wait"),
    [
        ("5s", 3_600.0, 0.0, 5.0),
        ("5s", 3_600.0, 4.0, 1.0),
        ("5s", 3_600.0, 5.0, None),
        ("5s", 3_600.0, -90.0, 5.0),
        ("5s", 5.5, 0.0, 5.5),
        ("0s", 3_600.0, 0.0, 1.0),
        ("0s", 3_600.0, 1.0, None),
    ],
)
def test_a_copy_goes_round_once_it_has_lain_in_its_tier_and_not_before(
    tier: str, due_in: float, age: float, wait: float | None
) -> None:
    """
    Fails when a copy whose wait is longer than the longest tier goes round the moment it is read: it would be produced and read
    thousands of times a second, for hours.
    """
    stream = Stream(
        topic=f"shop.orders.billing.retry.{tier}", topic_id=UUID(int=2), source="shop.orders", tier=tier
    )
    now = datetime(2026, 7, 1, tzinfo=UTC)
    written = round((now.timestamp() - age) * 1000)
    headers = (("id", str(ID).encode()), ("attempt", b"2"), ("group", b"billing"))
    one = delivery_of(Record(stream.topic, 0, 5, 0, written, b"k", b"v", headers), stream)
    row = InboxRow(Outcome.RETRY, 2, due_in=due_in, age=1.0, state=None, copied=True, tier=tier)
    work = Work(stream=stream, partition=0, deliveries=[one], position=0, leader_epoch=0)
    found = sort([(one, KEY)], Known(0, True, now, {ID: row}, {KEY: ID}), work)
    assert (found.wait, found.circling) == (wait, [one] if wait is None else [])


@pytest.mark.case("T-03")
@pytest.mark.parametrize("ordering", ["key", "none"])
def test_a_wake_up_is_about_its_key_whatever_order_messages_without_a_type_have(
    ordering: Literal["key", "none"],
) -> None:
    """
    Fails when a wake-up, which has no type, is bound as messages of no handler are: where one handler alone takes order, or took it
    before, what waits behind a finished head would wait for ever.
    """
    wake = wake_up(ID, group="billing", source="shop.orders", partition=0, key=b"k")
    record = Record(TIER.topic, 0, 5, 0, 0, wake.key, wake.value, wake.headers)
    [waiting] = Intake(Processor("billing", ordering=ordering))([record], TIER)
    assert waiting.key == key_hash(b"k")
    work = Work(stream=TIER, partition=0, deliveries=[waiting.delivery], position=0, leader_epoch=0)
    found = sort([(waiting.delivery, waiting.key)], Known(0, True, None, {}, {key_hash(b"k"): ID}), work)
    assert found.heads == {5: key_hash(b"k")}


def test_a_type_that_is_as_long_as_a_record_is_not_remembered() -> None:
    """Fails when whoever writes long and ever new types fills the memory of a processor that has no handler for them."""
    intake = Intake(Processor("billing"))
    source = Stream(topic="shop.orders", topic_id=UUID(int=1), source="shop.orders", tier=None)

    def of(kind: bytes) -> str | None:
        [waiting] = intake([Record("shop.orders", 0, 5, 0, 0, b"k", b"v", (("type", kind),))], source)
        return waiting.delivery.type

    assert [of(b"shop.Placed"), of(b"shop.Placed"), of(b"t" * 100_000)] == [
        "shop.Placed",
        "shop.Placed",
        None,
    ]
    tracked = sum(len(kind[0] or b"") for kind in intake._bounds)
    assert tracked == len("shop.Placed")


@pytest.mark.case("T-08")
def test_what_is_due_and_was_cut_off_does_not_wait_for_what_is_not() -> None:
    """Fails when a chunk that was cut says so too how long its first copy that is not due waits: the whole partition would."""
    app = Processor("billing")

    @app.tombstone_handler(Placed)
    def gone(ctx: Context) -> None:
        raise NotImplementedError

    def of(n: int) -> Delivery:
        headers = (("id", str(UUID(int=n)).encode()), ("type", b"shop.Placed"), ("attempt", b"2"))
        return delivery_of(Record(TIER.topic, 0, n, 0, 0, None, None, headers), TIER)

    due = {UUID(int=n): 600.0 if n == 3 else 0.0 for n in (1, 2, 3)}
    rows = {
        one: InboxRow(Outcome.RETRY, 2, due_in=wait, age=1.0, state=None, copied=True, tier="10m")
        for one, wait in due.items()
    }
    tier = replace(TIER, tier="10m")
    work = Work(stream=tier, partition=0, deliveries=[of(1), of(2), of(3)], position=0, leader_epoch=0)
    seconds = count()
    chunk = run_batch(work, app, jitter=lambda: 0.0, clock=lambda: float(next(seconds)))
    ends: list[ChunkEnded] = []
    request = next(chunk)
    while not ends:
        answer: object = RETURNED if isinstance(request, RunHandler) else True
        if isinstance(request, LookUp):
            answer = Known(0, True, None, rows)
        try:
            request = chunk.send(answer)
        except StopIteration as end:
            ends.append(end.value)
    assert (ends[0].ended, ends[0].left) == (Ended.WELL, (2, 3))


@pytest.mark.parametrize("first", [None, b""])
def test_an_id_that_was_a_tombstones_is_no_payloads(first: bytes | None) -> None:
    """Fails when a tombstone leaves no digest: what comes under its id would be a duplicate, and lost in silence."""
    later = b"" if first is None else None
    row = InboxRow(Outcome.DONE, 1, due_in=0.0, age=1.0, state=None, copied=True, digest=digest_of(first))
    known = Known(0, True, None, {ID: row})
    for payload, reuses in ((first, False), (later, True)):
        record = Record(SOURCE.topic, 0, 3, 0, 0, b"k", payload, (("id", str(ID).encode()),))
        one = delivery_of(record, SOURCE)
        found = sort(
            [(one, KEY)],
            known,
            Work(stream=SOURCE, partition=0, deliveries=[one], position=0, leader_epoch=0),
        )
        reasons = [member.result.reason for member in found.members if member.result is not None]
        assert (reasons, len(found.duplicates)) == ((["id-reused"], 0) if reuses else ([], 1))


def test_a_chunk_that_two_lanes_have_worked_on_ends_as_both_say() -> None:
    """Fails when what the first lane has found is lost, or what it left to the other one waits for a copy that is not due."""
    first = ChunkEnded(
        ended=Ended.NOT_DUE,
        wait=600.0,
        done=1,
        left=(2, 3, 4),
        others=frozenset({2, 3}),
        failed=True,
        tallies={"placed": seen([False])},
        slow=("a",),
        held={4: 1.0},
    )
    then = ChunkEnded(ended=Ended.WELL, done=1, left=(3,), held={3: 1.0}, alone=True, slow=("b",))
    found = joined(first, then)
    assert (found.ended, found.wait, found.left, found.done) == (Ended.NOT_DUE, 600.0, (3, 4), 2)
    assert (found.held, found.alone, found.slow, found.failed) == ({3: 1.0, 4: 1.0}, False, ("a", "b"), True)
    assert found.tallies == first.tallies
    away = joined(first, replace(then, ended=Ended.AWAY, away="database", done=0, left=(2, 3)))
    assert (away.ended, away.away, away.left) == (Ended.AWAY, "database", (2, 3, 4))
