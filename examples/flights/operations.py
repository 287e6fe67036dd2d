"""
The airline's operations: each thing that happens is written, with the event that tells of it, in one transaction.

Several writers work at once. An event's key is the aircraft; whoever writes one locks its key first, so the order in
which the transactions of an aircraft commit is the order of its events in the outbox and on the topic.
"""

from collections.abc import Sequence
from typing import Any

import psycopg

from examples.flights import sql
from examples.flights.flights import Flight
from examples.flights.messages import FlightArrived, FlightCancelled, FlightDeparted, FlightScheduled
from examples.flights.timeline import Movement, Step
from packhorse.producer import Outbox

outbox = Outbox(origin="operations")

Event = FlightScheduled | FlightDeparted | FlightArrived | FlightCancelled


def publish_plan(connection: psycopg.Connection[Any], flights: Sequence[Flight]) -> None:
    """Write a day's flights and tell of each: all of them, or none."""
    with connection.transaction(), connection.cursor() as cursor:
        outbox.lock_keys(connection, [flight.key for flight in flights])
        cursor.executemany(sql.ADD_AIRCRAFT, _aircraft(flights))
        cursor.executemany(sql.PLAN_FLIGHT, [_planned(flight) for flight in flights])
        outbox.emit_many(connection, [(scheduled(flight), flight.key) for flight in flights])


def record(connection: psycopg.Connection[Any], movements: Sequence[Movement]) -> None:
    """Write what happened to flights, in its order, and tell of it: all of it, or nothing."""
    with connection.transaction(), connection.cursor() as cursor:
        outbox.lock_keys(connection, [movement.flight.key for movement in movements])
        cursor.executemany(sql.MOVE_FLIGHT, [_moved(movement) for movement in movements])
        cursor.executemany(sql.MOVE_AIRCRAFT, [_whereabouts(movement) for movement in movements])
        outbox.emit_many(connection, [(event_of(movement), movement.flight.key) for movement in movements])


def event_of(movement: Movement) -> Event:
    """Return the event that tells of *movement*."""
    match movement.step:
        case Step.DEPARTED:
            return departed(movement.flight)
        case Step.ARRIVED:
            return arrived(movement.flight)
        case Step.CANCELLED:
            return cancelled(movement.flight)


def scheduled(flight: Flight) -> FlightScheduled:
    """Return the event of a flight that was planned."""
    return FlightScheduled(
        flight_id=flight.id,
        carrier=flight.carrier,
        number=flight.number,
        tail_number=flight.tail_number,
        origin=flight.origin,
        destination=flight.destination,
        distance_miles=flight.distance_miles,
        scheduled_departure=flight.scheduled_departure,
        scheduled_arrival=flight.scheduled_arrival,
    )


def departed(flight: Flight) -> FlightDeparted:
    """Return the event of a flight that left."""
    assert flight.departed_at is not None
    assert flight.departure_delay is not None
    return FlightDeparted(
        flight_id=flight.id,
        tail_number=flight.tail_number,
        origin=flight.origin,
        destination=flight.destination,
        distance_miles=flight.distance_miles,
        departed_at=flight.departed_at,
        delay_minutes=flight.departure_delay,
    )


def arrived(flight: Flight) -> FlightArrived:
    """Return the event of a flight that landed."""
    assert flight.departed_at is not None
    assert flight.arrived_at is not None
    return FlightArrived(
        flight_id=flight.id,
        tail_number=flight.tail_number,
        origin=flight.origin,
        destination=flight.destination,
        departed_at=flight.departed_at,
        arrived_at=flight.arrived_at,
        air_minutes=flight.air_minutes,
        delay_minutes=flight.arrival_delay,
    )


def cancelled(flight: Flight) -> FlightCancelled:
    """Return the event of a flight that never left."""
    return FlightCancelled(flight_id=flight.id, tail_number=flight.tail_number, origin=flight.origin)


def _aircraft(flights: Sequence[Flight]) -> list[dict[str, str]]:
    # Sorted: two plans that name the same new aircraft wait for each other in one order.
    return [{"tail_number": tail} for tail in sorted({f.tail_number for f in flights if f.tail_number})]


def _planned(flight: Flight) -> dict[str, object]:
    return {
        "id": flight.id,
        "carrier": flight.carrier,
        "number": flight.number,
        "tail_number": flight.tail_number,
        "origin": flight.origin,
        "destination": flight.destination,
        "scheduled_departure": flight.scheduled_departure,
        "scheduled_arrival": flight.scheduled_arrival,
    }


def _moved(movement: Movement) -> dict[str, object]:
    flight = movement.flight
    return {
        "id": flight.id,
        "state": movement.step.value,
        "departed_at": flight.departed_at,
        "arrived_at": flight.arrived_at if movement.step is Step.ARRIVED else None,
    }


def _whereabouts(movement: Movement) -> dict[str, object]:
    flight = movement.flight
    airports = {Step.DEPARTED: None, Step.ARRIVED: flight.destination, Step.CANCELLED: flight.origin}
    return {"tail_number": flight.tail_number, "airport": airports[movement.step]}
