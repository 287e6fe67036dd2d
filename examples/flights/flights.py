"""
A flight, and the rules that make one of a line of the data. Pure: text in, values out.

The rules for the holes in the data stand in README.md; each is named here where it is kept.
"""

import csv
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from typing import TypeVar
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from packhorse.core.errors import InvalidMessage, NotReady

NEW_YORK = "America/New_York"
PUERTO_RICO_AND_VIRGIN_ISLANDS = frozenset({"BQN", "PSE", "SJU", "STT"})
ATLANTIC = timezone(timedelta(hours=-4), "AST")  # all the year: they keep no summer time
MISSING = frozenset({"", "NA"})

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Flight:
    """
    One flight as the airline knows it when its day is over; all times are UTC.

    Attributes:
        id: Date, carrier, number and origin: no two flights of the data share them.
        tail_number: The aircraft; None when none was assigned.
        departed_at: None for a cancelled flight.
        arrived_at: None when it was cancelled or no arrival is known.
        air_minutes: None when the flight was cancelled, diverted or never seen to arrive.
    """

    id: str
    carrier: str
    number: int
    tail_number: str | None
    origin: str
    destination: str
    distance_miles: int
    scheduled_departure: datetime
    scheduled_arrival: datetime
    departed_at: datetime | None
    arrived_at: datetime | None
    air_minutes: int | None

    def __post_init__(self) -> None:
        if self.departed_at is None and (self.arrived_at is not None or self.air_minutes is not None):
            raise InvalidMessage(f"flight {self.id} arrived and never departed")
        if (
            self.arrived_at is not None
            and self.departed_at is not None
            and self.arrived_at <= self.departed_at
        ):
            raise InvalidMessage(
                f"flight {self.id} arrived at {self.arrived_at} and departed at {self.departed_at}"
            )

    @property
    def key(self) -> str:
        """Return the tail number; without an aircraft, carrier and number (a tail number has no blank)."""
        return self.tail_number or f"{self.carrier} {self.number}"

    @property
    def day(self) -> date:
        """Return the day in New York on which it is scheduled to depart."""
        return date.fromisoformat(self.id[:10])

    @property
    def departure_delay(self) -> int | None:
        """Return the minutes it left late, below zero when early."""
        return None if self.departed_at is None else _minutes(self.departed_at - self.scheduled_departure)

    @property
    def arrival_delay(self) -> int | None:
        """Return the minutes it arrived late; a diverted flight (it has no minutes in the air) has none."""
        if self.arrived_at is None or self.air_minutes is None:
            return None
        return _minutes(self.arrived_at - self.scheduled_arrival)


class Zones:
    """Tell the time zone of an airport, from airports.csv."""

    def __init__(self, airports: Iterable[str]) -> None:
        self._names = {row["faa"]: row["tzone"] for row in csv.DictReader(airports)}
        self._zones: dict[str, tzinfo] = dict.fromkeys(PUERTO_RICO_AND_VIRGIN_ISLANDS, ATLANTIC)

    def of(self, airport: str) -> tzinfo:
        """
        Return the zone of *airport*.

        Raises:
            InvalidMessage: The airport is unknown, or its zone is.
            NotReady: This machine has no time zone database.
        """
        if (zone := self._zones.get(airport)) is None:
            zone = self._zones[airport] = _zone(self._names.get(airport, ""), airport)
        return zone


def _zone(name: str, airport: str) -> tzinfo:
    if name in MISSING:
        raise InvalidMessage(f"airport {airport!r} has no time zone in airports.csv")
    try:
        return ZoneInfo(name)
    except ZoneInfoNotFoundError as error:
        raise NotReady(f"time zone {name!r} is unknown here; install the system package tzdata") from error


def read_flights(lines: Iterable[str], zones: Zones) -> Iterator[Flight]:
    """
    Yield a flight for each line of flights.csv, in its order; the first of *lines* is the header.

    Raises:
        InvalidMessage: A line breaks a rule; names the line (from 1) and the field.
    """
    for number, row in enumerate(csv.DictReader(lines), start=2):
        try:
            yield flight_of(row, zones)
        except (KeyError, TypeError, ValueError) as error:
            raise InvalidMessage(f"line {number} of flights.csv: {error!r}") from error


def flight_of(row: Mapping[str, str], zones: Zones) -> Flight:
    """Return the flight that *row* of flights.csv tells of."""
    day = date(int(row["year"]), int(row["month"]), int(row["day"]))
    origin, destination = row["origin"], row["dest"]
    scheduled_departure = _moment(day, row["sched_dep_time"], zones.of(origin))
    departed_at = arrived_at = None
    if (delay := _number(row["dep_delay"])) is not None:
        departed_at = scheduled_departure + timedelta(minutes=delay)
        arrived_at = _first_after(departed_at, row["arr_time"], zones.of(destination))
    return Flight(
        id=f"{day.isoformat()}-{row['carrier']}{row['flight']}-{origin}",
        carrier=row["carrier"],
        number=int(row["flight"]),
        tail_number=None if row["tailnum"] in MISSING else row["tailnum"],
        origin=origin,
        destination=destination,
        distance_miles=int(row["distance"]),
        scheduled_departure=scheduled_departure,
        scheduled_arrival=_required(
            _first_after(scheduled_departure, row["sched_arr_time"], zones.of(destination)), "sched_arr_time"
        ),
        departed_at=departed_at,
        arrived_at=arrived_at,
        air_minutes=_number(row["air_time"]),
    )


def clock_time(text: str) -> timedelta | None:
    """
    Return the time since midnight that "517" or "2400" tells; None when it is missing.

    2400 is the midnight at the end of the day, not the one at its start.

    >>> clock_time("2400")
    datetime.timedelta(days=1)

    Raises:
        ValueError: It is no time of a day.
    """
    if (number := _number(text)) is None:
        return None
    hours, minutes = divmod(number, 100)
    if not (0 <= hours < 24 and 0 <= minutes < 60) and number != 2400:
        raise ValueError(f"{text!r} is no time of day: 0 to 2359 and 2400 are allowed")
    return timedelta(hours=hours, minutes=minutes)


def _moment(day: date, text: str, zone: tzinfo) -> datetime:
    """Return the moment at which a clock in *zone* reads *text* on *day*, in UTC."""
    midnight = datetime(day.year, day.month, day.day, tzinfo=zone)
    # Adding to an aware time moves the clock's hands, which is what is wanted: the hands are what *text* tells.
    return (midnight + _required(clock_time(text), "a time")).astimezone(UTC)


def _first_after(moment: datetime, text: str, zone: tzinfo) -> datetime | None:
    """
    Return the first time after *moment* at which a clock in *zone* reads *text*.

    The data tells no date of an arrival: this is how one past midnight, or one behind the date line's clock, finds its
    own. No flight takes a day.
    """
    if clock_time(text) is None:
        return None
    today = moment.astimezone(zone).date()
    # 2400 belongs to the day that it ends, so yesterday's may still be ahead of a departure at midnight.
    days = (today + timedelta(days=step) for step in (-1, 0, 1))
    return next(found for day in days if (found := _moment(day, text, zone)) > moment)


def _number(text: str) -> int | None:
    return None if text in MISSING else int(text)


def _required(value: _T | None, name: str) -> _T:
    if value is None:
        raise ValueError(f"{name} is missing")
    return value


def _minutes(span: timedelta) -> int:
    return span // timedelta(minutes=1)
