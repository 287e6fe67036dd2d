"""The order of what happens, and that counting it in two ways gives the same."""

import hashlib
from collections import Counter

from tests.support.flights import AIRPORTS, LINES

from examples.flights.flights import Flight, Zones, read_flights
from examples.flights.recount import recount
from examples.flights.timeline import Step, in_order, movements_of, plans


def flights() -> list[Flight]:
    return list(read_flights(LINES, Zones(AIRPORTS.splitlines())))


def test_a_flight_departs_before_it_arrives_and_a_cancelled_one_does_neither() -> None:
    steps = {flight.id: [movement.step for movement in movements_of(flight)] for flight in flights()}
    assert steps["2013-01-01-UA1545-EWR"] == [Step.DEPARTED, Step.ARRIVED]
    assert steps["2013-01-01-EV4204-EWR"] == [Step.DEPARTED]
    assert steps["2013-01-02-AA133-JFK"] == [Step.CANCELLED]


def test_movements_come_in_time_order_whatever_the_order_of_the_lines() -> None:
    forward, backward = in_order(flights()), in_order(reversed(flights()))
    assert forward == backward
    assert [movement.at for movement in forward] == sorted(movement.at for movement in forward)


def test_each_day_has_its_plan() -> None:
    days = Counter(flight.day for flight in flights())
    assert [(day, len(planned)) for day, planned in plans(flights())] == sorted(days.items())


def test_the_recount_agrees_with_the_flights() -> None:
    """The rules are kept twice, by different code: a change of one of the two is seen here."""
    airports, aircraft = recount(LINES, AIRPORTS.splitlines())
    read = flights()
    for tail, figures in aircraft.items():
        own = [flight for flight in read if flight.tail_number == tail]
        under_way = [f.arrived_at - f.departed_at for f in own if f.arrived_at and f.departed_at]
        assert figures["minutes_under_way"] == sum(span.total_seconds() for span in under_way) // 60
        assert figures["minutes_in_air"] == sum(flight.air_minutes or 0 for flight in own)
        assert figures["planned"] == len(own)
        assert figures["chain"] == chain_of(tail, read)
    assert (aircraft["N14228"]["links_kept"], aircraft["N14228"]["links_broken"]) == (2, 0)
    assert airports["EWR"]["departures"] == sum(f.origin == "EWR" and f.departed_at is not None for f in read)
    assert airports["BOS"]["arrival_delay_minutes"] == sum(
        flight.arrival_delay or 0 for flight in read if flight.destination == "BOS"
    )


def chain_of(tail: str, read: list[Flight]) -> str:
    chain = ""
    for movement in in_order(flight for flight in read if flight.tail_number == tail):
        chain = hashlib.sha256(f"{chain}{movement.step} {movement.flight.id}".encode()).hexdigest()
    return chain
