"""
The figures of airports and aircraft: an application of Packhorse, whole.

    packhorse processor run examples.flights.figures:app

Each handler runs in the transaction in which Packhorse records that its message is done. So it counts with a plain
`+ 1`: a message that is delivered again finds that record and is not counted again. What happens to one aircraft comes
in the order in which it happened, so a handler may build on what the one before it left.
"""

from datetime import timedelta

from examples.flights import sql
from examples.flights.messages import FlightArrived, FlightCancelled, FlightDeparted, FlightScheduled
from packhorse.processor import Context, Processor, Quarantine, Retry

app = Processor("figures")

# Each delay is a tier, a topic in which a failed message waits; those of its aircraft wait behind it, the others go on.
# Short ones, so that the demo is short.
PATIENT = Retry(attempts=10, delays=("200ms", "500ms", "1s"), budget="10m")


@app.handler(FlightScheduled, retry=PATIENT)
def scheduled(event: FlightScheduled, ctx: Context) -> None:
    """Count a planned flight."""
    ctx.connection.execute(
        sql.COUNT_PLANNED,
        {"origin": event.origin, "key": ctx.key, "tail_number": event.tail_number},
    )


@app.handler(FlightDeparted, retry=PATIENT)
def departed(event: FlightDeparted, ctx: Context) -> None:
    """Count a departure, and one more link of the aircraft's chain: does it leave from where it left last time?"""
    if event.distance_miles <= 0:
        raise Quarantine("no-distance", "a flight goes somewhere; trying again will not make this one longer")
    ctx.connection.execute(
        sql.COUNT_DEPARTURE,
        {
            "origin": event.origin,
            "key": ctx.key,
            "delay": event.delay_minutes,
            "tail_number": event.tail_number,
            "flight": event.flight_id,
            "miles": event.distance_miles,
        },
    )


@app.handler(FlightArrived, retry=PATIENT)
def arrived(event: FlightArrived, ctx: Context) -> None:
    """Count an arrival and the minutes that it took; a flight that was diverted has no delay."""
    ctx.connection.execute(
        sql.COUNT_ARRIVAL,
        {
            "destination": event.destination,
            "key": ctx.key,
            "delay": event.delay_minutes or 0,
            "tail_number": event.tail_number,
            "flight": event.flight_id,
            "minutes_in_air": event.air_minutes or 0,
            "minutes_under_way": (event.arrived_at - event.departed_at) // timedelta(minutes=1),
        },
    )


@app.handler(FlightCancelled, retry=PATIENT)
def cancelled(event: FlightCancelled, ctx: Context) -> None:
    """Count a flight that never left."""
    ctx.connection.execute(
        sql.COUNT_CANCELLED,
        {
            "origin": event.origin,
            "key": ctx.key,
            "tail_number": event.tail_number,
            "flight": event.flight_id,
        },
    )
