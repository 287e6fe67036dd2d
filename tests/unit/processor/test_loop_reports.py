"""The loop tells what went wrong with the broker, by name; its neighbours here answer once and do nothing else."""

import io
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from queue import SimpleQueue
from typing import Any, cast
from uuid import UUID

import pytest

from packhorse.core import logs
from packhorse.core.clock import SYSTEM_CHANCE, SYSTEM_CLOCK
from packhorse.core.telemetry import Attributes, Metric, NoTelemetry
from packhorse.processor.app import Processor
from packhorse.processor.kafka.consumer import CommitReport, Polled, Trouble
from packhorse.processor.member.gathering import Cause, Gathering, Line
from packhorse.processor.member.intake import Intake
from packhorse.processor.member.loop import Loop, Times
from packhorse.processor.partition.state import (
    Limits,
)
from packhorse.processor.record import Stream
from packhorse.processor.running.lanes import Lanes

FAILED = CommitReport("a.b", 3, 1234, "failed", "Broker: Coordinator not available")


class Telling(NoTelemetry):
    def __init__(self) -> None:
        self.told: list[tuple[Metric, Attributes | None]] = []

    def record(self, metric: Metric, value: float, attributes: Attributes | None = None) -> None:
        self.told.append((metric, attributes))


class OnePoll:
    """A consumer that brings *polled* once, then asks the loop to stop."""

    def __init__(self, polled: Polled, stop: threading.Event) -> None:
        self._polled, self._stop = polled, stop
        self.events: list[str] = []

    def join(self) -> None:
        assert not self.events
        self.events.append("joined")

    def poll(self, wait: float, most: int) -> Polled:
        self._stop.set()
        return self._polled

    def close(self, wait: float) -> bool:
        self.events.append("closed")
        return True


class NoLanes:
    count = 1
    reports: SimpleQueue[Any] = SimpleQueue()

    def start(self) -> None:
        pass

    def submit(self, job: Any) -> None:
        pass

    def mark(self, move: Any) -> None:
        pass

    def stop(self, wait: float) -> None:
        pass


def loop_of(consumer: OnePoll, telemetry: Telling) -> Loop:
    return Loop(
        consume=lambda loop: cast("Any", consumer),
        lanes=cast("Lanes", NoLanes()),
        limits=Limits(),
        times=Times(drain=0, revoke=0),
        clock=SYSTEM_CLOCK,
        chance=SYSTEM_CHANCE,
        telemetry=telemetry,
        log=logs.logger("processor"),
        group="g",
        streams=lambda place: Stream(topic=place[0], topic_id=UUID(int=0), source=place[0]),
        sort=Intake(Processor("g")),
    )


def run_once(polled: Polled) -> tuple[str, Telling]:
    telemetry, stop = Telling(), threading.Event()
    with logged() as written:
        loop_of(OnePoll(polled, stop), telemetry).run(stop)
    return written.getvalue(), telemetry


@contextmanager
def logged() -> Iterator[io.StringIO]:
    written = io.StringIO()
    logs.set_up("people", stream=written)
    yield written


@pytest.mark.case("X-06")
def test_a_commit_that_fails_is_named_in_log_and_metric() -> None:
    """Fails when topic, partition, offset or cause is left out of the log line, or topic and partition out of the metric."""
    told, telemetry = run_once(Polled(records={}, troubles=(), commits=(FAILED,)))
    for part in (
        "offset commit failed",
        "topic=a.b",
        "partition=3",
        "offset=1234",
        "Coordinator not available",
    ):
        assert part in told
    expected = {"group": "g", "outcome": "failed", "topic": "a.b", "partition": 3}
    assert (Metric.PROCESSOR_COMMITS, expected) in telemetry.told


@pytest.mark.case("X-06")
def test_trouble_with_a_partition_is_named() -> None:
    """Fails when the log line does not say which partition, or why."""
    told, _ = run_once(
        Polled(records={}, troubles=(Trouble("fetch", "a.b", 3, "Broker: Leader not available"),), commits=())
    )
    for part in ("topic=a.b", "partition=3", "Leader not available"):
        assert part in told


def test_partitions_that_one_cause_stops_are_one_line_with_their_number() -> None:
    """Fails when each partition that an outage stops writes a line of its own, or the number is never told."""
    gathering, away = Gathering(), Cause("database", "is it up?")
    first = gathering.note(("a.b", 0), away, wait=1.0, now=0.0)
    assert first == Line(cause=away, places=(("a.b", 0),), wait=1.0)
    for number in range(1, 300):
        assert gathering.note(("a.b", number), away, wait=2.0, now=0.5) is None
    assert gathering.due(0.9) == []
    (line,) = gathering.due(1.0)
    assert (len(line.places), line.wait) == (299, 2.0)
    assert gathering.due(10.9) == []
    gathering.note(("a.b", 0), away, wait=4.0, now=5.0)
    assert [len(one.places) for one in gathering.due(11.0)] == [1]
    assert gathering.due(2_000.0) == []
    assert gathering.note(("a.b", 0), away, wait=1.0, now=2_001.0) is not None, (
        "it was over, and is news again"
    )


def test_a_loop_joins_when_it_runs_and_leaves_whatever_goes_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    Fails when a loop that never runs is a member, or one that fails at its end stays one: its share of the partitions
    would rest, and the collector would wait for the client for ever.
    """
    stop = threading.Event()
    consumer = OnePoll(Polled(records={}, troubles=(), commits=()), stop)
    loop = loop_of(consumer, Telling())
    assert consumer.events == []
    monkeypatch.setattr(loop, "_end_what_runs", lambda places, wait: 1 / 0)
    with logged(), pytest.raises(ZeroDivisionError):
        loop.run(stop)
    assert consumer.events == ["joined", "closed"]


@pytest.mark.case("T-20")
def test_an_outage_of_hours_writes_a_bounded_log() -> None:
    """Fails when the text, which holds times and counts, is part of what a line is taken to be new by."""
    troubles = [
        Trouble("away", None, None, f"_TRANSPORT: Connect to b:9092 failed (after {n}ms in state CONNECT)")
        for n in range(50)
    ]
    told, telemetry = run_once(Polled(records={}, troubles=troubles, commits=[FAILED] * 50))
    assert told.count("trouble with the broker") == 1
    assert told.count("offset commit failed") == 1
    assert [metric for metric, _ in telemetry.told].count(Metric.PROCESSOR_COMMITS) == 50
