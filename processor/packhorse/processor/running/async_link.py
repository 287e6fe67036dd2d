"""One async connection to the database, made anew when it was lost; the twin of `link.Link`."""

from collections.abc import Awaitable, Callable

from packhorse.core.errors import DatabaseUnavailable
from packhorse.processor.storing import postgres
from packhorse.processor.storing.steps import ROLLBACK

Prepare = Callable[[postgres.AsyncGuardedConnection], Awaitable[None]]


class AsyncLink:
    """
    A connection, between transactions; for the event loop.

    Args:
        conninfo: How it connects.
        prepare: What each new connection is made ready by.
    """

    def __init__(self, conninfo: str, prepare: Prepare) -> None:
        self._conninfo = conninfo
        self._prepare = prepare
        self.was_connected = False
        self.open: postgres.AsyncGuardedConnection | None = None

    @property
    def is_lost(self) -> bool:
        """Return whether there is no connection now."""
        return self.open is None or self.open.closed

    @property
    def held(self) -> postgres.AsyncGuardedConnection:
        """Return the connection. Raises DatabaseUnavailable where there is none."""
        if self.open is None or self.open.closed:
            raise DatabaseUnavailable("the connection was lost")
        return self.open

    async def connect(self) -> None:
        """Connect if there is no connection; else end what transaction is open. Raises DatabaseUnavailable."""
        found = self.open
        if found is not None and not found.closed:
            if postgres.standing(found) != "none":
                await postgres.acommand(found, ROLLBACK)
            return
        self.open = None
        self.open = await postgres.aconnect(self._conninfo)
        self.was_connected = True
        await self._prepare(self.open)

    async def end(self) -> None:
        """Close the connection; an open transaction is rolled back by the server."""
        found, self.open = self.open, None
        if found is not None:
            await found.end()
