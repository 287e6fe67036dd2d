"""See which jobs the current transaction has submitted, with their inputs decoded as a worker would decode them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast, overload
from uuid import UUID

from packhorse.core.message import TypedMessage
from packhorse.core.naming import checked_identifier
from packhorse.producer import postgres
from packhorse.producer.connections import async_driver, sync_driver
from packhorse.producer.statements import Statement, Steps
from packhorse.schemas.binding import message_type
from packhorse.schemas.decode import Decoder
from packhorse.testing.emitted import Table, class_of
from packhorse.testing.sql import SCHEMAS, SUBMITTED

if TYPE_CHECKING:
    from packhorse.producer.connections import Async, Sync

M = TypeVar("M", bound=TypedMessage)


@dataclass(frozen=True, slots=True, kw_only=True)
class Submitted(Generic[M]):
    """
    One job as it was submitted.

    Attributes:
        id: Its id.
        of: The class of its input.
        input: What it is to do.
        tenant, actor, correlation_id, causation_id, request_key, priority, one_waiting, one_running, not_before, expires_at:
            As in `packhorse.producer.jobs.drafts.JobExtra`.
    """

    id: UUID
    of: type[M]
    input: M
    tenant: str | None = None
    actor: str | None = None
    correlation_id: str | None = None
    causation_id: str | None = None
    request_key: str | None = None
    priority: str = "normal"
    one_waiting: str | None = None
    one_running: str | None = None
    not_before: datetime | None = None
    expires_at: datetime | None = None


@overload
def submitted(connection: Sync, /, *, database_schema: str = "packhorse") -> list[Submitted[Any]]: ...
@overload
def submitted(
    connection: Sync, of: type[M], /, *, database_schema: str = "packhorse"
) -> list[Submitted[M]]: ...
def submitted(
    connection: Sync, of: type[M] | None = None, /, *, database_schema: str = "packhorse"
) -> list[Submitted[Any]]:
    """
    Return the jobs that the open transaction of *connection* has submitted so far; with *of*, those of that class alone.

    A job that was given back for a request key or a name is not among them: another transaction has submitted it. Needs the
    right to SELECT on `job`, input and all.

    Raises:
        LookupError: A job's input is of a class that this process has never used; pass the class.
    """
    return postgres.run(sync_driver(connection), _found(of, database_schema))


@overload
async def asubmitted(connection: Async, /, *, database_schema: str = "packhorse") -> list[Submitted[Any]]: ...
@overload
async def asubmitted(
    connection: Async, of: type[M], /, *, database_schema: str = "packhorse"
) -> list[Submitted[M]]: ...
async def asubmitted(
    connection: Async, of: type[M] | None = None, /, *, database_schema: str = "packhorse"
) -> list[Submitted[Any]]:
    """Return the jobs of an async *connection*; promises and raises what `submitted` does."""
    return await postgres.arun(await async_driver(connection), _found(of, database_schema))


def assert_submitted(
    connection: Sync, of: type[M], /, *, times: int = 1, database_schema: str = "packhorse", **fields: Any
) -> Submitted[M]:
    """
    Assert that the open transaction has submitted exactly *times* jobs of the class *of* like this; return the first.

    Args:
        connection: As for `submit`.
        of: The class of the input.
        times: How many there are.
        database_schema: Database schema of the tables.
        fields: Values that the input has; fields not named may be anything.

    Raises:
        AssertionError: Says what was submitted instead.
    """
    return _one_of(submitted(connection, of, database_schema=database_schema), of, times, fields)


async def aassert_submitted(
    connection: Async, of: type[M], /, *, times: int = 1, database_schema: str = "packhorse", **fields: Any
) -> Submitted[M]:
    """Assert on an async *connection*; promises and raises what `assert_submitted` does."""
    found = await asubmitted(connection, of, database_schema=database_schema)
    return _one_of(found, of, times, fields)


def _found(of: type[M] | None, database_schema: str) -> Steps[list[Submitted[Any]]]:
    checked_identifier(database_schema, what="database schema")
    rows = yield Statement(SUBMITTED.format(schema=database_schema).encode(), (), returns=True)
    schemas = yield Statement(SCHEMAS.format(schema=database_schema).encode(), (), returns=True)
    decoder = Decoder(Table(dict(cast("Sequence[tuple[int, str]]", schemas))))
    wanted = message_type(of).type if of else None
    return [_decoded(row, decoder, of) for row in rows if wanted in {None, row[1]}]


def _decoded(row: tuple[Any, ...], decoder: Decoder, of: type[M] | None) -> Submitted[Any]:
    cls = of or class_of(row[1], str(row[2]))
    job_id, _, _, payload, *rest = row
    return Submitted(
        id=job_id,
        of=cls,
        input=decoder.decode(bytes(payload), cls),
        **dict(zip(_SAID, rest, strict=True)),
    )


_SAID = (
    "tenant",
    "actor",
    "correlation_id",
    "causation_id",
    "request_key",
    "priority",
    "one_waiting",
    "one_running",
    "not_before",
    "expires_at",
)


def _one_of(
    found: Sequence[Submitted[M]], of: type[M], times: int, fields: Mapping[str, Any]
) -> Submitted[M]:
    if times < 1:
        raise ValueError(
            f"times={times} is not allowed: 1 or more; for none write `assert submitted(…) == []`"
        )
    for name in fields:
        if not hasattr(of, name):
            raise ValueError(f"{of.__name__} has no field {name}")
    like = [one for one in found if all(getattr(one.input, name) == value for name, value in fields.items())]
    if len(like) != times:
        wanted = ", ".join(f"{name}={value!r}" for name, value in fields.items()) or "any"
        seen = "\n  ".join(repr(one.input) for one in found) or "none"
        raise AssertionError(
            f"{len(like)} of {times} jobs {of.__name__} ({wanted}) submitted; of this class there are:\n  {seen}"
        )
    return like[0]
