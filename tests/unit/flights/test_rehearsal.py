"""Trouble comes to aircraft that are certain to meet it."""

from tests.support.flights import AIRPORTS, PLAIN, SAME_AIRCRAFT, SAME_AIRCRAFT_AGAIN
from tests.support.flights import HEADER as FLIGHTS_HEADER

from examples.flights.flights import Zones, read_flights
from examples.flights.rehearsal import OUTAGE_AIRCRAFT, REFUSED_BEHIND, cast_of
from examples.flights.timeline import Movement, in_order

TAILS = [f"N{number}" for number in range(1, 7)]


def movements(*flights_each: int) -> list[Movement]:
    """Return the movements of an aircraft for each number, with so many flights, of two movements each."""
    own = [SAME_AIRCRAFT, SAME_AIRCRAFT_AGAIN, PLAIN]
    lines = [
        own[flight % 3].replace("N14228", tail).replace(",UA,", f",UA,{flight}")
        for tail, count in zip(TAILS, flights_each, strict=False)
        for flight in range(count)
    ]
    return in_order(read_flights([FLIGHTS_HEADER, *lines], Zones(AIRPORTS.splitlines())))


def test_the_busiest_meet_the_outage_and_the_next_is_refused() -> None:
    cast = cast_of(movements(1, 4, 3, 2, 5))
    assert cast.out == ["N5", "N2", "N3"]
    assert len(cast.out) == OUTAGE_AIRCRAFT
    assert (cast.refused, cast.behind) == ("N4", 3)


def test_no_more_is_waited_for_behind_the_refused_one_than_surely_comes() -> None:
    """Fails when the demo waits for messages that are never written: it would stand still at its end."""
    assert cast_of(movements(9, 9, 9, 1)).behind == 1
    assert cast_of(movements(9, 9, 9, 8)).behind == REFUSED_BEHIND


def test_with_too_few_aircraft_nobody_is_refused() -> None:
    assert cast_of(movements(1, 1, 1)).refused is None
