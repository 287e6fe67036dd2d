"""The console's tables in Postgres: short transactions with bounds, one snapshot each; errors in our words."""

import base64
import binascii
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any
from uuid import UUID

import psycopg
from psycopg import errors as pg
from psycopg.rows import dict_row
from psycopg.sql import SQL, Identifier
from psycopg.types.json import Jsonb

from packhorse.console import sql
from packhorse.console.facts import (
    Act,
    Discard,
    Facts,
    FailedAttempt,
    Forgotten,
    Hold,
    InboxRow,
    OutboxRow,
    Outcome,
    QuarantinedMessage,
    State,
)
from packhorse.console.pages import Filter, Page, Position, page_of
from packhorse.console.redrive import Order, acted_already
from packhorse.core.connecting import next_step
from packhorse.core.errors import DatabaseUnavailable, NotReady, OwnershipLost, SettingsError
from packhorse.core.ids import time_of
from packhorse.core.redaction import secrets_of, without_secrets

_LIMITS = """
SELECT set_config('statement_timeout', %(timeout)s, true), set_config('lock_timeout', %(timeout)s, true),
       set_config('synchronous_commit', 'on', true)
"""
"""A lock that is not free in time ends the act; an act counts as done only once it is durable."""


class PostgresTables:
    """
    Be the `Tables` of one database, over one connection.

    Args:
        connection: In autocommit; each method makes its own transaction.
        schema: Database schema of Packhorse's tables.
        timeout: Seconds after which a statement is given up.
    """

    def __init__(self, connection: psycopg.Connection[Any], *, schema: str, timeout: float) -> None:
        self._connection = connection
        self._schema = schema
        self._timeout = timeout
        self._where = f"{connection.info.host}:{connection.info.port}"

    def facts(self, message_id: UUID) -> Facts:
        """Return all that is known about *message_id*, from one snapshot."""
        wanted = {"id": message_id}
        with self._reading() as cursor:
            outbox = self._all(cursor, sql.OUTBOX_ROW, wanted)
            discards = self._all(cursor, sql.DISCARD_OF, wanted)
            return Facts(
                id=message_id,
                schema=self._schema,
                recorded=OutboxRow(**outbox[0]) if outbox else None,
                holds=tuple(Hold(**row) for row in self._all(cursor, sql.HOLDS_OF, wanted)),
                discard=Discard(**discards[0]) if discards else None,
                inbox=tuple(_inbox_row(row) for row in self._all(cursor, sql.INBOX_ROWS, wanted)),
                attempts=tuple(
                    FailedAttempt(**row) for row in self._all(cursor, sql.FAILED_ATTEMPTS, wanted)
                ),
                quarantined=tuple(_quarantined(row) for row in self._all(cursor, sql.QUARANTINED_OF, wanted)),
                acts=tuple(Act(**row) for row in self._all(cursor, sql.ACTS_OF, wanted)),
                forgotten=tuple(
                    Forgotten(**row) for row in self._all(cursor, sql.FORGOTTEN, {"at": time_of(message_id)})
                ),
            )

    def page(self, wanted: Filter, *, after: Position | None, limit: int) -> Page:
        """Return at most *limit* quarantined messages, the newest first, behind *after*."""
        values = {
            "group": wanted.group,
            "topic": wanted.topic,
            "reason": wanted.reason,
            "type": wanted.type,
            "tenant": wanted.tenant,
            "state": wanted.state and wanted.state.value,
            "after_at": after and after.at,
            "after_id": after and after.id,
            "after_group": after and after.group,
            "after_topic": after and after.topic,
            "limit": limit + 1,
        }
        with self._reading() as cursor:
            return page_of(
                [_quarantined(row) for row in self._all(cursor, sql.QUARANTINE_PAGE, values)], limit=limit
            )

    def bytes_of(self, message: QuarantinedMessage) -> tuple[bytes | None, list[tuple[str, bytes | None]]]:
        """Return payload and headers of *message* as they arrived."""
        with self._reading() as cursor:
            row = self._all(cursor, sql.QUARANTINED_BYTES, _names(message))[0]
        return row["payload"], [(name, _header_value(value)) for name, value in row["headers"]]

    def role(self) -> str:
        """Return the database role that acts are recorded under."""
        with self._reading() as cursor:
            return str(self._all(cursor, sql.DATABASE_ROLE, {})[0]["session_user"])

    def redrive(self, order: Order, *, actor: str, why: str) -> datetime:
        """
        Order the redrive and record the act; return when.

        The inbox row is claimed first (as processors lock them), then the quarantined message, then the audit row is written;
        then, where order binds the message and its key is not parked, the key is parked with it as the head; the commit makes
        all of it true at once, and a crash before it leaves none of it.

        Raises:
            OwnershipLost: A row is no longer as *order* says.
        """
        detail = {"attempt": order.attempt + 1, "redrive": order.redrives + 1}
        values = {
            **_names(order),
            "attempt": order.attempt,
            "redrives": order.redrives,
            "quarantined_at": order.quarantined_at,
            "actor": actor,
            "act": "redrive",
            "why": why,
            "detail": Jsonb(detail),
        }
        return self._act(order, values, (sql.ORDER_ATTEMPT, sql.CLAIM_REDRIVE), last=sql.PARK_KEY)

    def discard(self, order: Order, *, actor: str, why: str) -> datetime:
        """
        Give the message up and record the act; return when.

        The order of effects and what a crash leaves are those of `redrive`. What waits behind it goes on at a running
        processor's next look.

        Raises:
            OwnershipLost: A row is no longer as *order* says.
        """
        values = {
            **_names(order),
            "attempt": order.attempt,
            "redrives": order.redrives,
            "quarantined_at": order.quarantined_at,
            "actor": actor,
            "act": "discard",
            "why": why,
            "detail": Jsonb({"attempt": order.attempt}),
        }
        return self._act(order, values, (sql.END_DISCARDED, sql.CLAIM_DISCARD), last=sql.WAKE_KEY)

    def followers(self, message: QuarantinedMessage) -> int:
        """Return how many messages wait behind *message*, because it is the head of its parked key."""
        with self._reading() as cursor:
            return int(self._all(cursor, sql.FOLLOWERS_OF, _names(message))[0]["waiting"])

    def _act(self, order: Order, values: dict[str, Any], claims: tuple[str, ...], *, last: str) -> datetime:
        """Claim the rows, write the act, and touch the key last, as processors do: nobody waits for another in a ring."""
        with self._translated(), self._connection.transaction(), self._cursor() as cursor:
            cursor.execute(_LIMITS, self._limits())
            for claim in claims:
                if not self._all(cursor, claim, values):
                    raise OwnershipLost(self._who_acted(cursor, order))
            at: datetime = self._all(cursor, sql.WRITE_ACT, values)[0]["at"]
            self._all(cursor, last, values)
        return at

    def _who_acted(self, cursor: psycopg.Cursor[Any], order: Order) -> str:
        names = _names(order)
        acts = [Act(**row) for row in self._all(cursor, sql.LAST_ACT, names)]
        found = [_quarantined(row) for row in self._all(cursor, sql.QUARANTINED_OF, names)]
        state = next(
            (row.state for row in found if (row.group, row.topic) == (order.group, order.topic)), None
        )
        moved = None if state is State.QUARANTINED else state
        return acted_already(order.id, order.group, moved, acts[0] if acts else None)

    @contextmanager
    def _reading(self) -> Iterator[psycopg.Cursor[Any]]:
        with self._translated(), self._connection.transaction(), self._cursor() as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            cursor.execute(_LIMITS, self._limits())
            yield cursor

    def _cursor(self) -> psycopg.Cursor[Any]:
        return self._connection.cursor(row_factory=dict_row)

    def _limits(self) -> dict[str, str]:
        return {"timeout": f"{int(self._timeout * 1000)}ms"}

    def _all(
        self, cursor: psycopg.Cursor[Any], statement: str, values: dict[str, Any]
    ) -> list[dict[str, Any]]:
        query = SQL(statement).format(schema=Identifier(self._schema))
        return cursor.execute(query, values).fetchall()

    @contextmanager
    def _translated(self) -> Iterator[None]:
        with translated(self._where, self._schema):
            yield


