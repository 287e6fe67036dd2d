"""
Beside the loop, on a connection of its own: read each second what people have paused, and write every few seconds that this
member lives and how it is.
"""

import os
import socket
import threading
from collections.abc import Callable, Sequence
from datetime import datetime
from importlib.metadata import version

from packhorse.core.backoff import Backoff, delay_after
from packhorse.core.errors import PackhorseError
from packhorse.processor.pausing.pauses import Pauses
from packhorse.processor.pausing.table import PauseTable
from packhorse.processor.plant import Plant
from packhorse.processor.running.faults import describe
from packhorse.processor.storing import postgres
from packhorse.processor.watching.member_row import EVERY as ROW_EVERY
from packhorse.processor.watching.member_row import MemberTable, status_of
from packhorse.processor.watching.stacks import stack_of
from packhorse.processor.watching.stall import Stall, Subject

VERSION = version("packhorse")
"""Written with each row, so that people see which versions run beside each other."""
EVERY = 1.0
"""Seconds between two looks: so late a pause may come."""

Holding = Callable[[tuple[str, int]], bool]


class Roster:
    """
    One thread and one connection; a database that is away stops neither: what was last read of pauses goes on to hold.

    *pause* is given to the loop whenever what people have paused has changed.
    """

    def __init__(
        self, plant: Plant, *, pause: Callable[[Holding], None], stalls: Callable[[], Sequence[Stall]]
    ) -> None:
        self._plant = plant
        self._pause = pause
        self._stalls = stalls
        schema, group = plant.store.schema, plant.app.group
        self._pauses = PauseTable(store=plant.store)
        self._members = MemberTable(schema=schema, group=group)
        self._connection: postgres.GuardedConnection | None = None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="packhorse-roster", daemon=True)
        self._row_at = 0.0
        self._told: tuple[Subject, ...] = ()
        self._started_at: datetime = plant.clock.now()

    def start(self) -> None:
        """
        Read what is paused, so that it holds before the first partition is assigned; then start the thread.

        Raises:
            DatabaseUnavailable, NotReady: The database does not answer, or a table is missing.
        """
        self.look()
        self._thread.start()
        self._plant.board.vitals.expect(self._thread)

    def stop(self) -> None:
        """Look no more, and take this member's row away; bounded, and a row that stays counts as dead soon."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(3.0)
        if self._connection is None or self._thread.is_alive():
            return
        try:
            postgres.run(self._connection, self._members.gone(self._plant.member))
        except PackhorseError as error:
            self._plant.log.warning("this member's row stays", cause=str(error))
        finally:
            self._connection.end()

    def look(self) -> None:
        """
        Read what is paused, and write the row if it is time or something else stands still than before.

        Raises:
            DatabaseUnavailable, NotReady: What was read before goes on to hold.
        """
        connection = self._held()
        found = postgres.run(connection, self._pauses.pauses())
        self._plant.board.vitals.answered()
        if found != self._plant.board.pauses:
            self._changed(self._plant.board.pauses, found)
        stalls = self._stalls()
        subjects = tuple(stall.subject for stall in stalls)
        if self._plant.clock.monotonic() >= self._row_at or subjects != self._told:
            self._row_at, self._told = self._plant.clock.monotonic() + ROW_EVERY, subjects
            self._write(connection, stalls)

    def _changed(self, before: Pauses, found: Pauses) -> None:
        plant, board = self._plant, self._plant.board
        for row in found.rows:
            if row not in before.rows:
                plant.log.warning("paused", group=plant.app.group, what=row.what, by=row.by, why=row.why)
        for row in before.rows:
            if row not in found.rows:
                plant.log.info("resumed", group=plant.app.group, what=row.what)
        board.pauses = found
        self._row_at = 0.0
        self._pause(lambda place: bool(board.held(*place)))

    def _write(self, connection: postgres.GuardedConnection, stalls: Sequence[Stall]) -> None:
        plant, board = self._plant, self._plant.board
        status = status_of(
            board.samples,
            [(stall, () if stall.hand is None else stack_of(stall.hand)) for stall in stalls],
            board.vitals.health(),
            now=plant.clock.monotonic(),
            facts={"version": VERSION, **board.facts},
        )
        steps = self._members.seen(
            plant.member,
            host=socket.gethostname(),
            pid=os.getpid(),
            started_at=self._started_at,
            status=status,
        )
        postgres.run(connection, steps)

    def _held(self) -> postgres.GuardedConnection:
        if self._connection is None or self._connection.closed:
            self._connection = postgres.connect(self._plant.conninfo)
        return self._connection

    def _watch(self) -> None:
        failures, policy = 0, Backoff(first=EVERY, longest=10.0)
        while not self._stop.wait(
            EVERY if not failures else delay_after(failures, policy, jitter=self._plant.chance.fraction())
        ):
            try:
                self.look()
                failures = 0
            except PackhorseError as error:
                failures += 1
                if failures == 1:
                    self._plant.log.warning(
                        "pauses can't be read; those known go on to hold", cause=str(error)
                    )
            except Exception as error:  # noqa: BLE001 a roster that died must not go unseen
                self._plant.broke(f"the roster met an error that nobody foresaw: {describe(error)}")
                break
