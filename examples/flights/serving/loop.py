"""The demo that goes on after the reckoning, until somebody ends it."""

import os
import signal
import threading
from collections.abc import Iterable
from types import FrameType
from typing import Any

import psycopg
from psycopg.rows import dict_row

from examples.common.children import CHECKOUT, Children
from examples.common.surroundings import Surroundings
from examples.flights.flights import Flight
from examples.flights.serving import sql
from examples.flights.serving.asking import REPORTS, Desk
from examples.flights.serving.opening import Console, shell
from examples.flights.serving.schedule import Agenda, Pace
from examples.flights.serving.tidying import Tidier
from examples.flights.serving.traffic import Traffic
from examples.flights.serving.unrest import Unrest
from examples.flights.show import Screen
from packhorse.core.clock import SYSTEM_CLOCK

WORK = "examples.flights.serving.reports:app"
SEED = 2013
_AVRO = CHECKOUT / "examples" / "flights" / "serving" / "avro"
_LOOK = 0.25  # seconds between two looks at what is due
_SHOW = 2.0  # seconds between two looks at what is open
TRY = (
    "Look at what stops under Quarantine. Redrive a message that says refused or attempts-exhausted, a minute after it came: what",
    "refused it is mended by then, and what waits behind it follows. Discard one of the poison. Redrive a job whose figures were",
    "not closed, say of an uncertain one that its letter was sent, cancel one that runs. Pause the group figures, and resume it.",
)


def serve(
    around: Surroundings,
    children: Children,
    screen: Screen,
    flights: Iterable[Flight],
    *,
    stop: threading.Event,
) -> None:
    """
    Go on with traffic, trouble and jobs, and a console to see them, until *stop* is set; what it starts is among *children*.

    Raises:
        ChildFailed: A child has ended by itself.
        psycopg.Error: The database is away.
    """
    screen.say("making ready what goes on: reports as jobs, more flights, and the console")
    children.run("schemas", "register", "--avro-dir", str(_AVRO))
    children.run("topics", "apply", WORK)
    with psycopg.connect(around.database_url, autocommit=True) as connection:
        connection.execute(sql.TABLES)
        children.start("reports", "processor", "run", WORK)
        going = _Going(connection, children, screen, flights)
        screen.lines("Packhorse's commands work on it in another shell, after:", *shell(around))
        began = SYSTEM_CLOCK.monotonic()
        while not stop.wait(_LOOK):
            going.look(SYSTEM_CLOCK.monotonic() - began)
        going.end()
    screen.gone()
    screen.say("stopping; what is in hand is finished")


class _Going:
    """All that goes on, look by look."""

    def __init__(
        self,
        connection: psycopg.Connection[Any],
        children: Children,
        screen: Screen,
        flights: Iterable[Flight],
    ) -> None:
        self._connection = connection
        self._children = children
        self._screen = screen
        self._agenda, self._pace = Agenda(SEED), Pace()
        self._traffic = Traffic(connection, flights)
        self._traffic.begin()
        self._unrest = Unrest(connection, children, self._traffic, screen.happened)
        self._unrest.heal()
        self._desk = Desk(connection, SEED)
        self._tidier = Tidier(connection, children, screen.happened)
        self._console = Console(children)
        self._told_links = 0
        self._show_at = 0.0
        self._told_over = False

    def look(self, now: float) -> None:
        """Do what is due at *now*, in seconds since the beginning."""
        self._children.check()
        self._write(now)
        for happening in self._agenda.due(now):
            if happening.kind in REPORTS:
                self._desk.ask(happening)
            else:
                self._unrest.begin(happening, now=now)
        self._unrest.go_on(now=now)
        self._tidier.go_on(now=now)
        self._tell_links()
        if now >= self._show_at:
            self._show_at = now + _SHOW
            self._screen.going(self._standing(), self._unrest.under_way)

    def end(self) -> None:
        """Leave nothing behind that would go on failing."""
        self._unrest.heal()

    def _write(self, now: float) -> None:
        if not self._traffic.is_over:
            self._traffic.write(self._pace.owed(now))
        elif not self._told_over:
            self._told_over = True
            self._screen.say("the year is over: no flight is left; reports and poison still come")

    def _tell_links(self) -> None:
        for link in self._console.links():
            self._told_links += 1
            self._screen.lines(
                "Open the console; the link signs in once, within 15 minutes:", "", f"  {link}", ""
            )
            if self._told_links == 1:
                self._screen.lines(*TRY, "", "Ctrl-C ends it all; what was made stays until the next demo.")

    def _standing(self) -> str:
        with self._connection.cursor(row_factory=dict_row) as cursor:
            found = cursor.execute(sql.OPEN).fetchone() or {}
        day = "the year is over" if self._traffic.is_over else f"flights of {self._traffic.day or 'tomorrow'}"
        return (
            f"{day}; {self._traffic.written:,} messages since the reckoning; {found['retrying']} wait in tiers, "
            f"{found['quarantined']} in quarantine with {found['behind']} behind; {found['jobs']} jobs on their way, "
            f"{found['stopped']} wait for a person"
        )


def heed(stop: threading.Event) -> None:
    """Have SIGINT and SIGTERM set *stop* from now on, and a second one leave at once, also while all is taken down."""

    def first(number: int, _: FrameType | None) -> None:
        del number
        for each in (signal.SIGINT, signal.SIGTERM):
            signal.signal(each, _leave)
        stop.set()

    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, first)


def _leave(number: int, _: FrameType | None) -> None:
    os._exit(128 + number)  # the guards end what still runs
