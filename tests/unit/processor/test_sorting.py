"""Which deliveries of a chunk are run, asked with what the database knows."""

from uuid import UUID

import pytest

from packhorse.processor.outcomes import Outcome
from packhorse.processor.record import Delivery, Record, Stream, delivery_of
from packhorse.processor.running.sorting import sort
from packhorse.processor.running.work import InboxRow, Known, Work

TIER = Stream(topic="shop.orders.billing.retry.0s", topic_id=UUID(int=2), source="shop.orders", tier="0s")
ID, KEY = UUID(int=7), "hash of k"


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
