"""Starts that a process has lived through are no deaths of it, whatever kept it from taking them back."""

from queue import SimpleQueue
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from packhorse.core.errors import DatabaseUnavailable
from packhorse.processor.member.fence import Fence
from packhorse.processor.member.jobs import OpenJob, Report
from packhorse.processor.partition.events import OpenFailed
from packhorse.processor.record import Record, Stream, delivery_of
from packhorse.processor.running.asking import steps_of
from packhorse.processor.running.lanework import forgotten
from packhorse.processor.running.opener import Opener
from packhorse.processor.running.requests import MarkStart
from packhorse.processor.running.starts import MOST, Starts
from packhorse.processor.running.work import Work
from packhorse.processor.storing.sql import queries_for
from packhorse.processor.storing.steps import Answer
from packhorse.processor.storing.store import Store

STREAM = Stream(topic="shop.orders", topic_id=UUID(int=1), source="shop.orders")
SPOT = STREAM.topic_id, 0
PLANT: Any = SimpleNamespace(
    store=Store(queries=queries_for("packhorse"), group="billing", schema="packhorse"), starts=Starts()
)
WORK = Work(
    stream=STREAM,
    partition=0,
    deliveries=[delivery_of(Record("shop.orders", 0, 7, 0, 0, b"k", b"v", ()), STREAM)],
    position=0,
    leader_epoch=0,
)


def lived() -> bool:
    """Mark the message's start, and return whether the one on record counts as lived through."""
    steps = steps_of(MarkStart(7), PLANT, WORK, "")
    told: bool = next(steps).parameters["lived"]
    with pytest.raises(StopIteration):
        steps.send(Answer([(1,)], 1))
    return told


@pytest.mark.case("T-11")
@pytest.mark.case("T-20")
def test_a_start_that_an_outage_left_on_record_is_no_death() -> None:
    """
    Fails when it is: a message whose connection is cut three times is stopped as one that kills its process, though none died.
    """
    assert not lived()
    forgotten(PLANT, WORK)  # the database is away: its statements never run
    assert lived()
    assert not lived(), "the process may die over this one"

    done = forgotten(PLANT, WORK)
    next(done)
    with pytest.raises(StopIteration):
        done.send(Answer((), 1))
    assert not lived()


def test_what_is_owed_is_bounded() -> None:
    starts = Starts()
    starts.owe(SPOT, range(MOST + 5))
    assert [starts.owes(SPOT, offset) for offset in (0, 4, 5, MOST + 4)] == [False, False, True, True]


@pytest.mark.case("P-08")
def test_nothing_is_opened_before_the_watermarks_connection_stands() -> None:
    """
    A server that crashes loses results that were not flushed; only a connection that is older than they are finds out.

    Fails when the first watermark is moved on a connection of its own, made after the crash.
    """

    def away() -> None:
        raise DatabaseUnavailable("no connection")

    reports: SimpleQueue[Report] = SimpleQueue()
    opener = Opener(PLANT, reports, prepare=away)
    opener.submit(OpenJob(place=("shop.orders", 0), generation=1, number=1, fence=Fence()))
    opener.submit(None)
    opener.thread.start()
    opener.thread.join(10)
    assert reports.get_nowait().event == OpenFailed(away="database", text="no connection")
