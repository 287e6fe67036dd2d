"""What an application says of a job, and what it gets back."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Generic, TypedDict, TypeVar
from uuid import UUID

from packhorse.core.jobs import Priority
from packhorse.core.message import TypedMessage

M = TypeVar("M", bound=TypedMessage)


class JobExtra(TypedDict, total=False):
    """
    What may be said of a job beside its input.

    Attributes:
        request_key: The same key and input give the same job, another input is a conflict; 1 to 200 characters. It holds for
            the type and the tenant, as long as the job's row is kept.
        tenant, actor, correlation_id, causation_id: Win over the current `message_context`.
        priority: "high" and "low" have topics of their own, the type's with `.high` and `.low`; "normal" if left out.
        not_before: The job is not handed out before; aware.
        expires_at: After this no run begins; aware, to come, and after not_before.
        one_waiting: A name: while a job of this type and name waits for its first run, that one is given back.
        one_running: A name: of the jobs of this type and name one runs at a time.
        headers: Further headers of its message, text to text.
        id: The job's id, to be unique for all time; drawn when it is not given.
    """

    request_key: str | None
    tenant: str | None
    priority: Priority
    not_before: datetime | None
    expires_at: datetime | None
    one_waiting: str | None
    one_running: str | None
    actor: str | None
    correlation_id: str | None
    causation_id: str | None
    headers: Mapping[str, str] | None
    id: UUID | None


@dataclass(frozen=True, slots=True, kw_only=True)
class JobDraft(Generic[M]):
    """
    One job to submit, with all that can be said about it; `submit_many` takes them.

    Attributes:
        input: An object of a class that `packhorse schemas generate` wrote: what the job is to do.
        request_key, tenant, priority, not_before, expires_at, one_waiting, one_running, actor, correlation_id, causation_id,
        headers, id: As in `JobExtra`.
    """

    input: M
    request_key: str | None = None
    tenant: str | None = None
    priority: Priority = "normal"
    not_before: datetime | None = None
    expires_at: datetime | None = None
    one_waiting: str | None = None
    one_running: str | None = None
    actor: str | None = None
    correlation_id: str | None = None
    causation_id: str | None = None
    headers: Mapping[str, str] | None = None
    id: UUID | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class JobHandle(Generic[M]):
    """
    A job that was accepted, which is not done yet.

    Attributes:
        id: Asks for its state, and stands in logs, headers and addresses.
        type: Full name of its input's Avro record.
        is_new: False when the request key or the name stood for a job already: this is that one.
    """

    id: UUID
    type: str
    is_new: bool


class Cancelling(StrEnum):
    """What a cancelling came to."""

    CANCELLED = "cancelled"
    """It won't run, or was cancelled before."""
    ASKED = "asked"
    """It runs: its worker is told, and stops where its code looks."""
