"""The rules for the holes in the data, one test each; the rows are lines of the real file unless they say otherwise."""

from datetime import UTC, datetime, timedelta

import pytest
from tests.support.flights import (
    AIRPORTS,
    DIVERTED,
    HAWAII,
    HAWAII_IN_SUMMER,
    HEADER,
    LANDED_AT_2400,
    LANDED_IN_NO_HOUR,
    LEFT_AT_2400,
    NEVER_ARRIVED,
    PAST_MIDNIGHT,
    PLAIN,
    SLIPPED_PAST_MIDNIGHT,
    WITHOUT_AIRCRAFT,
    row,
)

from examples.flights.flights import Zones, clock_time, flight_of, read_flights
from packhorse.core.errors import InvalidMessage

ZONES = Zones(AIRPORTS.splitlines())


def utc(day: int, hour: int, minute: int, *, month: int = 1) -> datetime:
    return datetime(2013, month, day, hour, minute, tzinfo=UTC)


def test_a_plain_flight_is_read_in_greenwich_time() -> None:
    flight = flight_of(row(PLAIN), ZONES)
    assert (flight.id, flight.key, flight.day.isoformat()) == (
        "2013-01-01-UA1545-EWR",
        "N14228",
        "2013-01-01",
    )
    assert (flight.scheduled_departure, flight.departed_at) == (utc(1, 10, 15), utc(1, 10, 17))
    assert (flight.arrived_at, flight.arrival_delay, flight.departure_delay) == (utc(1, 14, 30), 11, 2)


def test_a_flight_without_tail_number_is_keyed_by_carrier_and_number() -> None:
    flight = flight_of(row(WITHOUT_AIRCRAFT), ZONES)
    assert (flight.tail_number, flight.key) == (None, "AA 133")


def test_2400_is_the_midnight_at_the_end_of_the_day() -> None:
    flight = flight_of(row(LANDED_AT_2400), ZONES)
    assert flight.arrived_at == utc(2, 5, 0)
    assert flight.arrival_delay == 23


def test_2400_after_a_delayed_departure_at_midnight_is_the_next_one() -> None:
    """No line of the file: departed at 00:00 and landed at 2400 is a day later, not the same moment."""
    late = row(LANDED_AT_2400, sched_dep_time="2355", dep_time="2400", dep_delay="5")
    assert flight_of(late, ZONES).arrived_at == utc(3, 5, 0)


def test_a_departure_at_2400_belongs_to_the_day_that_it_ends() -> None:
    flight = flight_of(row(LEFT_AT_2400), ZONES)
    assert (flight.departed_at, flight.arrived_at) == (utc(31, 4, 0, month=10), utc(31, 7, 27, month=10))
    assert (flight.departure_delay, flight.arrival_delay) == (1, -10)


def test_a_departure_may_slip_into_the_next_day() -> None:
    flight = flight_of(row(SLIPPED_PAST_MIDNIGHT), ZONES)
    assert (flight.departed_at, flight.arrived_at) == (utc(3, 5, 42), utc(3, 9, 18))
    assert (flight.day.isoformat(), flight.departure_delay, flight.arrival_delay) == ("2013-01-02", 43, 36)


def test_a_departed_flight_without_arrival_time_never_arrives() -> None:
    flight = flight_of(row(NEVER_ARRIVED), ZONES)
    assert (flight.departed_at, flight.arrived_at, flight.air_minutes) == (utc(2, 1, 16), None, None)
    assert flight.arrival_delay is None


def test_a_diverted_flight_arrives_and_counts_no_delay() -> None:
    flight = flight_of(row(DIVERTED), ZONES)
    assert (flight.arrived_at, flight.air_minutes, flight.arrival_delay) == (utc(2, 1, 34), None, None)


@pytest.mark.parametrize("airport", ["BQN", "PSE", "SJU", "STT"])
def test_an_airport_that_the_file_lacks_keeps_atlantic_time_all_year(airport: str) -> None:
    for month in (1, 7):
        assert datetime(2013, month, 1, tzinfo=ZONES.of(airport)).utcoffset() == timedelta(hours=-4)


def test_an_arrival_past_midnight_in_another_zone_finds_its_day() -> None:
    flight = flight_of(row(PAST_MIDNIGHT), ZONES)
    assert flight.arrived_at == utc(2, 8, 25)
    assert flight.arrival_delay == -20


def test_arrival_times_are_local_to_the_destination() -> None:
    flight = flight_of(row(HAWAII), ZONES)
    assert flight.arrived_at == utc(2, 6, 5)
    assert flight.arrival_delay == 21


def test_summer_time_is_kept_where_it_is_kept() -> None:
    flight = flight_of(row(HAWAII_IN_SUMMER), ZONES)
    assert (flight.departed_at, flight.arrived_at) == (utc(1, 14, 5, month=7), utc(2, 1, 27, month=7))
    assert flight.arrival_delay == 57


def test_an_hour_that_clocks_skip_is_told_in_winter_time() -> None:
    flight = flight_of(row(LANDED_IN_NO_HOUR), ZONES)
    assert (flight.departed_at, flight.arrived_at) == (utc(10, 4, 6, month=3), utc(10, 7, 3, month=3))
    assert flight.arrival_delay == 89


def test_a_cancelled_flight_has_a_plan_and_no_times() -> None:
    flight = flight_of(row(WITHOUT_AIRCRAFT), ZONES)
    assert (flight.departed_at, flight.arrived_at, flight.departure_delay) == (None, None, None)
    assert flight.scheduled_arrival == utc(3, 3, 10)


@pytest.mark.parametrize("text", ["2401", "1260", "2560", "-1"])
def test_what_no_clock_shows_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="no time of day"):
        clock_time(text)


def test_a_bad_line_is_named() -> None:
    lines = [HEADER, PLAIN, PLAIN.replace("EWR", "XXX")]
    with pytest.raises(InvalidMessage, match="airport 'XXX' has no time zone"):
        list(read_flights(lines, ZONES))
    lines = [HEADER, PLAIN, PLAIN.replace("515", "5x5")]
    with pytest.raises(InvalidMessage, match=r"line 3 of flights.csv: .*5x5"):
        list(read_flights(lines, ZONES))
