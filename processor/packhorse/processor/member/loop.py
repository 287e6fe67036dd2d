"""
The loop: one thread that polls the broker and owns every partition's state; it waits for no handler.

Each turn takes what lanes report, what the broker sends and what time brings. Order at a revoke and at the end: nothing
new begins, what runs may end within a bounded time, what is durable is committed, the partition goes.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from queue import Empty
from types import MappingProxyType
from typing import Protocol

from packhorse.core.clock import Chance, Clock
from packhorse.core.errors import BrokerUnavailable, NotReady, PackhorseError
from packhorse.core.logs import Log
from packhorse.core.telemetry import Telemetry
from packhorse.processor.breaking.stops import Told
from packhorse.processor.kafka.consumer import Assignment, GroupConsumer, Trouble
from packhorse.processor.member.committing import Commits
from packhorse.processor.member.desk import Desk
from packhorse.processor.member.jobs import Place
from packhorse.processor.member.ports import Holding
from packhorse.processor.member.queue import Waiting
from packhorse.processor.member.rationing import NO_RATION, Ration
from packhorse.processor.member.telling import Telling
from packhorse.processor.partition.state import (
    Limits,
    PartitionState,
)
from packhorse.processor.record import Record, Stream
from packhorse.processor.running.lanes import Lanes
from packhorse.processor.watching.board import Board

IDLE_WAIT = 0.05
"""Seconds that a poll waits for a record while no lane works."""
BUSY_WAIT = 0.004
"""Seconds that the loop waits for a lane before it polls again."""
MOST_RECORDS = 2_000
"""Records of one poll."""
MARK_WAIT = 1.0
"""Seconds that a watermark may take to move behind what has ended, once the time for what runs is over."""
LEAVE_WAIT = 6.0
"""Seconds that leaving the group may take; the client itself waits for minutes for a commit that is on its way."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Times:
    """
    How long to wait for what runs; in seconds.

    Attributes:
        drain: When the process stops.
        revoke: When a partition is about to go; well below the group's rebalance time-out.
    """

    drain: float = 25.0
    revoke: float = 10.0


class StopSign(Protocol):
    """Whether the process was asked to stop."""

    def is_set(self) -> bool:
        """Return it."""


