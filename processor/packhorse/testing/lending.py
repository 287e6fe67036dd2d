"""What a handler is lent in a test: as in production, but what it queues runs at once."""

from __future__ import annotations

from typing import Any

from packhorse.processor.running.resources import AsyncLent, Lent


class _AtOnce:
    """A queue that runs each statement at once, in its place among those of the test's own session."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def execute(self, query: Any, params: Any = None) -> None:
        """Execute *query*."""
        self._connection.execute(query, params)


class _AsyncAtOnce:
    """As `_AtOnce`, on an async connection."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    async def execute(self, query: Any, params: Any = None) -> None:
        """Execute *query*."""
        await self._connection.execute(query, params)


class LentForTest(Lent):
    """The resources of a `def` handler in a test."""

    @property
    def pipeline(self) -> Any:
        """Return what runs statements at once."""
        return _AtOnce(self.connection)


class AsyncLentForTest(AsyncLent):
    """The resources of an `async def` handler in a test."""

    @property
    def pipeline(self) -> Any:
        """Return what runs statements at once."""
        return _AsyncAtOnce(self.connection)
