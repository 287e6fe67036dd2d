"""What happens to flights, in the order of their lives. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, datetime
from enum import StrEnum
from itertools import groupby

from examples.flights.flights import Flight


class Step(StrEnum):
    """What can happen to a flight once it is planned."""

    DEPARTED = "departed"
    ARRIVED = "arrived"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True, kw_only=True)
class Movement:
    """
    One step in the life of one flight.

    Attributes:
        at: When it happened, UTC; a flight is cancelled when it should have departed.
    """

    at: datetime
    step: Step
    flight: Flight


def movements_of(flight: Flight) -> list[Movement]:
    """Return the steps in the life of *flight*: one when it was cancelled or never seen to arrive, else two."""
    if flight.departed_at is None:
        return [Movement(at=flight.scheduled_departure, step=Step.CANCELLED, flight=flight)]
    steps = [Movement(at=flight.departed_at, step=Step.DEPARTED, flight=flight)]
    if flight.arrived_at is not None:
        steps.append(Movement(at=flight.arrived_at, step=Step.ARRIVED, flight=flight))
    return steps


def in_order(flights: Iterable[Flight]) -> list[Movement]:
    """Return all movements in time order; at the same moment the flight's id decides."""
    steps = (movement for flight in flights for movement in movements_of(flight))
    return sorted(steps, key=lambda movement: (movement.at, movement.flight.id))


def plans(flights: Iterable[Flight]) -> list[tuple[date, list[Flight]]]:
    """Return each day's flights, the days in order."""
    by_day = sorted(flights, key=lambda flight: flight.day)
    return [(day, list(group)) for day, group in groupby(by_day, key=lambda flight: flight.day)]
