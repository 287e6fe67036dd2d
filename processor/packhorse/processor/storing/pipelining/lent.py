"""What a handler gets of the queue of its lane's connection."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from packhorse.processor.storing.guarding.lease import Lease
    from packhorse.processor.storing.guarding.postgres import AsyncGuardedConnection, GuardedConnection
    from packhorse.processor.storing.pipelining.postgres import Parameters


class Pipeline:
    """
    Queue statements whose result is not read: they are sent together, without a round trip for each.

    They keep their order among each other and with what runs on `ctx.connection` and `ctx.session`. A value that can't be
    converted is refused at once; an error of the database shows up later, and is this message's all the same: it fails as if
    the statement had been the last of its handler.
    """

    __slots__ = ("_connection", "_lease", "_own")

    def __init__(self, connection: GuardedConnection, lease: Lease) -> None:
        self._connection = connection
        self._lease = lease
        self._own = connection.pipe.own

    def execute(self, query: Any, params: Parameters = None) -> None:
        """
        Queue *query*.

        Raises:
            TransactionRefused: It would end the transaction, or the handler has returned.
            psycopg.Error: *params* can't be converted.
        """
        self._lease.check()
        connection = self._connection
        pipe = connection.pipe
        if pipe.add(self._own, query, params):
            with connection.lock:
                connection.wait(pipe.send_gen())


class AsyncPipeline:
    """Queue statements whose result is not read, as `Pipeline`."""

    __slots__ = ("_connection", "_lease", "_own")

    def __init__(self, connection: AsyncGuardedConnection, lease: Lease) -> None:
        self._connection = connection
        self._lease = lease
        self._own = connection.pipe.own

    async def execute(self, query: Any, params: Parameters = None) -> None:
        """Queue *query*, as `Pipeline.execute`."""
        self._lease.check()
        connection = self._connection
        pipe = connection.pipe
        if pipe.add(self._own, query, params):
            async with connection.lock:
                await connection.wait(pipe.send_gen())
