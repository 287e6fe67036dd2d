"""Connect to the database, and tell what it says in our words: what every adapter of the console stands on."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from psycopg import errors as pg

from packhorse.core.connecting import next_step
from packhorse.core.errors import DatabaseUnavailable, NotReady, SettingsError, UsageError
from packhorse.core.redaction import secrets_of, without_secrets

Connection = psycopg.Connection[Any]


def where_of(connection: Connection) -> str:
    """Return host and port of *connection*, which hold no secret."""
    return f"{connection.info.host}:{connection.info.port}"


@contextmanager
def translated(where: str, schema: str) -> Iterator[None]:
    """
    Turn the driver's errors into ours; *where* names the database without a secret.

    Raises:
        NotReady: A table, column or right is missing, the database only reads, or a rule of its own refuses it.
        DatabaseUnavailable: The connection is lost, or a statement or lock took too long.
    """
    try:
        yield
    except (pg.UndefinedTable, pg.UndefinedColumn, pg.UndefinedFunction, pg.InvalidSchemaName) as error:
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
    except psycopg.DataError as error:  # its text quotes the value
        raise UsageError(
            f"database {where} takes no such value ({type(error).__name__}); nothing was done"
        ) from error
    except psycopg.Error as error:
        # a constraint or trigger of somebody's own: text, detail and cause quote the row, keys and payload with it
        at = ".".join(name for name in (error.diag.table_name, error.diag.constraint_name) if name)
        raise NotReady(
            f"database {where} refuses it: {type(error).__name__} ({error.sqlstate or 'no SQLSTATE'}){f' of {at}' if at else ''}; "
            "nothing was done, and the log of the database says more"
        ) from None


@contextmanager
def connected(url: str, *, timeout: float) -> Iterator[Connection]:
    """
    Connect in autocommit, hand out the connection, and close it.

    Raises:
        SettingsError: *url* is no connection string.
        DatabaseUnavailable: The database does not answer within *timeout* seconds, or refuses us.
    """
    with connection_to(url, timeout=timeout) as connection:
        yield connection


def connection_to(url: str, *, timeout: float) -> Connection:
    """Connect in autocommit; the caller closes it. Raises what `connected` does."""
    try:
        return psycopg.connect(
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


def _without(url: str, error: psycopg.Error) -> str:
    return without_secrets(" ".join(str(error).split()), secrets_of("PACKHORSE_DATABASE_URL", url))


def _first_line(error: psycopg.Error) -> str:
    return (error.diag.message_primary or str(error) or type(error).__name__).splitlines()[0]
