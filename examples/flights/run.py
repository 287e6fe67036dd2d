"""The demo from end to end: surroundings, writers, trouble, calm, and the reckoning."""

import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import psycopg

from examples.common.children import Children
from examples.common.surroundings import Surroundings, surroundings
from examples.flights import dataset, sql
from examples.flights.flights import Flight, Zones, read_flights
from examples.flights.messages import FlightScheduled
from examples.flights.recount import recount
from examples.flights.rehearsal import Rehearsal, cast_of
from examples.flights.serving.loop import heed, serve
from examples.flights.serving.opening import LINKS_VARIABLE, commands
from examples.flights.show import Screen
from examples.flights.standing import Lookout
from examples.flights.surroundings import FIGURES, prepare
from examples.flights.timeline import Movement, in_order, plans
from examples.flights.verify import (
    Check,
    check_account,
    check_figures,
    check_order,
    check_poison,
    check_refused,
    check_waiting,
    read_figures,
)
from examples.flights.writers import Writers
from packhorse.core.errors import InfrastructureError, UsageError

CALM = 1_000
"""Most movements that are written at a steady pace at the end, to measure the latency without a backlog."""
CALM_PER_SECOND = 125.0
_LOOK = 0.1  # seconds between two looks at how it stands
_STUCK = 120.0  # seconds without any change after which the demo gives up