class Loop:
    """
    Run the member of the group until it is told to stop, or must.

    *consume* makes the consumer, which is told whom to call at rebalances; it joins the group when the loop runs.
    """

    def __init__(
        self,
        *,
        consume: Callable[["Loop"], GroupConsumer],
        lanes: Lanes,
        limits: Limits,
        times: Times,
        clock: Clock,
        chance: Chance,
        telemetry: Telemetry,
        log: Log,
        group: str,
        streams: Callable[[Place], Stream],
        sort: Callable[[Sequence[Record], Stream], list[Waiting]],
        board: Board | None = None,
        leaving: Callable[[], None] = lambda: None,
        bodies: Callable[[], bool] = lambda: False,
        ration: Ration = NO_RATION,
        ranks: Mapping[str, int] = MappingProxyType({}),
    ) -> None:
        self._board = board or Board(clock)
        self._lanes = lanes
        self._times = times
        self._clock = clock
        self._telling = Telling(telemetry, log, clock, group)
        self._log = log
        self._group = group
        self._void = False
        self._holding: Holding | None = None
        self._full: Mapping[Place, str] | None = None
        self._leaving = False
        self._tell_leaving = leaving
        self._bodies = bodies
        self._consumer = consume(self)
        self._desk = Desk(
            fetcher=self._consumer,
            works=lanes,
            lanes=lanes.count,
            streams=streams,
            sort=sort,
            limits=limits,
            clock=clock,
            chance=chance,
            alarm=self._telling.alarm,
            tell=self._tell,
            ration=ration,
            ranks=ranks,
        )
        self._commits = Commits(self._consumer, self._desk, self._telling, clock)

    @property
    def states(self) -> Mapping[Place, PartitionState]:
        """Return the partitions' states, for looking."""
        return self._desk.states

    def void(self) -> None:
        """Let all partitions read their watermarks again, soon; from any thread."""
        self._void = True

    def pauses(self, holding: Holding) -> None:
        """Let people's pauses be what *holding* says, from the next turn on; from any thread."""
        self._holding = holding

    def crowds(self, full: Mapping[Place, str]) -> None:
        """Let partitions behind whose parked keys too much waits stand still from the next turn on; from any thread."""
        self._full = full

    def abort(self, why: str) -> None:
        """Let the process stop with an error, soon; from any thread."""
        self._desk.stop = self._desk.stop or why

    def run(self, stop: StopSign) -> None:
        """
        Read and deal with records until *stop* is set; then finish what runs, commit and leave the group.

        Raises:
            PackhorseError: The process must stop: a handler asked for it, or there is no safe way on.
        """
        self._consumer.join()
        try:
            self._lanes.start()
            while not stop.is_set() and self._desk.stop is None:
                self._turn()
        finally:
            self._leave()
        if self._desk.stop is not None:
            raise PackhorseError(f"processor {self._group} stopped: {self._desk.stop}")

    def assigned(self, partitions: Assignment) -> None:
        """Take partitions over, unless we leave; called from inside the poll."""
        if self._leaving:
            return
        self._board.vitals.assigned()
        if partitions:
            self._log.info("partitions assigned", group=self._group, partitions=_names(partitions))
        self._desk.assigned(partitions)

    def revoked(self, partitions: Assignment) -> None:
        """Finish and commit what is to be given back; called from inside the poll, bounded."""
        if partitions:
            self._log.info("partitions revoked", group=self._group, partitions=_names(partitions))
        self._finish(partitions, self._times.revoke)
        self._desk.remove(partitions)

    def lost(self, partitions: Assignment) -> None:
        """Forget partitions that are somebody else's by now; nothing is committed for them."""
        self._log.warning("partitions lost", group=self._group, partitions=_names(partitions))
        self._desk.remove(partitions)
        self._lanes.cancel(*partitions)

    def _turn(self) -> None:
        self._board.turned(self._desk.samples)
        self._telling.turned()
        if (holding := self._holding) is not None:
            self._holding = None
            self._desk.pauses(holding)
        if (crowds := self._full) is not None:
            self._full = None
            self._desk.crowds(crowds)
        full = self._desk.idle <= 0
        self._take_reports(BUSY_WAIT if full else 0.0)
        wait = 0.0 if full else BUSY_WAIT if self._desk.busy else IDLE_WAIT
        polled = self._consumer.poll(wait, MOST_RECORDS)
        for place, records in polled.records.items():
            self._desk.fetched(place, records)
        for trouble in polled.troubles:
            self._trouble(trouble)
        self._commits.take(polled.commits)
        if self._void:
            self._void = False
            self._desk.voided()
        self._desk.tick()
        self._desk.dispatch()

    def _take_reports(self, wait: float) -> None:
        """Take all reports that are there, and give the lanes that have ended something to do; wait up to *wait* s for the first."""
        try:
            report = self._lanes.reports.get(timeout=wait) if wait else self._lanes.reports.get_nowait()
            while True:
                self._desk.reported(report)
                self._desk.dispatch()
                report = self._lanes.reports.get_nowait()
        except Empty:
            return

    def _trouble(self, trouble: Trouble) -> None:
        self._telling.trouble(trouble)
        if trouble.kind == "fatal":
            raise BrokerUnavailable(f"the client can't go on: {trouble.text}; start the processor again")
        if trouble.kind == "forbidden":
            raise NotReady(f"group {self._group}: {trouble.text}; grant this client read on group and topics")
        if trouble.kind == "out-of-range" and trouble.topic is not None and trouble.partition is not None:
            self._desk.fetch_stopped((trouble.topic, trouble.partition), trouble.text)

    def _finish(self, places: Sequence[Place], wait: float) -> None:
        """Let what runs in *places* end, up to *wait* seconds, then give it up; commit what is durable; inside the poll."""
        self._end_what_runs(places, wait)
        self._commits.send(self._desk.positions(places))

    def _end_what_runs(self, places: Sequence[Place], wait: float) -> None:
        """
        Begin nothing more in *places* and wait for what runs; bodies of jobs are waited for at the end of the process alone.

        A lease says whose a job is, so its partition may go while it runs. At the end they are waited for whosever that is by now.
        """
        self._desk.drain(places)
        deadline, given_up = self._clock.monotonic() + wait, False
        while (mine := self._running(places)) or (self._leaving and self._bodies()):
            if self._clock.monotonic() >= deadline:
                if given_up:
                    break
                self._give_up(mine)
                deadline, given_up = self._clock.monotonic() + MARK_WAIT, True
            self._take_reports(BUSY_WAIT)
            self._board.turned(self._desk.samples)

    def _running(self, places: Sequence[Place]) -> list[Place]:
        """Return those of *places* that are waited for."""
        busy = [place for place in self._desk.busy if place in places]
        return [place for place in busy if self._leaving or not self._desk.runs_jobs_alone(place)]

    def _give_up(self, places: Sequence[Place]) -> None:
        self._log.warning(
            "time is over: what runs gets no outcome and will be delivered again", partitions=_names(places)
        )
        self._desk.give_up(places)
        self._lanes.cancel(*places)

    def _leave(self) -> None:
        """Finish, commit and leave; whatever goes wrong before, the group is left and the client closed."""
        self._leaving = True
        self._board.vitals.leave()
        self._tell_leaving()
        try:
            places = list(self._desk.states)
            self._end_what_runs(places, self._times.drain)
            self._commits.finish(self._desk.positions(places))
            self._desk.remove(places)
        finally:
            self._close()

    def _close(self) -> None:
        if not self._consumer.close(LEAVE_WAIT):
            self._log.warning(
                "the group was not left in time; its partitions wait for the end of the session",
                group=self._group,
            )
        self._lanes.stop(wait=1.0)

    def _tell(self, told: Told) -> None:
        """Say that a handler is stopped, or takes messages again, to the log and in the member's status."""
        self._telling.stopped(told)
        now = self._clock.monotonic()
        self._board.say("stopped handlers", [one.told for one in self._desk.gates.stops.stopped(now=now)])


def _names(partitions: Sequence[Place]) -> str:
    return ", ".join(f"{topic}[{partition}]" for topic, partition in partitions)
