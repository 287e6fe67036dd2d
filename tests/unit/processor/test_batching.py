"""A batch handler's batch: a list with an answer for each item, given once and in time."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import pytest
from tests.unit.processor.test_app import Placed, Sent

from packhorse.core import logs
from packhorse.core.errors import SettingsError, UsageError
from packhorse.core.ids import derived_id
from packhorse.processor import Batch, BatchContext, Later, Processor, Quarantine, Retry, Skip
from packhorse.processor.record import Delivery, Record, Stream, delivery_of
from packhorse.processor.running.batching import answers
from packhorse.processor.running.work import (
    RETURNED,
    RETURNED_UNTOUCHED,
    Failure,
)

LOG = logs.logger("tests")
STREAM = Stream(topic="unit.orders", topic_id=UUID(int=1), source="unit.orders")


@dataclass
class Given:
    delivery: Delivery
    message: Any
    attempt: int


class Memory:
    """Keeps what a context emits."""

    def __init__(self) -> None:
        self.drafts: list[Any] = []

    def emit(self, drafts: list[Any]) -> None:
        self.drafts += drafts


def given(n: int) -> Given:
    record = Record(
        topic="unit.orders",
        partition=2,
        offset=n,
        leader_epoch=None,
        timestamp_ms=0,
        key=b"k%d" % n,
        value=b"",
        headers=(("id", str(UUID(int=n)).encode()), ("type", b"unit.Placed")),
    )
    return Given(delivery_of(record, STREAM), Placed(), n + 1)


def batch_of(count: int) -> Batch[Any]:
    return Batch([given(n) for n in range(count)], group="unit", log=LOG)


def context_of(batch: Batch[Any]) -> tuple[BatchContext, Memory]:
    memory: Any = Memory()
    return BatchContext(batch.answers, memory, log=LOG), memory


def test_it_is_a_list_of_items_that_say_who_they_are() -> None:
    batch = batch_of(3)
    assert len(batch) == 3
    assert [item.offset for item in batch] == [0, 1, 2]
    assert (batch[1].id, batch[1].key, batch[1].attempt, batch[-1].partition) == (UUID(int=1), "k1", 2, 2)
    assert [item.id for item in batch[1:]] == [UUID(int=1), UUID(int=2)]
    assert batch.messages == [item.message for item in batch]
    batch[0].log.debug("seen")


def test_what_is_not_answered_is_done_and_each_answer_is_judged_as_if_it_were_raised() -> None:
    app = Processor("unit")
    app.handler(Placed, permanent=(KeyError,), down=(OSError,))(lambda message, ctx: None)
    batch = batch_of(11)
    batch[1].skip("nothing to do")
    batch[2].quarantine("no-gate", "of the plane")
    batch[3].retry()
    batch[4].retry("5m")
    batch[5].retry(error=KeyError("x"))
    batch[6].retry(error=OSError())
    batch[7].retry(after=2, error=KeyError("x"))
    batch[8].retry(error=Later(after="1m"))
    batch[9].retry(error=Retry(after="10m"))
    batch[10].retry(error=Quarantine("late"))
    batch.close()
    found = answers(batch, app.handlers["unit.Placed", False], touched=True)
    assert found[0] is RETURNED
    assert [(ran.failure, ran.reason, ran.after) for ran in found[1:]] == [
        (Failure.SKIP, "", None),
        (Failure.PERMANENT, "no-gate", None),
        (Failure.TEMPORARY, "failed", None),
        (Failure.TEMPORARY, "failed", 300.0),
        (Failure.PERMANENT, "permanent", None),
        (Failure.DOWN, "down", None),
        (Failure.TEMPORARY, "failed", 2.0),
        (Failure.LATER, "later", 60.0),
        (Failure.TEMPORARY, "failed", 600.0),
        (Failure.PERMANENT, "late", None),
    ]
    assert not any(ran.touched for ran in found[1:])
    assert answers(batch_of(2), None, touched=False) == [RETURNED_UNTOUCHED] * 2


def test_an_answer_is_given_once_and_before_the_handler_returns() -> None:
    batch = batch_of(2)
    batch[0].skip()
    assert batch[0].is_answered
    ways: list[Callable[[], None]] = [batch[0].skip, batch[0].retry, lambda: batch[0].quarantine("late")]
    for again in ways:
        with pytest.raises(UsageError, match=rf"{UUID(int=0)}: it has an answer already; answer once"):
            again()
    with pytest.raises(UsageError, match="is no reason code"):
        batch[1].quarantine("No Such")
    with pytest.raises(SettingsError, match="is no duration"):
        batch[1].retry(after="soon")
    assert not batch[1].is_answered
    batch.close()
    with pytest.raises(UsageError, match=rf"{UUID(int=1)} came after the batch handler had returned"):
        batch[1].skip()


@pytest.mark.case("P-15")
def test_what_is_no_error_is_refused_where_it_is_given() -> None:
    """Fails when it is taken, and met where nobody foresees it: the process would end."""
    (item,) = batch_of(1)
    wrong: Any = "the gate is shut"
    others: list[Any] = [wrong, SystemExit(), ValueError]
    for error in others:
        with pytest.raises(UsageError, match="give it the exception that says why"):
            item.retry(error=error)
    item.retry(error=ValueError("the gate is shut"))


def test_a_follow_ups_id_derives_from_its_item_and_the_items_own_ordinal() -> None:
    """Fails when the ordinal is counted over the batch: cut otherwise, the same follow-ups would have other ids."""
    batch = batch_of(2)
    context, memory = context_of(batch)
    ids = [context.emit(item, Sent(), key=item.key) for item in (batch[1], batch[0], batch[1])]
    tombstone = context.emit_tombstone(batch[0], Sent, key="k")
    assert memory.drafts == []
    context.settle()
    assert ids == [
        derived_id(UUID(int=1), "unit", 0),
        derived_id(UUID(int=0), "unit", 0),
        derived_id(UUID(int=1), "unit", 1),
    ]
    assert [draft.id for draft in memory.drafts] == [*ids, tombstone]
    assert {draft.causation_id for draft in memory.drafts} == {str(UUID(int=0)), str(UUID(int=1))}
    assert context.touched


def test_follow_ups_are_only_for_items_of_the_batch_that_are_done() -> None:
    batch, other = batch_of(2), batch_of(1)
    context, _ = context_of(batch)
    batch[0].skip()
    with pytest.raises(UsageError, match="emit only for items that are done"):
        context.emit(batch[0], Sent(), key="k")
    with pytest.raises(UsageError, match="is no item of this batch"):
        context.emit(other[0], Sent(), key="k")
    context.emit(batch[1], Sent(), key="k")
    with pytest.raises(UsageError, match=r"1 follow-up\(s\) were emitted for it"):
        batch[1].retry()
    batch.close()
    with pytest.raises(UsageError, match="after the batch handler had returned"):
        context.emit_tombstone(batch[1], Sent, key="k")


def test_skip_is_an_answer_like_any_other_error() -> None:
    batch = batch_of(1)
    batch[0].retry(error=Skip("moot"))
    assert answers(batch, None, touched=True)[0].failure is Failure.SKIP
