"""Many lanes that hang end together: neither a revoke nor the end of the process waits for one after another."""

import threading
from dataclasses import dataclass
from uuid import UUID

import pytest

from packhorse.core.clock import SYSTEM_CLOCK
from packhorse.core.telemetry import NO_TELEMETRY
from packhorse.processor import Processor
from packhorse.processor.member.fence import Fence
from packhorse.processor.member.jobs import OpenJob
from packhorse.processor.partition.events import OpenFailed
from packhorse.processor.plant import Plant
from packhorse.processor.running.lanes import Lanes
from packhorse.processor.running.measure import Measure

MANY = 16


@dataclass
class Time:
    now: float = 0.0

    def monotonic(self) -> float:
        return self.now


def lanes(clock: object) -> Lanes:
    nothing: object = None
    plant = Plant(
        app=Processor("unit"),
        sources={},
        member=UUID(int=1),
        conninfo="",
        store=nothing,  # type: ignore[arg-type]
        decoder=nothing,  # type: ignore[arg-type]
        copies=nothing,  # type: ignore[arg-type]
        broker=nothing,  # type: ignore[arg-type]
        outbox=nothing,  # type: ignore[arg-type]
        clock=clock,  # type: ignore[arg-type]
    )
    return Lanes(plant, Measure(NO_TELEMETRY, SYSTEM_CLOCK, "unit"), count=2)


@pytest.mark.case("P-21")
def test_what_runs_in_many_lanes_is_cancelled_at_once() -> None:
    """Fails when one is asked after another: while the database does not answer, a revoke would take seconds for each lane."""
    made, all_asked = lanes(SYSTEM_CLOCK), threading.Barrier(MANY)

    class Seat:
        def cancel(self) -> None:
            all_asked.wait(20)

    made._running = {("a", n % 2): set() for n in range(2)}
    for n in range(MANY):
        made._running["a", n % 2].add(Seat())  # type: ignore[arg-type]
    made.cancel(("a", 0), ("a", 1), ("b", 0))
    assert not all_asked.broken
    assert all_asked.n_waiting == 0


def test_a_partition_that_is_gone_is_not_opened_any_more() -> None:
    """Fails when it is: after a rebalance while the broker is away, those that stay would wait seconds for each that went."""
    made, fence = lanes(SYSTEM_CLOCK), Fence()
    fence.up = True
    made.submit(OpenJob(place=("a", 0), generation=1, number=1, fence=fence))
    made.start()
    report = made.reports.get(timeout=20)
    assert report.event == OpenFailed(away="partition", text="it went away")
    made.stop(wait=20)


@pytest.mark.case("X-09")
def test_lanes_that_do_not_end_are_waited_for_together() -> None:
    """Fails when each is waited for: a process with many lanes would not end within its grace time."""
    time = Time()
    made = lanes(time)

    class Hung:
        def join(self, wait: float) -> None:
            time.now += wait

    made.start()
    threads, made._threads = made._threads, [Hung()] * MANY  # type: ignore[list-item]
    made.stop(wait=1.0)
    assert time.now == pytest.approx(1.0)
    for thread in threads:
        thread.join(20)
