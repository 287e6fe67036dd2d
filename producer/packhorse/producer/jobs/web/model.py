"""What an application is asked about a request, and what it answers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, Unpack

from packhorse.core.errors import ValueMismatch
from packhorse.core.message import TypedMessage
from packhorse.producer.jobs.drafts import JobExtra, JobHandle
from packhorse.producer.jobs.reading import Job
from packhorse.schemas.redaction import shown
from packhorse.schemas.sent import message_from_json

if TYPE_CHECKING:
    from packhorse.producer.outbox import Outbox
    from packhorse.producer.postgres import AsyncConnection

M = TypeVar("M", bound=TypedMessage)


class Act(StrEnum):
    """What somebody wants to do with a job."""

    SUBMIT = "submit"
    READ = "read"
    CANCEL = "cancel"


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """
    What the application is asked: may whoever sent this request do this?

    Attributes:
        act: What they want to do.
        kind: The name in the address, when a job is to be submitted.
        job: The one that is to be read or cancelled. None when one is to be submitted, and for an id that is not known: the
            answer is the same then, unless it is NotSignedIn.
        scope: The request's ASGI scope: what middleware has put there, such as `scope["user"]`, is in it.
    """

    act: Act
    kind: str | None
    job: Job | None
    scope: Mapping[str, Any] = field(repr=False)

    def header(self, name: str) -> str | None:
        """Return the request's header *name*, in small letters; None when it is missing or comes more than once."""
        return header_of(self.scope, name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """
    Who may do what was asked.

    Attributes:
        actor: Goes on record with what they do.
        tenant: For whom they act: jobs are submitted for it, and those of another one are not there for them. None: the
            application keeps tenants apart itself, or has none.
    """

    actor: str
    tenant: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """
    A request for a job, from which the application's function makes the job.

    Attributes:
        body: The JSON object that was sent.
        caller: Who sent it.
        request_key: The Idempotency-Key; None without one.
        connection: A psycopg AsyncConnection: what is written there is committed with the job, or not at all.
        outbox: What the job is submitted with.
        scope: The request's ASGI scope.
    """

    body: Mapping[str, Any] = field(repr=False)
    caller: Caller
    request_key: str | None = field(repr=False)
    connection: AsyncConnection = field(repr=False)
    outbox: Outbox = field(repr=False)
    scope: Mapping[str, Any] = field(repr=False)

    def read(self, cls: type[M], **given: Any) -> M:
        """
        Return the body as a message of class *cls*; *given* are fields that the application says, and the sender may not.

        Raises:
            ValueMismatch: A value does not fit; the caller is answered with 422 and the field.
        """
        if both := sorted(given.keys() & self.body.keys()):
            raise ValueMismatch(
                f"{both[0]} is not for the sender to say", path=both[0], allowed="nothing: leave it out"
            )
        return message_from_json(cls, {**self.body, **{name: shown(value) for name, value in given.items()}})

    async def submit(self, job: M, **extra: Unpack[JobExtra]) -> JobHandle[M]:
        """
        Submit *job* for the caller, with the request's key; *extra* as `Outbox.submit` takes it, and wins.

        Look at `is_new` before you write rows of your own: the same request gives the job that is there already.

        Raises:
            RequestKeyConflict, InvalidMessage: As `Outbox.submit`; the caller is answered with 409 or 422.
        """
        said: JobExtra = {
            "actor": self.caller.actor,
            "tenant": self.caller.tenant,
            "request_key": self.request_key,
        }
        said.update(extra)
        return await self.outbox.asubmit(self.connection, job, **said)


Authorise: TypeAlias = Callable[[Asked], "Caller | Awaitable[Caller | None] | None"]
"""Say who sent a request, if they may do what it asks; None if not. May raise NotSignedIn, which answers 401."""
Make: TypeAlias = Callable[[Order], Awaitable[JobHandle[Any]]]
"""Submit the job of a request. May raise InvalidMessage, which answers 422 with its text, and Forbidden, which answers 403."""
Links: TypeAlias = Callable[[Job], Mapping[str, str]]
"""Name addresses that belong to a job, such as `result` and `request`."""


def header_of(scope: Mapping[str, Any], name: str) -> str | None:
    """Return the header *name* of a request, in small letters; None when it is missing or comes more than once."""
    found: list[bytes] = [value for key, value in scope["headers"] if key == name.encode("latin-1")]
    return found[0].decode("latin-1") if len(found) == 1 else None
