"""Errors planted into the product's own code, to see that the checker finds them."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from tests.simulation.processor.world import World

from packhorse.processor.member.desk import Desk
from packhorse.processor.partition.deciding import _fetched as deciding_fetched
from packhorse.processor.partition.events import (
    BatchEnded,
)
from packhorse.processor.partition.orders import (
    Commit,
)
from packhorse.processor.partition.state import (
    Limits,
    PartitionState,
)
from packhorse.processor.running.batch import Batch, run_batch
from packhorse.processor.running.work import (
    MoveWatermark,
    Request,
    RollBack,
    RollBackToSavepoint,
    Work,
    Write,
)

Answer = Callable[[Work, Request], tuple[Request | None, Any]]


def rewritten(
    ask: Callable[[Work, Request], Request | None],
    hear: Callable[[Work, Request, Any], Any] = lambda work, request, answer: answer,
    *,
    deaf: type[Exception] | None = None,
) -> type[World]:
    """
    Return a world in which the batch's requests pass through *ask* and their answers through *hear*.

    A request that *ask* turns into None is not carried out and answered with True; errors of the class *deaf* are taken
    for success.
    """

    def planted(work: Work, *more: Any, **options: Any) -> Batch:
        batch = run_batch(work, *more, **options)
        answer: Any = None
        try:
            request = next(batch)
            while True:
                carried = ask(work, request)
                error: Exception | None = None
                if carried is None:
                    answer = True
                else:
                    try:
                        answer = hear(work, request, (yield carried))
                    except Exception as caught:  # noqa: BLE001 handed on
                        error = caught
                if error is not None and deaf is not None and isinstance(error, deaf):
                    error, answer = None, None
                request = batch.send(answer) if error is None else batch.throw(error)
        except StopIteration as done:
            ended: BatchEnded = done.value
            return ended

    class Planted(World):
        run_batch = staticmethod(planted)

    return Planted


def jump_the_gap(work: Work, request: Request) -> Request:
    """Move the watermark behind the whole batch, whatever of it is dealt with."""
    if isinstance(request, MoveWatermark):
        return request._replace(new=work.deliveries[-1].record.offset + 1)
    return request


def without_inbox_rows(work: Work, request: Request) -> Request | None:
    """Commit results without the fact that they are done."""
    del work
    return None if isinstance(request, Write) else request


def without_roll_back(work: Work, request: Request) -> Request | None:
    """Leave what a failed member has written in the transaction."""
    del work
    return None if isinstance(request, RollBack | RollBackToSavepoint) else request


def unchanged(work: Work, request: Request) -> Request:
    """Plant nothing here."""
    del work
    return request


def commit_what_was_read(
    state: PartitionState, limits: Limits, *, now: float
) -> tuple[PartitionState, tuple[Commit, ...]]:
    """Commit the offset that was read, as a client's auto-commit does."""
    if state.committing is not None or now < state.commit_at or state.expected == state.committed:
        return state, ()
    sent = replace(state, committing=state.expected, commit_at=now + limits.commit_every)
    return sent, (Commit(position=state.expected, leader_epoch=None),)


def stay_deaf(self: Desk, places: Any = None) -> None:
    """Remember everything after a reconnect."""


def believe(state: PartitionState, event: Any, at: Any) -> Any:
    """Take every fetch for what was asked for."""
    return deciding_fetched(replace(state, unproved=False), event, at)
