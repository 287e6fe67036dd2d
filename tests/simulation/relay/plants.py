"""Errors to plant: each is one small change that a careless hand could make, and the checker must find every one."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from unittest.mock import patch

from tests.simulation.relay.world import Process

from packhorse.relay import after
from packhorse.relay.holds import Fault
from packhorse.relay.model import Batch, Policy, Position
from packhorse.relay.state import State
from packhorse.relay.steps import DatabaseFailed, Owned

Plant = Callable[[Process], None]


def order_by_transaction_id(process: Process) -> None:
    process.outbox.order = lambda row: (row.xid, row.seq)


def no_frozen_target(process: Process) -> None:
    process.outbox.with_target = False


def forget_who_ran_then(process: Process) -> None:
    """Read only from the horizon's xmax on, and not those that still ran when it was taken."""
    fetch = process.outbox.fetch

    def narrow(position: Position, limit: int) -> Batch:
        batch = fetch(position, limit)
        by_name = {row.name: row.xid for row in process.world.database.rows}
        xmax = int(position.horizon.split(":")[1])
        kept = [row for row in batch.rows if by_name.get(row[5], xmax) >= xmax]
        return replace(batch, rows=kept, complete=batch.complete or not kept)

    process.outbox.fetch = narrow  # type: ignore[method-assign]


def horizon_moves_to_now(process: Process) -> None:
    save = process.outbox.save

    def saved(token: object, old: Position, new: Position, rows: int) -> bool:
        if new.target is None:
            new = Position(horizon=process.world.database.snapshot())
        return save(token, old, new, rows)  # type: ignore[arg-type]

    process.outbox.save = saved  # type: ignore[method-assign]


def send_before_the_log_is_flushed(process: Process) -> None:
    process.outbox.wait_for_log = False


def client_overtakes(process: Process) -> None:
    process.broker.overtake = True


WORLD_PLANTS: tuple[Plant, ...] = (
    order_by_transaction_id,
    no_frozen_target,
    forget_who_ran_then,
    horizon_moves_to_now,
    send_before_the_log_is_flushed,
    client_overtakes,
)


@contextmanager
def save_before_confirmation() -> Iterator[None]:
    sent = after._sent

    def early(state: State, count: int, *, now: float) -> State:
        state = sent(state, count, now=now)
        return replace(state, confirmed=state.sent, unsaved=state.unsaved + count, waiting=0)

    with patch.object(after, "_sent", early):
        yield


@contextmanager
def keep_memory_over_a_reconnect() -> Iterator[None]:
    def kept(state: State, event: DatabaseFailed, *, now: float, pause: float) -> State:
        return replace(state, failures=state.failures + 1, database_at=now + pause)

    with patch.object(after, "_database_failed", kept):
        yield


@contextmanager
def pass_over_a_refused_row() -> Iterator[None]:
    """Go on behind the row once it alone was refused."""
    renewed = after._renewed

    def passed(state: State, fault: Fault | None, *, now: float, policy: Policy, pause: float) -> State:
        behind = state.sent
        alone = state.piece == 1
        state = renewed(state, fault, now=now, policy=policy, pause=pause)
        return replace(state, confirmed=behind, sent=behind) if alone else state

    with patch.object(after, "_renewed", passed):
        yield


@contextmanager
def progress_goes_on_in_a_new_target() -> Iterator[None]:
    """Read on behind the progress, but in a target taken anew."""
    owned = after._own

    def anew(state: State, event: Owned) -> State:
        at = event.position
        if at.target is not None:
            event = Owned(Position(horizon=at.target), event.deadline)
        return owned(state, event)

    with patch.object(after, "_own", anew):
        yield


CORE_PLANTS = (
    save_before_confirmation,
    keep_memory_over_a_reconnect,
    pass_over_a_refused_row,
    progress_goes_on_in_a_new_target,
)
