"""The connections that the requests of one console share."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from psycopg_pool import ConnectionPool, PoolClosed, PoolTimeout, TooManyRequests

from packhorse.console.acting.postgres import Database
from packhorse.console.connecting.postgres import GRACE, Patient, connection_to
from packhorse.console.settings import ConsoleSettings
from packhorse.core.errors import DatabaseUnavailable

_WAITING = 4
"""Requests that may wait for each connection; more are answered at once that the console is busy."""


def most_held(settings: ConsoleSettings) -> int:
    """Return how many requests may hold or wait for a connection at a time: so many threads a frozen server can hold."""
    return settings.connections * (1 + _WAITING)


class Pool:
    """
    Lend connections in autocommit.

    A connection is tried before it is lent, so that one that the database or the network has ended costs a reconnect and no
    request. One that breaks while it is lent is not lent again; one whose server is silent for too long is closed, so that a frozen
    one holds no thread for longer than a request may take.
    """

    def __init__(self, pool: ConnectionPool[Patient], timeout: float) -> None:
        self._pool = pool
        self._timeout = timeout

    @contextmanager
    def lend(self) -> Iterator[Patient]:
        """
        Lend a connection for one transaction.

        Raises:
            DatabaseUnavailable: None is free in time, or the database gives none.
        """
        try:
            connection = self._pool.getconn(self._timeout)
        except (PoolTimeout, TooManyRequests, PoolClosed):
            raise DatabaseUnavailable(
                f"no connection to the database within {self._timeout:g} s: it is away, or all "
                f"{self._pool.max_size} of the console are in use (PACKHORSE_CONSOLE_CONNECTIONS); nothing was done"
            ) from None  # the driver's text may quote a piece of the password
        try:
            yield connection
        finally:
            self._pool.putconn(connection)


@contextmanager
def pooled(settings: ConsoleSettings) -> Iterator[Database]:
    """
    Hand out the database over a pool, and close its connections at the end.

    Raises:
        SettingsError: The URL is no connection string.
        DatabaseUnavailable: The database does not answer now, or refuses us.
    """
    url, timeout = settings.database_url.get_secret_value(), settings.timeout
    connection_to(
        url, timeout=timeout
    ).close()  # says what is wrong, and what to do; the pool would only try again
    logging.getLogger("psycopg.pool").propagate = False  # its texts may quote a piece of the password
    logging.getLogger("psycopg.pool").addHandler(logging.NullHandler())

    def configure(connection: Patient) -> None:
        connection.patience = timeout + GRACE

    pool: ConnectionPool[Patient] = ConnectionPool(
        url,
        connection_class=Patient,
        configure=configure,
        kwargs={
            "autocommit": True,
            "prepare_threshold": None,  # a pooler that lends servers by the transaction would lose what is prepared
            "connect_timeout": max(2, int(timeout)),
            "application_name": "packhorse console",
            "tcp_user_timeout": int(
                timeout * 1000
            ),  # a peer that has gone without a word holds up no request for longer
            "keepalives_idle": max(1, int(timeout)),
            "keepalives_interval": 1,
            "keepalives_count": 3,
        },
        min_size=1,
        max_size=settings.connections,
        max_waiting=settings.connections * _WAITING,
        timeout=timeout,
        check=ConnectionPool.check_connection,
        name="packhorse-console",
        open=False,
    )
    with pool:
        yield Database(Pool(pool, timeout).lend, schema=settings.database_schema, timeout=timeout)
