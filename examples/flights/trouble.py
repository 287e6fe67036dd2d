"""
What goes wrong on purpose while the demo runs.

An outage: for some aircraft, the figures can't be written for a while. It is a trigger in the database, so the handlers
meet it as they would meet a real one, with no code of theirs for it. A refusal: the same with an error that another try
does not mend, so that a message goes to quarantine until somebody has mended it and sends it back. And poison: messages
that no handler can ever finish, each with a key of its own.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import psycopg

from examples.flights import sql
from examples.flights.messages import FlightDeparted, FlightScheduled
from examples.flights.operations import outbox
from packhorse.core.clock import SYSTEM_CHANCE, SYSTEM_CLOCK

FOREVER_OUT = "POISON-4"
PASSES = "P0001"
OUT_OF_RANGE = "22003"
NO_SUCH_SCHEMA = 2_000_000_000
_LONG_AGO = datetime(2013, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Poison:
    """
    A message that must come to rest in quarantine.

    Attributes:
        what: What is wrong with it, for people.
        reason: The reason code that it must be quarantined with.
    """

    id: UUID
    what: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """
    A message that was refused until somebody mended what refused it, and sent it back.

    Attributes:
        aircraft: Whose.
        reason: The reason code of its time in quarantine.
        behind: Messages of the aircraft that waited behind it when it was sent back.
    """

    id: UUID
    aircraft: str
    reason: str
    behind: Sequence[UUID]


MakesPoison = Callable[[psycopg.Connection[Any], str], Poison]
"""Writes a poison message in a transaction of the caller's, under a key that no other message has."""


def begin_outage(connection: psycopg.Connection[Any], aircraft: Sequence[str], *, code: str = PASSES) -> None:
    """Let no figures of *aircraft* be written until `end_outage`: the database answers with SQLSTATE *code*."""
    connection.execute(sql.BEGIN_OUTAGE, {"aircraft": list(aircraft), "code": code})


def end_outage(connection: psycopg.Connection[Any], aircraft: Sequence[str]) -> None:
    """Let the figures of *aircraft* be written again."""
    connection.execute(sql.END_OUTAGE, {"aircraft": list(aircraft)})


def find_refused(connection: psycopg.Connection[Any], aircraft: str) -> Refused | None:
    """Return the message of *aircraft* that is in quarantine, and what waits behind it; None: there is none."""
    found = connection.execute(sql.REFUSED, {"key": aircraft}).fetchone()
    return (
        None if found is None else Refused(aircraft=aircraft, id=found[0], reason=found[1], behind=found[2])
    )


def emit_poison(connection: psycopg.Connection[Any]) -> list[Poison]:
    """Write the poison, in one transaction, and return what must become of it."""
    with connection.transaction():
        begin_outage(connection, [FOREVER_OUT])
        return [
            *(poison(connection, f"POISON-{number}") for number, poison in enumerate(POISONS, start=1)),
            _poison(
                outbox.emit(connection, _out_forever(), key=FOREVER_OUT),
                "an outage that never ends",
                "attempts-exhausted",
            ),
        ]


def emit_one_poison(connection: psycopg.Connection[Any], poison: MakesPoison, *, key: str) -> Poison:
    """Write one message that no handler can ever finish, in a transaction of its own."""
    with connection.transaction():
        return poison(connection, key)


def no_distance(connection: psycopg.Connection[Any], key: str) -> Poison:
    """Write a message that its handler refuses."""
    message_id = outbox.emit(connection, _nowhere(key), key=key)
    return _poison(message_id, "a flight over no distance", "no-distance")


def no_avro(connection: psycopg.Connection[Any], key: str) -> Poison:
    """Write a message that can't be decoded."""
    return _raw(connection, key, b"\xffno Avro", "bytes that are no Avro", "undecodable")


def no_schema(connection: psycopg.Connection[Any], key: str) -> Poison:
    """Write a message whose schema nobody has registered."""
    payload = b"\x00" + NO_SUCH_SCHEMA.to_bytes(4) + b"\x02"
    return _raw(connection, key, payload, "a schema id that the registry does not know", "unknown-schema")


POISONS: tuple[MakesPoison, ...] = (no_distance, no_avro, no_schema)


def _nowhere(key: str) -> FlightDeparted:
    return FlightDeparted(
        flight_id=key.lower(),
        tail_number=key,
        origin="EWR",
        destination="EWR",
        distance_miles=0,
        departed_at=_LONG_AGO,
        delay_minutes=0,
    )


def _out_forever() -> FlightScheduled:
    return FlightScheduled(
        flight_id="poison-4",
        carrier="XX",
        number=4,
        tail_number=FOREVER_OUT,
        origin="EWR",
        destination="LGA",
        distance_miles=17,
        scheduled_departure=_LONG_AGO,
        scheduled_arrival=_LONG_AGO,
    )


def _raw(connection: psycopg.Connection[Any], key: str, payload: bytes, what: str, reason: str) -> Poison:
    """Write an outbox row past `Outbox`, which would refuse it: as a broken writer in another language might."""
    message_id = SYSTEM_CHANCE.message_id(SYSTEM_CLOCK.now())
    kind = FlightDeparted.__packhorse__
    connection.execute(
        sql.RAW_OUTBOX_ROW,
        {
            "id": message_id,
            "aggregatetype": kind.aggregatetype,
            "key": key,
            "type": kind.type,
            "schema_version": str(kind.version),
            "payload": payload,
        },
    )
    return _poison(message_id, what, reason)


def _poison(message_id: UUID, what: str, reason: str) -> Poison:
    return Poison(id=message_id, what=what, reason=reason)