@contextmanager
def translated(where: str, schema: str) -> Iterator[None]:
    """
    Turn the driver's errors into ours; *where* names the database without a secret.

    Raises:
        NotReady: A table, column or right is missing, or the database only reads.
        DatabaseUnavailable: The connection is lost, or a statement or lock took too long.
    """
    try:
        yield
    except (pg.UndefinedTable, pg.UndefinedColumn, pg.InvalidSchemaName) as error:
        raise NotReady(
            f"database {where}: {_first_line(error)} (database schema {schema}); run `packhorse migrate up`, or set "
            "PACKHORSE_DATABASE_SCHEMA to where the tables are"
        ) from error
    except pg.InsufficientPrivilege as error:
        raise NotReady(
            f"database {where}: {_first_line(error)}; `packhorse migrate sql --grants operator=ROLE` prints the rights"
        ) from error
    except pg.ReadOnlySqlTransaction as error:
        raise NotReady(f"database {where} only reads (a standby?); act on the primary") from error
    except (pg.QueryCanceled, pg.LockNotAvailable, pg.DeadlockDetected) as error:
        raise DatabaseUnavailable(
            f"database {where}: {_first_line(error)}; nothing was changed, try again (PACKHORSE_CONSOLE_TIMEOUT bounds it)"
        ) from error
    except psycopg.OperationalError as error:
        raise DatabaseUnavailable(f"database {where}: {_first_line(error)}; is it up?") from error


