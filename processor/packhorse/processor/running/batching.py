"""How a batch handler's answers are judged: each as if the handler had raised it for that message alone."""

from typing import Any

from packhorse.processor.batching import Answer, AsyncBatchContext, Batch, BatchContext, Item
from packhorse.processor.handlers import Handler
from packhorse.processor.outcomes import Reason
from packhorse.processor.running.faults import ran_of
from packhorse.processor.running.work import (
    RETURNED,
    RETURNED_UNTOUCHED,
    Failure,
    Ran,
)

__all__ = ["AsyncBatchContext", "Batch", "BatchContext", "Item", "answers"]

_OF_THE_LANE = {Failure.CONNECTION, Failure.CONTENTION}
"""Ends that only the transaction itself can come to: in an answer they are an error like any other, since it went on."""


def answers(batch: Batch[Any], handler: Handler | None, *, touched: bool) -> list[Ran]:
    """
    Return how the run of *batch*, whose handler returned, ended for each item, in order.

    Args:
        batch: The batch, closed.
        handler: The handler, which declares errors.
        touched: It asked for the transaction. Answers other than done have nothing to roll back: what was written was
            written for the others.
    """
    rans = [RETURNED if touched else RETURNED_UNTOUCHED] * len(batch)
    for place, answer in batch.answers.given.items():
        rans[place] = _ran(answer, handler)
    return rans


def _ran(answer: Answer, handler: Handler | None) -> Ran:
    if answer.error is None:
        return Ran(Failure.TEMPORARY, Reason.FAILED.value, "", touched=False, after=answer.after)
    ran = ran_of(answer.error, handler, touched=False, alive=True)
    if answer.after is not None or ran.failure in _OF_THE_LANE:
        return ran._replace(failure=Failure.TEMPORARY, reason=Reason.FAILED.value, after=answer.after)
    return ran
