"""Messages; made by `packhorse schemas generate`: change the schemas, then run it again."""

import datetime as dt
from dataclasses import dataclass
from typing import ClassVar

from packhorse.core.message import MessageType


@dataclass(frozen=True, slots=True, kw_only=True)
class FlightArrived:
    """
    A flight reached its gate.

    Attributes:
        flight_id: Date, carrier, number and origin: no two flights share them.
        tail_number: Registration of the aircraft; null when none was assigned.
        origin: Airport of departure, three letters.
        destination: Airport the flight goes to, three letters.
        departed_at: When it left its gate.
        arrived_at: When it reached its gate.
        air_minutes: Minutes in the air; null for a diverted flight.
        delay_minutes: Minutes it arrived late, below zero when early; null for a diverted flight.
    """

    flight_id: str
    tail_number: str | None = None
    origin: str
    destination: str
    departed_at: dt.datetime
    arrived_at: dt.datetime
    air_minutes: int | None = None
    delay_minutes: int | None = None

    __packhorse__: ClassVar[MessageType] = MessageType(
        type="airline.FlightArrived",
        version=1,
        namespace="airline",
        aggregatetype="aircraft",
        schema='{"type":"record","name":"airline.FlightArrived","fields":[{"name":"flight_id","type":"string"},{"name":"tail_number","type":["null","string"],"default":null},{"name":"origin","type":"string"},{"name":"destination","type":"string"},{"name":"departed_at","type":{"type":"long","logicalType":"timestamp-micros"}},{"name":"arrived_at","type":{"type":"long","logicalType":"timestamp-micros"}},{"name":"air_minutes","type":["null","int"],"default":null},{"name":"delay_minutes","type":["null","int"],"default":null}]}',
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class FlightCancelled:
    """
    A flight that was planned will not leave.

    Attributes:
        flight_id: Date, carrier, number and origin: no two flights share them.
        tail_number: Registration of the aircraft; null when none was assigned.
        origin: Airport of departure, three letters.
    """

    flight_id: str
    tail_number: str | None = None
    origin: str

    __packhorse__: ClassVar[MessageType] = MessageType(
        type="airline.FlightCancelled",
        version=1,
        namespace="airline",
        aggregatetype="aircraft",
        schema='{"type":"record","name":"airline.FlightCancelled","fields":[{"name":"flight_id","type":"string"},{"name":"tail_number","type":["null","string"],"default":null},{"name":"origin","type":"string"}]}',
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class FlightDeparted:
    """
    A flight left its gate.

    Attributes:
        flight_id: Date, carrier, number and origin: no two flights share them.
        tail_number: Registration of the aircraft; null when none was assigned.
        origin: Airport of departure, three letters.
        destination: Airport the flight goes to, three letters.
        distance_miles: Miles between the two airports.
        departed_at: When it left its gate.
        delay_minutes: Minutes it left late; below zero when early.
    """

    flight_id: str
    tail_number: str | None = None
    origin: str
    destination: str
    distance_miles: int
    departed_at: dt.datetime
    delay_minutes: int

    __packhorse__: ClassVar[MessageType] = MessageType(
        type="airline.FlightDeparted",
        version=1,
        namespace="airline",
        aggregatetype="aircraft",
        schema='{"type":"record","name":"airline.FlightDeparted","fields":[{"name":"flight_id","type":"string"},{"name":"tail_number","type":["null","string"],"default":null},{"name":"origin","type":"string"},{"name":"destination","type":"string"},{"name":"distance_miles","type":"int"},{"name":"departed_at","type":{"type":"long","logicalType":"timestamp-micros"}},{"name":"delay_minutes","type":"int"}]}',
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class FlightScheduled:
    """
    A flight was planned.

    Attributes:
        flight_id: Date, carrier, number and origin: no two flights share them.
        carrier: Two letters of the airline.
        number: The airline's number for the flight.
        tail_number: Registration of the aircraft; null when none was assigned.
        origin: Airport of departure, three letters.
        destination: Airport the flight goes to, three letters.
        distance_miles: Miles between the two airports.
        scheduled_departure: When it should leave its gate.
        scheduled_arrival: When it should reach its gate.
    """

    flight_id: str
    carrier: str
    number: int
    tail_number: str | None = None
    origin: str
    destination: str
    distance_miles: int
    scheduled_departure: dt.datetime
    scheduled_arrival: dt.datetime

    __packhorse__: ClassVar[MessageType] = MessageType(
        type="airline.FlightScheduled",
        version=1,
        namespace="airline",
        aggregatetype="aircraft",
        schema='{"type":"record","name":"airline.FlightScheduled","fields":[{"name":"flight_id","type":"string"},{"name":"carrier","type":"string"},{"name":"number","type":"int"},{"name":"tail_number","type":["null","string"],"default":null},{"name":"origin","type":"string"},{"name":"destination","type":"string"},{"name":"distance_miles","type":"int"},{"name":"scheduled_departure","type":{"type":"long","logicalType":"timestamp-micros"}},{"name":"scheduled_arrival","type":{"type":"long","logicalType":"timestamp-micros"}}]}',
    )
