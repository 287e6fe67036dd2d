"""
Several writers that work at once: the planner tells of days, the desks of what happens to flights.

An aircraft belongs to one desk, which takes what has piled up there into one transaction, in its order. The planner
writes about the same aircraft at the same time: it is the key locks of `operations` that make one sequence of it.
"""

import queue
import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import date
from zlib import crc32

import psycopg

from examples.flights.flights import Flight
from examples.flights.operations import publish_plan, record
from examples.flights.timeline import Movement
from packhorse.core.clock import SYSTEM_CLOCK

DESKS = 3
PILE = 16
"""Most movements that a desk writes in one transaction."""
WAITING = 200
"""Most movements that wait for one desk."""
_LOOK_UP = 0.2  # seconds after which one who waits looks whether to stop


class Stopped(Exception):
    """The writers were told to stop, or another one failed."""


class Writers:
    """
    The planner and the desks, each on a connection of its own.

    Attributes:
        written: Events whose transactions have committed; may be read from any thread.
    """

    def __init__(self, database_url: str, plans: Sequence[tuple[date, list[Flight]]]) -> None:
        self.written = 0
        self._database_url = database_url
        self._counting = threading.Lock()
        self._stop = threading.Event()
        self._planner = _Planner(plans, self._publish)
        self._pool = ThreadPoolExecutor(DESKS + 1, thread_name_prefix="writer")

    def start(self, movements: Iterable[Movement], *, all_plans: bool = False) -> Future[None]:
        """
        Begin to write *movements*, as fast as it goes; what is returned is done when they are committed.

        The plan of a day is committed before the first movement of its flights is begun; it is written while the
        movements of the day before are. With *all_plans* those of days without movements come as well.
        """
        return self._pool.submit(self._write, movements, all_plans)

    def trickle(self, movements: Sequence[Movement], *, per_second: float) -> Future[None]:
        """Begin to write *movements* at a steady pace, in a transaction each; all plans are published."""
        return self._pool.submit(self._trickle, movements, 1 / per_second)

    def stop(self) -> None:
        """Stop between two transactions and wait for that; what was not begun is left out."""
        self._stop.set()
        self._planner.close()
        self._pool.shutdown(wait=True, cancel_futures=True)

    def _write(self, movements: Iterable[Movement], all_plans: bool) -> None:
        desks = [_Desk(self._stop) for _ in range(DESKS)]
        working = [self._pool.submit(self._work_at, desk) for desk in desks]
        try:
            self._hand_out(movements, desks)
            if all_plans:
                self._planner.publish_the_rest()
            for desk in desks:
                desk.close()
        except Stopped:
            pass  # why is known to whoever stopped, or to the desk that failed
        except BaseException:
            self._stop.set()
            raise
        failures = [error for work in working if (error := work.exception()) is not None]
        if failures:
            raise min(failures, key=lambda error: isinstance(error, Stopped))

    def _hand_out(self, movements: Iterable[Movement], desks: Sequence["_Desk"]) -> None:
        for movement in movements:
            self._planner.has_published(movement.flight.day)
            desks[crc32(movement.flight.key.encode()) % len(desks)].put(movement)

    def _work_at(self, desk: "_Desk") -> None:
        try:
            with self._connection() as connection:
                while movements := desk.take():
                    record(connection, movements)
                    self._count(len(movements))
        except BaseException:
            self._stop.set()
            raise

    def _trickle(self, movements: Sequence[Movement], pace: float) -> None:
        with self._connection() as connection:
            began = SYSTEM_CLOCK.monotonic()
            for number, movement in enumerate(movements):
                if self._stop.wait(max(0.0, began + number * pace - SYSTEM_CLOCK.monotonic())):
                    raise Stopped
                record(connection, [movement])
                self._count(1)

    def _publish(self, flights: Sequence[Flight]) -> None:
        with self._connection() as connection:
            publish_plan(connection, flights)
        self._count(len(flights))

    def _connection(self) -> psycopg.Connection[tuple[object, ...]]:
        return psycopg.connect(self._database_url, autocommit=True)

    def _count(self, events: int) -> None:
        with self._counting:
            self.written += events


class _Desk:
    """What waits to be written at one desk."""

    def __init__(self, stop: threading.Event) -> None:
        self._stop = stop
        self._waiting: queue.Queue[Movement | None] = queue.Queue(WAITING)

    def put(self, movement: Movement) -> None:
        """Add to the pile; blocks while it is as high as it may be."""
        self._put(movement)

    def close(self) -> None:
        """Say that nothing more comes."""
        self._put(None)

    def take(self) -> list[Movement]:
        """Return what lies here, at most PILE; blocks while it is nothing; empty at the end."""
        taken: list[Movement] = []
        while len(taken) < PILE:
            if taken and self._waiting.empty():
                return taken
            if (movement := self._get()) is None:
                self._waiting.put(None)  # for the next call: this one may return a last pile
                return taken
            taken.append(movement)
        return taken

    def _put(self, movement: Movement | None) -> None:
        while not self._stop.is_set():
            try:
                return self._waiting.put(movement, timeout=_LOOK_UP)
            except queue.Full:
                continue
        raise Stopped

    def _get(self) -> Movement | None:
        while not self._stop.is_set():
            try:
                return self._waiting.get(timeout=_LOOK_UP)
            except queue.Empty:
                continue
        raise Stopped


class _Planner:
    """Publish the plans one after another, one day ahead of what happens."""

    def __init__(
        self, plans: Sequence[tuple[date, list[Flight]]], publish: Callable[[Sequence[Flight]], None]
    ) -> None:
        self._rest = iter(plans)
        self._publish = publish
        self._published: dict[date, Future[None]] = {}
        self._asked_for: set[date] = set()
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="planner")

    def has_published(self, day: date) -> None:
        """Return when the plan of *day* is committed; asked for a day the first time, begin the next one too."""
        if day in self._asked_for:
            return
        while day not in self._published and self._begin_next():
            pass
        self._published[day].result()
        self._begin_next()
        self._asked_for.add(day)

    def publish_the_rest(self) -> None:
        """Return when every plan is committed."""
        while self._begin_next():
            pass
        for published in self._published.values():
            published.result()

    def close(self) -> None:
        """Wait for the plan in hand."""
        self._pool.shutdown(wait=True, cancel_futures=True)

    def _begin_next(self) -> bool:
        for day, flights in self._rest:
            self._published[day] = self._pool.submit(self._publish, flights)
            return True
        return False
