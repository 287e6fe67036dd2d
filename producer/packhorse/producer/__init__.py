"""
Write messages to the outbox and submit jobs, in the caller's own transaction; the tables and their migrations.

>>> from packhorse.producer import Outbox
>>> outbox = Outbox(origin="shop")

Everything is imported when it is first used; drivers only when a connection of theirs is handed over.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from packhorse.producer.context import MessageContext, current_context, message_context
    from packhorse.producer.jobs.drafts import Cancelling, JobDraft, JobHandle
    from packhorse.producer.jobs.messages import JobReference
    from packhorse.producer.jobs.reading import Effect, Job, Progress, Transition
    from packhorse.producer.jobs.status import Jobs
    from packhorse.producer.outbox import Outbox
    from packhorse.producer.rows import Outgoing, Tombstone

__all__ = [
    "Cancelling",
    "Effect",
    "Job",
    "JobDraft",
    "JobHandle",
    "JobReference",
    "Jobs",
    "MessageContext",
    "Outbox",
    "Outgoing",
    "Progress",
    "Tombstone",
    "Transition",
    "current_context",
    "message_context",
]

_HOMES = {
    "Cancelling": "jobs.drafts",
    "Effect": "jobs.reading",
    "Job": "jobs.reading",
    "JobDraft": "jobs.drafts",
    "JobHandle": "jobs.drafts",
    "JobReference": "jobs.messages",
    "Jobs": "jobs.status",
    "MessageContext": "context",
    "Outbox": "outbox",
    "Outgoing": "rows",
    "Progress": "jobs.reading",
    "Tombstone": "rows",
    "Transition": "jobs.reading",
    "current_context": "context",
    "message_context": "context",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
