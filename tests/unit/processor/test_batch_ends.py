"""How a batch ends, asked request by request: nobody but this test answers."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, ClassVar
from uuid import UUID

import pytest

from packhorse.core.errors import BrokerUnavailable, DatabaseUnavailable, PackhorseError
from packhorse.core.message import MessageType
from packhorse.processor import Context, Processor
from packhorse.processor.outcomes import Outcome
from packhorse.processor.partition.events import ChunkEnded, Ended
from packhorse.processor.record import Record, Stream, delivery_of
from packhorse.processor.running.batch import Report, run_batch
from packhorse.processor.running.endings import GivenUp
from packhorse.processor.running.requests import (
    ClaimKey,
    Decode,
    DecodeAll,
    LeaveKey,
    LookUp,
    MarkStart,
    ReleaseKeys,
    Request,
    RollBack,
    RunHandler,
    SendKept,
    Write,
)
from packhorse.processor.running.work import (
    RETURNED,
    Claim,
    Claimed,
    Failure,
    InboxRow,
    Known,
    Ran,
    Released,
    Result,
    Work,
)

STREAM = Stream(topic="shop.orders", topic_id=UUID(int=1), source="shop.orders")
Answers = Callable[[Request], Any]


class Placed:
    __packhorse__: ClassVar[MessageType] = MessageType(
        type="shop.Placed", version=1, namespace="shop", aggregatetype="orders", schema="{}"
    )


def app() -> Processor:
    found = Processor("billing")

    @found.handler(Placed)
    def placed(message: Placed, ctx: Context) -> None:
        raise NotImplementedError

    return found


def work(epochs: dict[int, int | None], *, position: int, leader_epoch: int | None = 0) -> Work:
    """Return a batch of one record for each offset, with its leader epoch."""
    records = [
        Record("shop.orders", 0, offset, epoch, 0, b"k", b"v", (("type", b"shop.Placed"),))
        for offset, epoch in epochs.items()
    ]
    return Work(
        stream=STREAM,
        partition=0,
        deliveries=[delivery_of(record, STREAM) for record in records],
        position=position,
        leader_epoch=leader_epoch,
    )


def carry_out(of: Work, answers: Answers, report: Report | None = None) -> tuple[ChunkEnded, list[Request]]:
    """Answer what the batch asks for until it has ended; an error is thrown in."""
    batch, asked = run_batch(of, app(), jitter=lambda: 0.0, clock=lambda: 0.0, report=report), []
    try:
        request = next(batch)
        while True:
            asked.append(request)
            answer = answers(request)
            request = batch.throw(answer) if isinstance(answer, PackhorseError) else batch.send(answer)
    except StopIteration as done:
        return done.value, asked


def well(of: Work, *, ran: Ran | PackhorseError = RETURNED) -> Answers:
    """Return the answers of a database where all goes well."""

    def answer(request: Request) -> Any:
        if isinstance(request, LookUp):
            return Known(of.position, True, datetime(2026, 1, 1, tzinfo=UTC), {})
        if isinstance(request, DecodeAll):
            return [Placed() for _ in request.payloads]
        return ran if isinstance(request, RunHandler) else True

    return answer


@pytest.mark.case("P-21")
@pytest.mark.parametrize(
    ("broke", "how"), [(GivenUp("over"), Ended.GIVEN_UP), (DatabaseUnavailable("away"), Ended.AWAY)]
)
def test_a_batch_that_breaks_off_leaves_no_transaction_open(broke: PackhorseError, how: Ended) -> None:
    """Its locks would keep the next owner waiting until the server ends it. Fails when no RollBack is asked for."""
    of = work({0: 1, 1: 1}, position=0)
    ended, asked = carry_out(of, well(of, ran=broke))
    assert ended.ended is how
    assert asked[-1] == RollBack()


@pytest.mark.case("P-30")
@pytest.mark.case("T-11")
@pytest.mark.parametrize(("starts", "runs"), [(1, True), (4, False)])
def test_what_is_in_hand_and_what_starts_alone_is_on_record_before_its_payload_is_decoded(
    starts: int, runs: bool
) -> None:
    """A payload may kill the process in the decoder. Fails when the record is made with the transaction, which comes later."""
    of = replace(work({0: 1}, position=0), marked=True)
    answers = well(of)
    ended, asked = carry_out(of, lambda one: starts if isinstance(one, MarkStart) else answers(one))
    order = [type(request) for request in asked]
    assert order[:2] == [LookUp, MarkStart]
    assert (DecodeAll in order) is runs
    if runs:
        (decode,) = [request for request in asked if isinstance(request, DecodeAll)]
        assert list(decode.in_hand) == [0]
        return
    (written,) = [request for request in asked if isinstance(request, Write)]
    assert [(one.outcome, one.reason) for one in written.results] == [(Outcome.QUARANTINE, "crashed")]
    assert ended.left == ()


@pytest.mark.parametrize("members", [1, 2])
def test_results_that_nobody_else_recorded_and_that_can_t_be_recorded_are_the_handlers_fault(
    members: int,
) -> None:
    """
    It ended its transaction and began another. One alone is run once and stopped; of several fewer are run.

    Fails when each refused write is taken for another owner: the message would run for ever, and commit each time.
    """
    of, refused = work(dict.fromkeys(range(members), 1), position=0), [True]
    answers = well(of)

    def refuse_once(request: Request) -> Any:
        return not refused.pop() if isinstance(request, Write) and refused else answers(request)

    ended, asked = carry_out(of, refuse_once)
    assert [type(request) for request in asked].count(RunHandler) == members
    if members > 1:
        assert ended.ended is Ended.CONTENTION
        return
    results = [request.results[0] for request in asked if isinstance(request, Write)]
    assert [(result.outcome, result.reason) for result in results] == [
        (Outcome.DONE, None),
        (Outcome.QUARANTINE, "broken-transaction"),
    ]


@pytest.mark.case("T-21")
@pytest.mark.parametrize("probe", [False, True])
def test_a_head_whose_follower_is_a_stopped_handlers_is_left_behind_that_gate(*, probe: bool) -> None:
    """Fails when a drain asks for no gate, and when nothing of its key may try the handler."""
    gate = app().handlers["shop.Placed", False].name
    shut = frozenset({gate})
    of = replace(work({0: 1}, position=0), keys=["k"], shut=shut, probe=gate if probe else None)
    ended, asked = carry_out(of, with_follower(of))
    assert (ended.left, ended.gated) == ((0,), {0: gate})
    assert isinstance(asked[-1], LeaveKey)
    assert (RunHandler in map(type, asked), ended.ran) == ((True, RETURNED) if probe else (False, None))


@pytest.mark.case("T-20")
@pytest.mark.parametrize("contended", [False, True])
def test_a_follower_that_says_again_and_again_that_its_system_is_down_is_charged(*, contended: bool) -> None:
    """
    Others of its handler get answers meanwhile, so its handler goes on, and it would come again for ever.

    Fails when what is known of the delivery that led to it does not reach the follower, which alone can be charged for it.
    """
    of = replace(work({0: 1}, position=0), keys=["k"], contended=contended)
    answers, down = with_follower(of), Ran(Failure.DOWN, "down", "nobody answers")
    ended, asked = carry_out(of, lambda one: down if isinstance(one, RunHandler) else answers(one))
    written = [result for one in asked if isinstance(one, Write) for result in one.results]
    if contended:
        assert [(one.delivery.id.int, one.outcome, one.attempt) for one in written] == [(9, Outcome.RETRY, 1)]
        assert ended.left == ()
    else:
        assert (written, ended.left) == ([], (0,))


@pytest.mark.case("T-21")
def test_what_was_committed_of_followers_is_told_though_the_broker_is_away_then() -> None:
    """Fails when it is told by a drain that ends well only: no brake, no metric and no log line ever hears of it."""
    of = replace(work({0: 1}, position=0), keys=["k"])
    answers = with_follower(of)

    def away(request: Request) -> Any:
        match request:
            case RunHandler():
                return Ran(Failure.PERMANENT, "permanent", "E")
            case SendKept():
                return BrokerUnavailable("nobody answers")
            case _:
                return answers(request)

    told: list[Result] = []
    ended, _ = carry_out(of, away, report=lambda results, duplicates: told.extend(results))
    assert (ended.ended, ended.left) == (Ended.AWAY, (0,))
    assert [(one.delivery.id.int, one.outcome) for one in told] == [(9, Outcome.QUARANTINE)]
    assert [(seen.attempts, seen.failed) for seen in ended.tallies.values()] == [(1, 1)]


@pytest.mark.case("P-34")
@pytest.mark.parametrize("suspected", [False, True])
def test_followers_behind_what_is_suspected_share_no_transaction(*, suspected: bool) -> None:
    """Fails when they do until one is charged: the first would be charged for what a later one did."""
    of = replace(work({0: 1}, position=0), keys=["k"], suspected=suspected)
    answers = with_follower(of, count=3)
    begun, left = [], [3]

    def counted(request: Request) -> Any:
        match request:
            case ClaimKey():
                claimed = answers(request)
                return claimed._replace(followers=claimed.followers[3 - left[0] :])
            case ReleaseKeys() if not left[0]:
                return Released()
            case Write(results):
                begun.append(len(results))
                left[0] -= len(results)
        return answers(request)

    carry_out(of, counted)
    assert [n for n in begun if n] == ([1, 1, 1] if suspected else [3])


def with_follower(of: Work, count: int = 1) -> Callable[[Request], Any]:
    """Return answers for the one delivery of *of*: its message is done, and *count* followers wait behind it."""
    head = of.deliveries[0]
    row = InboxRow(Outcome.DONE, 1, 0.0, 0.0, None, copied=True)
    waiting = row._replace(outcome=Outcome.PARKED)
    behind = [(head._replace(id=UUID(int=9 + n)), waiting) for n in range(count)]
    answers = well(of)

    def parked(request: Request) -> Any:
        match request:
            case LookUp():
                return Known(0, True, None, {head.id: row}, {"k": head.id})
            case ReleaseKeys():
                return Released(waiting=["k"])
            case ClaimKey():
                return Claimed(Claim("k", 1), None, behind)
            case Decode():
                return Placed()
            case _:
                return answers(request)

    return parked
