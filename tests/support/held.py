"""Put holds and a relay into the real tables, as a relay would, and let the relay be played in SQL."""

from typing import Any

import psycopg
from tests.support.console_rows import horizon_past_all, recorded

_HOLD = """
INSERT INTO packhorse.relay_hold (shard, scope, aggregatetype, aggregateid, partition, partitions, message_id, seq, code, reason, heals,
    horizon, tries)
VALUES (0, %(scope)s, %(aggregatetype)s, %(key)s, %(partition)s, %(partitions)s, %(row)s, (SELECT o.seq FROM packhorse.outbox AS o
    WHERE o.id = %(row)s), %(code)s, %(reason)s, %(heals)s, '1:1:', %(tries)s) RETURNING id
"""
_DEFAULTS: dict[str, Any] = {
    "scope": "key",
    "aggregatetype": "aircraft",
    "key": "N14228",
    "partition": None,
    "partitions": None,
    "row": None,
    "code": "too_large",
    "reason": "1048890 bytes, and the topic takes 1048588",
    "heals": False,
    "tries": 0,
}


def hold_of(connection: psycopg.Connection[Any], **given: Any) -> int:
    """Let the relay hold something, a key as long as nothing else is given; return the hold's number."""
    row = connection.execute(_HOLD, {**_DEFAULTS, **given}).fetchone()
    assert row is not None
    return int(row[0])


def held_key(
    connection: psycopg.Connection[Any], key: str = "N14228", *, rows: int = 2
) -> tuple[int, list[str]]:
    """Let a key be held for its first row, with others behind it that the relay has passed; return the hold and the rows' ids."""
    ids = [str(recorded(connection, key=key)) for _ in range(rows)]
    horizon_past_all(connection)
    return hold_of(connection, key=key, row=ids[0]), ids


def owned(connection: psycopg.Connection[Any], owner: str = "relay-a:4711") -> None:
    """Let a relay own the shard."""
    connection.execute(
        "UPDATE packhorse.relay SET owner = %s, token = gen_random_uuid(), lease_until = clock_timestamp() + interval '1 hour',"
        " saved_at = clock_timestamp(), epoch = 3",
        (owner,),
    )


def begins(connection: psycopg.Connection[Any], hold: int, *, sent: int = 1) -> None:
    """Let the relay's owner take up the order."""
    connection.execute(
        "UPDATE packhorse.relay_hold SET state = 'releasing', asked = NULL, sent = %s, changed_at = clock_timestamp() WHERE id = %s",
        (sent, hold),
    )


def ends(connection: psycopg.Connection[Any], hold: int) -> None:
    """Let the release meet the relay."""
    connection.execute(
        "UPDATE packhorse.relay_hold SET state = 'ended', asked = NULL, ended_at = clock_timestamp() WHERE id = %s",
        (hold,),
    )


def fails(connection: psycopg.Connection[Any], hold: int, *, reason: str = "still too large") -> None:
    """Let the release fail: it is held again."""
    connection.execute(
        "UPDATE packhorse.relay_hold SET state = 'held', asked = NULL, tries = tries + 1, reason = %s WHERE id = %s",
        (reason, hold),
    )
