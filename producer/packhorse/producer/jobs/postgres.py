"""Adapter to psycopg: the connections on which an application asks how its jobs stand."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from psycopg import errors as pg
from psycopg_pool import ConnectionPool, PoolClosed, PoolTimeout

from packhorse.core.connecting import next_step
from packhorse.core.errors import DatabaseUnavailable, NotReady, UsageError
from packhorse.core.redaction import secrets_of, without_secrets

_SETTING = "the database_url of Jobs"


class Reader:
    """
    Run single statements, from any thread, each in a transaction of its own; connects when it is first asked.

    A connection is tried before it is used, so that one that the database or the network has ended costs a reconnect alone.
    """

    def __init__(self, url: str, *, connections: int, timeout: float) -> None:
        self._url = url
        self._timeout = timeout
        self._pool: ConnectionPool[psycopg.Connection[tuple[Any, ...]]] = ConnectionPool(
            url,
            kwargs={
                "autocommit": True,
                "prepare_threshold": None,  # a pooler that lends servers by the transaction would lose what is prepared
                "connect_timeout": max(2, int(timeout)),
                "application_name": "packhorse jobs",
                "tcp_user_timeout": int(timeout * 1000),
            },
            min_size=0,
            max_size=connections,
            timeout=timeout,
            check=ConnectionPool.check_connection,
            name="packhorse-jobs",
            open=False,
        )

    def rows(self, text: bytes, *parameters: Any) -> list[tuple[Any, ...]]:
        """
        Return the rows of one statement.

        Raises:
            DatabaseUnavailable: The database does not answer, or all connections are in use for too long.
            NotReady: A table or right is missing.
            UsageError: The reader was closed.
        """
        with self._translated():
            self._pool.open()
            with self._pool.connection() as connection:
                return connection.execute(text, parameters).fetchall()

    def close(self) -> None:
        """Close the connections; may be called again."""
        self._pool.close()

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except PoolClosed:
            raise UsageError("these Jobs were closed; make new ones") from None
        except PoolTimeout:
            raise DatabaseUnavailable(
                f"no connection to {_SETTING} within {self._timeout:g} s: it is away or refuses us, or all "
                f"{self._pool.max_size} connections are in use"
            ) from None  # the driver's text may quote a piece of the password
        except (pg.UndefinedTable, pg.UndefinedColumn, pg.InvalidSchemaName) as error:
            raise NotReady(
                f"{_first_line(error)}; run `packhorse migrate up`, and check the schema of Jobs"
            ) from error
        except pg.InsufficientPrivilege as error:
            raise NotReady(
                f"{_first_line(error)}; `packhorse migrate sql --grants writer=ROLE` has the grants"
            ) from error
        except psycopg.OperationalError as error:
            told = without_secrets(_first_line(error), secrets_of("PACKHORSE_DATABASE_URL", self._url))
            raise DatabaseUnavailable(f"{_SETTING}: {told}; {next_step(told, setting=_SETTING)}") from None


def _first_line(error: psycopg.Error) -> str:
    return str(error).strip().partition("\n")[0]
