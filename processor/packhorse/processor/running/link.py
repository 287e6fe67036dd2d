"""One connection to the database for one thread, made anew when it was lost; whoever must know is told."""

from contextlib import suppress

from packhorse.processor.plant import Plant
from packhorse.processor.storing import postgres
from packhorse.processor.storing.steps import ROLLBACK, Steps


class Link:
    """A connection, between transactions; for one thread, apart from `cancel`."""

    def __init__(self, plant: Plant) -> None:
        self._plant = plant
        self._was_connected = False
        self.held: postgres.GuardedConnection | None = None

    @property
    def is_new(self) -> bool:
        """Return whether there never was a connection."""
        return not self._was_connected

    @property
    def is_lost(self) -> bool:
        """Return whether there is no connection now."""
        return self.held is None or self.held.closed

    def connection(self) -> postgres.GuardedConnection:
        """
        Return the connection; connect if there is none, and say so when there was one before.

        Raises:
            DatabaseUnavailable: It can't be had now.
        """
        found = self.held
        if found is not None and not found.closed:
            if postgres.standing(found) != "none":
                postgres.command(found, ROLLBACK)
            return found
        self.held = None
        self.held = postgres.connect(self._plant.conninfo)
        if self._was_connected:
            self._plant.reconnected()
        self._was_connected = True
        return self.held

    def is_fresh(self) -> bool:
        """Connect if needed; return whether that was a reconnect, so that what is remembered counts for nothing."""
        known = self._was_connected and self.is_lost
        self.connection()
        return known

    def cancel(self) -> None:
        """Ask the server to end the statement that runs; from any thread, best effort, bounded."""
        connection = self.held
        if connection is not None:
            with suppress(Exception):
                connection.cancel_safe(timeout=2.0)

    def terminate(self, then: Steps[None] | None = None) -> None:
        """Have the server end the session, whatever runs in it, and do *then*; from any thread, best effort."""
        connection = self.held
        if connection is not None:
            postgres.terminate(self._plant.conninfo, connection.info.backend_pid, then)

    def close(self) -> None:
        """Close the connection; an open transaction is rolled back by the server."""
        if self.held is not None:
            self.held.end()
            self.held = None
