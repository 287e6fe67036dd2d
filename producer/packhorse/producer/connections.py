"""Tell what kind of connection or session was handed over, importing no driver that the application has not."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from packhorse.core.errors import UsageError

if TYPE_CHECKING:
    from packhorse.producer.postgres import AsyncConnection as AsyncDriver
    from packhorse.producer.postgres import SyncConnection as SyncDriver
    from packhorse.producer.sqlalchemy import AsyncConnectable, SyncConnectable

    Sync: TypeAlias = SyncDriver | SyncConnectable
    Async: TypeAlias = AsyncDriver | AsyncConnectable


def sync_driver(given: Sync) -> SyncDriver:
    """
    Return the psycopg connection that *given* is or stands on; a session is flushed first.

    Raises:
        UsageError: It is async, or no connection or session that we know.
    """
    if family_of(given) == "sqlalchemy":
        from packhorse.producer import sqlalchemy

        return sqlalchemy.driver_of(given)
    from packhorse.producer import postgres

    return postgres.checked(given)


async def async_driver(given: Async) -> AsyncDriver:
    """Return the psycopg connection that an async *given* is or stands on; promises and raises what `sync_driver` does."""
    if family_of(given) == "sqlalchemy":
        from packhorse.producer import sqlalchemy

        return await sqlalchemy.async_driver_of(given)
    from packhorse.producer import postgres

    return postgres.checked_async(given)


def family_of(given: object) -> str | None:
    """Return which library's object *given* is: "psycopg", "sqlalchemy" or None; imports neither."""
    cls = type(given)
    if cls not in _families:
        packages = (base.__module__.partition(".")[0] for base in cls.__mro__)
        _families[cls] = next((name for name in packages if name in {"psycopg", "sqlalchemy"}), None)
    return _families[cls]


_families: dict[type, str | None] = {}


def wrong_kind(given: object, allowed: str) -> UsageError:
    """Return the error for something that is no connection, or one of the other colour."""
    return UsageError(f"{type(given).__name__} is not allowed here; {allowed}")


SYNC_ALLOWED = (
    "pass a psycopg Connection, or a SQLAlchemy Connection or Session; async ones go to `await outbox.aemit(…)` and its "
    "like"
)
ASYNC_ALLOWED = (
    "pass a psycopg AsyncConnection, or a SQLAlchemy AsyncConnection or AsyncSession; sync ones go to `outbox.emit(…)` "
    "and its like"
)
