"""The demo's application, tested as a user tests one: a real database, and neither broker nor registry."""

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from tests.support.flights import AIRPORTS, LINES

from examples.flights import sql
from examples.flights.figures import app
from examples.flights.flights import Flight, Zones, read_flights
from examples.flights.messages import FlightArrived, FlightCancelled, FlightDeparted, FlightScheduled
from examples.flights.operations import departed, publish_plan, record
from examples.flights.recount import recount
from examples.flights.timeline import in_order, plans
from examples.flights.verify import check_figures, read_figures
from examples.flights.writers import Writers
from packhorse.core.errors import PackhorseError
from packhorse.processor import Outcome
from packhorse.testing import emitted, register_for_tests, run_handler

FLIGHTS = list(read_flights(LINES, Zones(AIRPORTS.splitlines())))


@pytest.fixture
def connection(database: str) -> Iterator[psycopg.Connection[Any]]:
    """A transaction with the demo's tables, which is rolled back."""
    with psycopg.connect(database) as opened:
        for tables in (sql.OPERATIONS_TABLES, sql.FIGURES_TABLES, sql.OUTAGE_TABLES):
            opened.execute(tables)
        register_for_tests(opened, FlightScheduled, FlightDeparted, FlightArrived, FlightCancelled)
        yield opened
        opened.rollback()


def test_what_operations_tell_adds_up_to_what_the_data_says(connection: psycopg.Connection[Any]) -> None:
    """Fails when a handler or an event leaves out or bends what a line of the data says."""
    publish_plan(connection, FLIGHTS)
    record(connection, in_order(FLIGHTS))
    for event in emitted(connection):
        assert event.message is not None
        assert run_handler(app, event.message, key=event.key, connection=connection).outcome is Outcome.DONE
    airports, aircraft = recount(LINES, AIRPORTS.splitlines())
    assert check_figures("airports", read_figures(connection, sql.AIRPORTS, "airport"), airports).good
    assert check_figures("aircraft", read_figures(connection, sql.AIRCRAFT, "tail_number"), aircraft).good


def test_each_event_has_its_aircraft_as_its_key(connection: psycopg.Connection[Any]) -> None:
    publish_plan(connection, FLIGHTS)
    told = emitted(connection, FlightScheduled)
    keys = {event.message.flight_id: event.key for event in told if event.message is not None}
    assert keys == {flight.id: flight.tail_number or "AA 133" for flight in FLIGHTS}


def test_what_is_rolled_back_was_never_told(connection: psycopg.Connection[Any]) -> None:
    publish_plan(connection, FLIGHTS)
    with pytest.raises(InterruptedError):
        record_and_fail(connection)
    assert {type(event.message) for event in emitted(connection)} == {FlightScheduled}
    assert connection.execute("SELECT DISTINCT state FROM airline.flight").fetchall() == [("planned",)]


def test_a_flight_over_no_distance_is_refused(connection: psycopg.Connection[Any]) -> None:
    handled = run_handler(app, without_distance(FLIGHTS[0]), key="N1", connection=connection)
    assert (handled.outcome, handled.reason) == (Outcome.QUARANTINE, "no-distance")


def test_writers_that_can_not_write_say_why_and_stop(database: str) -> None:
    """The database lacks the demo's tables; fails when a writer's error is swallowed, or leaves the others waiting."""
    writers = Writers(database, plans(FLIGHTS))
    try:
        with pytest.raises((psycopg.Error, PackhorseError)):
            writers.start(in_order(FLIGHTS)).result(timeout=30)
    finally:
        writers.stop()
    assert writers.written == 0


def record_and_fail(connection: psycopg.Connection[Any]) -> None:
    with connection.transaction():
        record(connection, in_order(FLIGHTS))
        raise InterruptedError


def without_distance(flight: Flight) -> FlightDeparted:
    event = departed(flight)
    return FlightDeparted(
        flight_id=event.flight_id,
        origin=event.origin,
        destination=event.destination,
        distance_miles=0,
        departed_at=event.departed_at,
        delay_minutes=event.delay_minutes,
    )