class Stuck(InfrastructureError):
    """Nothing moves any more; says how it stands."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """
    What a person may choose.

    Attributes:
        flights: How many, from the first of the file on.
        folder: Where the stack and the logs lie, absolute.
        keep: Leave the stack running at the end, to look around.
        serve: Go on after the reckoning, with the console, until somebody ends it.
    """

    flights: int = 20_000
    folder: Path
    keep: bool = False
    serve: bool = False

    def __post_init__(self) -> None:
        if not 1 <= self.flights <= dataset.ROWS:
            raise UsageError(f"--flights {self.flights}: 1 to {dataset.ROWS:,} are allowed")


def run(options: Options, screen: Screen) -> bool:
    """
    Run the demo and return whether everything adds up.

    Raises:
        PackhorseError: It could not be run to its end; the text says what to do.
    """
    if not dataset.is_cached():
        screen.say("downloading the flights of 2013, 9 MB, once for this user")
    archive = dataset.fetch()
    screen.say("reading the data")
    flights = _first(options.flights, archive)
    days = {flight.day for flight in flights}
    screen.say(f"{len(flights):,} flights read, {min(days)} to {max(days)}")
    around, good = _in_surroundings(options, screen, flights, archive)
    _invite(around, options, screen)
    return good


def _in_surroundings(
    options: Options, screen: Screen, flights: Sequence[Flight], archive: Path
) -> tuple[Surroundings, bool]:
    """Run the demo on its services, which end with it unless they are kept, and return where they are and whether all adds up."""
    namespace = FlightScheduled.__packhorse__.namespace
    with ExitStack() as undo:
        around = undo.enter_context(
            surroundings(options.folder, screen, name="flights", namespace=namespace, keep=options.keep)
        )
        more = {LINKS_VARIABLE: "1"} if options.serve else {}
        children = undo.enter_context(Children(options.folder, {**around.variables, **more}, app=FIGURES))
        screen.say("making tables, schemas and topics")
        prepare(around, children)
        good = _reckoned(around, children, screen, flights, archive)
        if options.serve and good:
            stop = threading.Event()
            heed(stop)
            serve(around, children, screen, _after(options.flights, archive), stop=stop)
    return around, good


def _reckoned(
    around: Surroundings, children: Children, screen: Screen, flights: Sequence[Flight], archive: Path
) -> bool:
    with Demo(around, children, screen, flights) as demo:
        demo.run()
        screen.say("all is quiet; now everything is counted again, straight from the data")
        checks = demo.checks(archive)
        screen.table(checks)
        screen.rows(demo.measured)
    good = all(check.good for check in checks)
    screen.lines("Everything adds up." if good else "Something differs: see above.")
    return good


def _first(count: int, archive: Path) -> list[Flight]:
    return list(islice(_flights(archive), count))


def _after(count: int, archive: Path) -> Iterator[Flight]:
    return islice(_flights(archive), count, None)


def _flights(archive: Path) -> Iterator[Flight]:
    zones = Zones(dataset.airports_csv(archive))
    return read_flights(dataset.flights_csv(archive), zones)


def _invite(around: Surroundings, options: Options, screen: Screen) -> None:
    if around.own or options.keep:  # or its database is gone
        screen.lines(
            "To open the console on what this has made, in a shell:",
            *commands(around, options.folder, runs=options.keep),
        )
    if not options.serve:
        screen.lines(
            "`make demo SERVE=1` shows it alive: traffic, failures, jobs and the console, until Ctrl-C."
        )


class Demo:
    """One run: everything between the first event and the reckoning."""

    def __init__(
        self, around: Surroundings, children: Children, screen: Screen, flights: Sequence[Flight]
    ) -> None:
        self._children = children
        self._screen = screen
        self._flights = flights
        self._movements = in_order(flights)
        self._connection = psycopg.connect(around.database_url, autocommit=True)
        self._lookout = Lookout(self._connection)
        self._writers = Writers(around.database_url, plans(flights))
        self._rehearsal = Rehearsal(children, self._connection, screen.say)
        self._pause = threading.Event()
        self._measured: list[tuple[str, str]] = []

    def __enter__(self) -> "Demo":
        return self

    def __exit__(self, *error: object) -> None:
        self._writers.stop()
        self._connection.close()

    def run(self) -> None:
        """
        Write all events and return when each has come to its end.

        First all is well; then, as fast as it goes, come outage, refusal, poison and kills; at the end a steady pace, so that
        the latency is that of a message and not of a backlog.

        Raises:
            ChildFailed: The relay or the processor has ended by itself.
            Stuck: Nothing has changed for two minutes.
        """
        opening, busy, calm = _parts(self._movements)
        self._children.start_relay()
        self._children.start_processor()
        began = self._screen.seconds
        self._screen.say("relay and processor run; the airline begins to work")
        self._wait_for(self._writers.start(opening), quiet=False)
        self._rehearsal.begin(cast_of(busy), total=self._expected - len(calm))
        self._wait_for(self._writers.start(busy, all_plans=True))
        took, last = self._screen.seconds - began, self._last_seq()
        self._screen.say(f"quiet after {took:.1f} s; now {len(calm):,} more, {CALM_PER_SECOND:g} a second")
        self._wait_for(self._writers.trickle(calm, per_second=CALM_PER_SECOND))
        count = self._expected - len(calm)
        self._measured = [
            (
                "at once, in a backlog",
                f"{count:,} messages, {count / took:,.0f} a second; {self._latency(0, last)}",
            ),
            (
                "at a steady pace",
                f"{len(calm):,}, {CALM_PER_SECOND:g} a second; {self._latency(last, self._last_seq())}",
            ),
            ("trouble", self._trouble()),
        ]

    def checks(self, archive: Path) -> list[Check]:
        """Return everything that must be so at the end, checked."""
        lines = islice(dataset.flights_csv(archive), len(self._flights) + 1)
        airports, aircraft = recount(lines, dataset.airports_csv(archive))
        return [
            check_figures("airports", read_figures(self._connection, sql.AIRPORTS, "airport"), airports),
            check_figures("aircraft", read_figures(self._connection, sql.AIRCRAFT, "tail_number"), aircraft),
            check_account(self._connection, expected=self._expected, poison=len(self._rehearsal.poison)),
            check_order(self._connection),
            check_waiting(self._connection),
            *check_refused(self._connection, self._rehearsal.refused),
            *check_poison(self._connection, self._rehearsal.poison),
        ]

    @property
    def measured(self) -> list[tuple[str, str]]:
        """Return what was measured, names and values."""
        return self._measured

    @property
    def _expected(self) -> int:
        return len(self._flights) + len(self._movements) + len(self._rehearsal.poison)

    def _wait_for(self, writing: Future[None], *, quiet: bool = True) -> None:
        """Return when *writing* is done and, if *quiet*, every message has come to its end and all trouble is over."""
        seen: object = None
        changed_at = self._screen.seconds
        while True:
            self._children.check()
            standing = self._lookout.look()
            written = self._writers.written + len(self._rehearsal.poison)
            trouble = self._rehearsal.go_on(standing)
            self._screen.show(self._expected, written, standing)
            if writing.done():
                writing.result()
                if not quiet or (not trouble and standing.finished == written):
                    return
            if (now := (standing, written)) != seen:
                seen, changed_at = now, self._screen.seconds
            if self._screen.seconds - changed_at > _STUCK:
                raise Stuck(
                    f"nothing has changed for {_STUCK:g} s: {written:,} written, {standing}; see the logs"
                )
            self._pause.wait(_LOOK)

    def _last_seq(self) -> int:
        (seq,) = self._connection.execute(sql.LAST_SEQ).fetchone() or (0,)
        return int(seq)

    def _latency(self, after: int, upto: int) -> str:
        (by_commit,) = self._connection.execute(sql.COMMIT_TIMES).fetchone() or (False,)
        statement = sql.LATENCY if by_commit else sql.LATENCY_OF_INSERTS
        (found,) = self._connection.execute(statement, {"after": after, "upto": upto}).fetchone() or (None,)
        p50, p99 = found or (0.0, 0.0)
        points = "commit to commit" if by_commit else "insert to insert"
        return f"p50 {p50 * 1000:,.0f} ms, p99 {p99 * 1000:,.0f} ms from {points} by the database's clock"

    def _trouble(self) -> str:
        standing = self._lookout.look()
        topic = {"topic": FlightScheduled.__packhorse__.topic}
        (again,) = self._connection.execute(sql.PUBLISHED_AGAIN, topic).fetchone() or (0,)
        return (
            f"{standing.failed_attempts} failed attempts; after the kills {again:,} messages were published again, "
            f"{standing.duplicates:,} deliveries dropped as duplicates"
        )


def _parts(
    movements: Sequence[Movement],
) -> tuple[Sequence[Movement], Sequence[Movement], Sequence[Movement]]:
    """Part *movements* into those before the trouble, those in it, and those after it."""
    calm = len(movements) - min(CALM, len(movements) // 10)
    opening = calm // 10
    return movements[:opening], movements[opening:calm], movements[calm:]