@contextmanager
def opened(url: str, *, schema: str, timeout: float) -> Iterator[PostgresTables]:
    """
    Connect, hand out the tables, and close.

    Raises:
        SettingsError: *url* is no connection string.
        DatabaseUnavailable: The database does not answer within *timeout* seconds, or refuses us.
    """
    with connected(url, timeout=timeout) as connection:
        yield PostgresTables(connection, schema=schema, timeout=timeout)


@contextmanager
def connected(url: str, *, timeout: float) -> Iterator[psycopg.Connection[Any]]:
    """
    Connect in autocommit, hand out the connection, and close it.

    Raises:
        SettingsError: *url* is no connection string.
        DatabaseUnavailable: The database does not answer within *timeout* seconds, or refuses us.
    """
    try:
        connection = psycopg.connect(
            url,
            autocommit=True,
            prepare_threshold=None,  # a pooler that lends servers by the transaction would lose what is prepared
            connect_timeout=max(2, int(timeout)),
            application_name="packhorse console",
        )
    except psycopg.OperationalError as error:
        raise DatabaseUnavailable(
            f"the database of PACKHORSE_DATABASE_URL: {_without(url, error)}; {next_step(str(error))}"
        ) from None  # the driver's text may quote a piece of the password
    except psycopg.ProgrammingError as error:
        raise SettingsError(
            f"PACKHORSE_DATABASE_URL is no connection string: {_without(url, error)}; it looks like "
            "postgresql://user@host:5432/database, with special characters percent-encoded"
        ) from None
    with connection:
        yield connection


def _without(url: str, error: psycopg.Error) -> str:
    return without_secrets(" ".join(str(error).split()), secrets_of("PACKHORSE_DATABASE_URL", url))


def _first_line(error: psycopg.Error) -> str:
    return (error.diag.message_primary or str(error) or type(error).__name__).splitlines()[0]


def _names(message: Order | QuarantinedMessage) -> dict[str, Any]:
    return {"id": message.id, "group": message.group, "topic": message.topic}


def _inbox_row(row: dict[str, Any]) -> InboxRow:
    return InboxRow(**{**row, "outcome": Outcome(row["outcome"])})


def _quarantined(row: dict[str, Any]) -> QuarantinedMessage:
    return QuarantinedMessage(**{**row, "state": State(row["state"])})


def _header_value(value: str | None) -> bytes | None:
    try:
        return None if value is None else base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        return value.encode() if value is not None else None
