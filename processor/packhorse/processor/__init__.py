"""
Kafka to an idempotent result: handlers whose writes and the fact that a message is done are one transaction.

>>> from packhorse.processor import Processor
>>> app = Processor("billing")

Everything is imported when it is first used.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from packhorse.processor.app import Processor
    from packhorse.processor.batching import AsyncBatchContext, Batch, BatchContext, Item
    from packhorse.processor.context import AsyncContext, Context
    from packhorse.processor.erasing import Subject
    from packhorse.processor.jobs.context import AsyncJobContext, JobCancelled, JobContext
    from packhorse.processor.jobs.effects.model import (
        CANT_TELL,
        DID_NOT_HAPPEN,
        EffectConflict,
        EffectInDoubt,
        Happened,
    )
    from packhorse.processor.outcomes import Outcome, Quarantine, Reason, Skip, TransactionRefused
    from packhorse.processor.policy import Later, Retry

__all__ = [
    "CANT_TELL",
    "DID_NOT_HAPPEN",
    "AsyncBatchContext",
    "AsyncContext",
    "AsyncJobContext",
    "Batch",
    "BatchContext",
    "Context",
    "EffectConflict",
    "EffectInDoubt",
    "Happened",
    "Item",
    "JobCancelled",
    "JobContext",
    "Later",
    "Outcome",
    "Processor",
    "Quarantine",
    "Reason",
    "Retry",
    "Skip",
    "Subject",
    "TransactionRefused",
]

_HOMES = {
    "CANT_TELL": "jobs.effects.model",
    "DID_NOT_HAPPEN": "jobs.effects.model",
    "AsyncBatchContext": "batching",
    "AsyncContext": "context",
    "AsyncJobContext": "jobs.context",
    "Batch": "batching",
    "BatchContext": "batching",
    "Context": "context",
    "EffectConflict": "jobs.effects.model",
    "EffectInDoubt": "jobs.effects.model",
    "Happened": "jobs.effects.model",
    "Item": "batching",
    "JobCancelled": "jobs.context",
    "JobContext": "jobs.context",
    "Later": "policy",
    "Outcome": "outcomes",
    "Processor": "app",
    "Quarantine": "outcomes",
    "Reason": "outcomes",
    "Retry": "policy",
    "Skip": "outcomes",
    "Subject": "erasing",
    "TransactionRefused": "outcomes",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
