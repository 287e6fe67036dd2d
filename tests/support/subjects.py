"""Rows of one person, and of somebody else, in every table that keeps messages."""

import base64
from typing import Any
from uuid import UUID

import psycopg
from psycopg.types.json import Jsonb
from tests.support.accounts import AccountOpened
from tests.support.console_rows import handled, new_id, recorded, rested

from packhorse.processor.record import key_hash
from packhorse.schemas.codec import encode_message
from packhorse.testing.registration import register_for_tests, schema_id_for_tests

ANN, BOB = "ann@example.org", "bob@example.org"
TOPIC, GROUP = "airline.account", "figures"
ERROR = "ValueError at handlers.py:12: no such passenger "
_WAITING = """
INSERT INTO packhorse.{table} (group_id, topic, message_id, key_hash, topic_id, partition, "offset", key, payload, headers, {more})
VALUES (%(group)s, %(topic)s, %(id)s, %(hash)s, gen_random_uuid(), 1, %(offset)s, %(key)s, %(payload)s, %(headers)s, {values})
"""


class Life:
    """
    The rows of one person: an outbox row, a head in quarantine with a follower, and a message that is tried again.

    Attributes:
        outbox, head, follower, retry: The messages' ids.
    """

    def __init__(self, connection: psycopg.Connection[Any], who: str, *, key: str | None = None) -> None:
        self._connection = connection
        self.who = who
        self.key = (who if key is None else key).encode()
        payload = payload_of(connection, who)
        self.outbox = recorded(connection, key=self.key.decode(), aggregatetype="account", payload=payload)
        handled(connection, self.outbox, topic=TOPIC, error=ERROR + who)
        self._attempt(self.outbox)
        self.head = rested(
            connection,
            group=GROUP,
            topic=TOPIC,
            key=self.key,
            payload=payload,
            headers=self._headers(),
            error=ERROR + who,
        )
        self._attempt(self.head)
        connection.execute(
            "UPDATE packhorse.quarantined_message SET copy_partition = 1, copy_offset = 7, key_hash = %s, history = %s"
            " WHERE message_id = %s",
            (self.hash, Jsonb([{"attempt": 1, "error": ERROR + who}]), self.head),
        )
        self.follower = self._waiting("parked_message", "parked", payload, "topic_age", "0")
        self.retry = self._waiting(
            "retry_message", "retry", payload, "attempt, tier, due_at, error, sent_partition, sent_offset",
            "2, '5s', clock_timestamp() + interval '1 hour', %(error)s, 1, 99",
        )  # fmt: skip
        connection.execute(
            "INSERT INTO packhorse.parked_key (group_id, topic, key_hash, key, partition, head_id) VALUES (%s, %s, %s, %s, 1, %s)"
            " ON CONFLICT DO NOTHING",
            (GROUP, TOPIC, self.hash, self.key, self.head),
        )

    @property
    def hash(self) -> str:
        """Return what stands for the key."""
        return key_hash(self.key)

    def outcomes(self) -> dict[str, tuple[str, str | None]]:
        """Return outcome and reason of each message."""
        names = {self.head: "head", self.follower: "follower", self.retry: "retry", self.outbox: "outbox"}
        found = self._connection.execute(
            "SELECT message_id, outcome, reason FROM packhorse.inbox WHERE message_id = ANY(%s)",
            (list(names),),
        )
        return {names[message_id]: (outcome, reason) for message_id, outcome, reason in found}

    def _headers(self) -> list[list[str | None]]:
        return [["tenant", base64.b64encode(self.who.encode()).decode()]]

    def _attempt(self, message_id: UUID) -> None:
        self._connection.execute(
            "INSERT INTO packhorse.failed_attempt (group_id, topic, message_id, attempt, reason, error)"
            " VALUES (%s, %s, %s, 1, 'failed', %s)",
            (GROUP, TOPIC, message_id, ERROR + self.who),
        )

    def _waiting(self, table: str, outcome: str, payload: bytes, more: str, values: str) -> UUID:
        message_id = handled(
            self._connection,
            new_id(),
            group=GROUP,
            topic=TOPIC,
            outcome=outcome,
            attempt=2,
            error=ERROR + self.who,
        )
        self._connection.execute(
            _WAITING.format(table=table, more=more, values=values).encode(),
            {
                "group": GROUP, "topic": TOPIC, "id": message_id, "hash": self.hash, "offset": message_id.int % 1_000_000,
                "key": self.key, "payload": payload, "headers": Jsonb(self._headers()), "error": ERROR + self.who,
            },
        )  # fmt: skip
        self._attempt(message_id)
        return message_id


def payload_of(connection: psycopg.Connection[Any], who: str) -> bytes:
    """Return an encoded message whose personal field is *who*; its schema is registered."""
    with connection.transaction():
        register_for_tests(connection, AccountOpened)
    message = AccountOpened(account="a", owner=who, limit=1)
    return encode_message(message, schema_id_for_tests(AccountOpened.__packhorse__))


def traces(connection: psycopg.Connection[Any], who: str) -> list[str]:
    """Return the tables of the whole database in which *who* still stands: as text, as bytes, in base64, or as the key's hash."""
    forms = [who, who.encode().hex(), base64.b64encode(who.encode()).decode(), key_hash(who.encode())]
    tables = connection.execute(
        "SELECT c.relname FROM pg_class AS c WHERE c.relnamespace = 'packhorse'::regnamespace AND c.relkind IN ('r', 'p')"
        " AND NOT c.relispartition ORDER BY 1"
    ).fetchall()
    found = []
    for (table,) in tables:
        row = connection.execute(
            f"SELECT count(*) FROM packhorse.{table} AS t, unnest(%s::text[]) AS f WHERE strpos(t::text, f) > 0".encode(),
            (forms,),
        ).fetchone()
        assert row is not None
        if row[0]:
            found.append(table)
    return found
