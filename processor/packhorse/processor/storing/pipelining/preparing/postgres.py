"""Adapter to psycopg: hear of it when all that is prepared on a connection is deallocated."""

from typing import Any, Protocol, cast
from weakref import WeakSet

import psycopg
from psycopg._preparing import PrepareManager


class Names(Protocol):
    """Who has prepared statements on a connection beside psycopg."""

    def forget_names(self) -> None:
        """Forget their names: the server has none of them any more."""


class _Heard(PrepareManager):
    listeners: "WeakSet[Any]"

    def clear(self) -> bool:
        """Forget all names; psycopg then executes DEALLOCATE ALL before anything else, which takes those of others too."""
        cleared = super().clear()
        if cleared:
            for one in self.listeners:
                cast("Names", one).forget_names()
        return cleared


def hear(connection: psycopg.BaseConnection[Any], listener: Names) -> None:
    """
    Tell *listener* from now on when psycopg deallocates all that is prepared on *connection*: after a rollback, also to a
    savepoint, and after some statements that change tables.
    """
    prepared = connection._prepared  # noqa: SLF001 nothing else says when it does that
    if not isinstance(prepared, _Heard):
        prepared.__class__ = _Heard
        cast("_Heard", prepared).listeners = WeakSet()
    cast("_Heard", prepared).listeners.add(listener)
