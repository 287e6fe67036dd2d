"""Adapter to psycopg: the connections on which jobs are submitted and cancelled for those who ask over HTTP."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import psycopg
from psycopg_pool import AsyncConnectionPool, PoolClosed, PoolTimeout

from packhorse.core.errors import DatabaseUnavailable, UsageError
from packhorse.producer.postgres import AsyncConnection

_BROKEN = (psycopg.OperationalError, psycopg.InterfaceError)


class Writers:
    """
    Lend connections, each for one transaction; connects when it is first asked, in the loop that asks.

    A connection is tried before it is lent, so that one that was ended meanwhile costs a reconnect alone.
    """

    def __init__(self, url: str, *, connections: int, timeout: float) -> None:
        self._timeout = timeout
        self._pool: AsyncConnectionPool[psycopg.AsyncConnection[tuple[Any, ...]]] = AsyncConnectionPool(
            url,
            kwargs={
                "prepare_threshold": None,  # a pooler that lends servers by the transaction would lose what is prepared
                "connect_timeout": max(2, int(timeout)),
                "application_name": "packhorse jobs web",
                "tcp_user_timeout": int(timeout * 1000),
            },
            min_size=0,
            max_size=connections,
            timeout=timeout,
            check=AsyncConnectionPool.check_connection,
            name="packhorse-jobs-web",
            open=False,
        )

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[AsyncConnection]:
        """
        Lend a connection for the block, and commit; an exception rolls back.

        Raises:
            DatabaseUnavailable: The database does not answer, or ended the transaction; after that it may or may not be
                committed, and only the same request key makes it safe to try again.
            UsageError: It was closed.
        """
        try:
            await self._pool.open()
            async with self._pool.connection() as connection:
                yield connection
        except PoolClosed:
            raise UsageError("this JobsApp was closed; make a new one") from None
        except PoolTimeout:
            raise DatabaseUnavailable(
                f"no connection within {self._timeout:g} s: the database is away or refuses us, or all are in use"
            ) from None  # the driver's text may quote a piece of the password
        except _BROKEN as error:
            raise DatabaseUnavailable(f"the transaction ended: {type(error).__name__}") from None

    async def close(self) -> None:
        """Close the connections; may be called again."""
        await self._pool.close()
