"""Connect to the database, and tell what it says in our words: what every adapter of the console stands on."""

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import psycopg
from psycopg import errors as pg

from packhorse.core.clock import SYSTEM_CLOCK
from packhorse.core.connecting import next_step
from packhorse.core.errors import DatabaseUnavailable, NotReady, SettingsError, UsageError
from packhorse.core.redaction import secrets_of, without_secrets

Connection = psycopg.Connection[Any]
Result = TypeVar("Result")
GRACE = 3.0
"""Seconds beyond a statement's time-out, which a server that lives keeps by itself: the answer has its way to go."""


class Patient(psycopg.Connection[Any]):
    """
    A connection that is closed when the server is silent for `patience` seconds while something is asked; None: never.

    The server's own time-outs end no wait for one that is frozen, nor do the network's while its kernel still acknowledges: without
    this a thread and a connection would be held until somebody mends it.
    """

    patience: float | None = None

    def wait(self, gen: Generator[Any, Any, Result], *given: Any, **named: Any) -> Result:
        """Carry *gen* to its end; raises OperationalError when the server is silent for too long, and then is closed."""
        if self.patience is None:
            return super().wait(gen, *given, **named)
        try:
            return super().wait(_heard_within(gen, self.patience), *given, **named)
        except _Silence:
            self.pgconn.finish()
            raise psycopg.OperationalError(f"it is silent for more than {self.patience:g} s") from None


class _Silence(Exception):
    """Nothing was heard of the server for too long; what became of the statement is not known."""


def _heard_within(steps: Generator[Any, Any, Result], seconds: float) -> Generator[Any, Any, Result]:
    """Carry *steps*, which are resumed with what the connection is ready for: with nothing about ten times a second."""
    try:
        wants, heard = next(steps), SYSTEM_CLOCK.monotonic()
        while True:
            ready = yield wants
            if ready:
                heard = SYSTEM_CLOCK.monotonic()
            elif SYSTEM_CLOCK.monotonic() - heard >= seconds:
                raise _Silence
            wants = steps.send(ready)
    except StopIteration as ended:
        result: Result = ended.value
        return result


@contextmanager
def patiently(connection: Connection, timeout: float) -> Iterator[None]:
    """Give answers on *connection* GRACE seconds beyond *timeout*, which the server keeps, for the block."""
    if not isinstance(connection, Patient):
        yield
        return
    before, connection.patience = connection.patience, timeout + GRACE
    try:
        yield
    finally:
        connection.patience = before


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
        return Patient.connect(
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
