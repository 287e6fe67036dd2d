"""What the relay knows after something happened: `apply(state, event) -> state`."""

from dataclasses import replace

from packhorse.core.backoff import Backoff, delay_after
from packhorse.relay.holds import Fault
from packhorse.relay.model import ID, Batch, Policy
from packhorse.relay.state import State
from packhorse.relay.steps import (
    Confirmed,
    DatabaseFailed,
    Event,
    Fetched,
    LagMeasured,
    LogFlushed,
    Owned,
    OwnedElsewhere,
    OwnerChanged,
    Refused,
    Released,
    Renewed,
    Saved,
    SenderRenewed,
    Sent,
    StopAsked,
    TroubleRecorded,
    Unconfirmed,
)

LONGEST_SAVE_PAUSE = 5.0
"""Seconds; however slow the broker confirms, this is what a kill repeats at most."""


def apply(state: State, event: Event, *, now: float, policy: Policy, jitter: float) -> State:  # noqa: C901, PLR0911, PLR0912 one line an event
    """Return the state after *event*."""
    match event:
        case Owned():
            return _own(state, event)
        case OwnedElsewhere():
            return replace(state, owned=False, database_at=now + policy.standby_poll)
        case Renewed(deadline):
            return replace(state, deadline=max(state.deadline, deadline))
        case OwnerChanged():
            return lose(state, now=now, policy=policy)
        case Fetched(batch):
            return _fetched(state, batch, now=now, policy=policy)
        case LogFlushed(reached):
            return _log_flushed(state, reached, now=now, policy=policy)
        case Sent(count):
            return _sent(state, count, now=now)
        case Confirmed():
            return _confirmed(state, now=now, policy=policy)
        case Unconfirmed():
            return _unconfirmed(state, now=now, policy=policy)
        case Refused():
            return _refused(state, event, now=now, pause=_pause(state, policy, jitter))
        case SenderRenewed(fault):
            return _renewed(state, fault, now=now, policy=policy, pause=_pause(state, policy, jitter))
        case Saved():
            return replace(
                state, saved=state.confirmed, unsaved=0, failures=state.failures if state.trouble else 0,
                save_at=now + max(state.save_pause, policy.save), idle_save_at=now + policy.idle_save,
            )  # fmt: skip
        case TroubleRecorded():
            return replace(state, told=state.trouble)
        case LagMeasured():
            return replace(state, measure_at=now + policy.measure)
        case DatabaseFailed():
            return _database_failed(state, event, now=now, pause=_pause(state, policy, jitter))
        case StopAsked():
            return state if state.stop_by is not None else replace(state, stop_by=now + policy.stop_within)
        case Released():
            return replace(state, left=True)
    return state


def _pause(state: State, policy: Policy, jitter: float) -> float:
    backoff = Backoff(first=policy.retry_first, longest=policy.retry_longest)
    return delay_after(state.failures + 1, backoff, jitter=jitter)


def _own(state: State, event: Owned) -> State:
    """Begin at the position in the table; rows still on their way from before are confirmed together with what follows."""
    at = event.position
    return replace(
        state, owned=True, deadline=event.deadline, saved=at, confirmed=at, sent=at, unsaved=0, batch=None,
        full=False, flushing_since=None, told=event.trouble,
    )  # fmt: skip


def lose(state: State, *, now: float, policy: Policy) -> State:
    """Forget everything; what is on its way is dropped by making the client anew."""
    return State(
        broken=state.broken or state.waiting > 0, database_at=now + policy.standby_poll, stop_by=state.stop_by
    )


def _fetched(state: State, batch: Batch, *, now: float, policy: Policy) -> State:
    if batch.start != state.sent:
        return state
    if not batch.rows:
        at = batch.end(0)
        busy = now < state.busy_until
        state = replace(
            state, sent=at, confirmed=state.confirmed if state.waiting else at,
            poll_at=now + (policy.poll if busy else policy.idle_poll),
            failures=state.failures if state.unsaved or state.waiting else 0,
        )  # fmt: skip
        return state if state.waiting else _healed(state)
    eager = not batch.complete or 2 * len(batch.rows) >= policy.batch_rows
    return replace(
        state, batch=batch, busy_until=now + policy.idle_after, poll_at=now if eager else now + policy.poll,
        flushing_since=now, look_at=now,
    )  # fmt: skip


def _log_flushed(state: State, reached: bool, *, now: float, policy: Policy) -> State:
    if state.batch is None or not reached:
        return replace(state, look_at=now + policy.flush_poll)
    return replace(state, batch=replace(state.batch, unflushed=None), flushing_since=None)


def _sent(state: State, count: int, *, now: float) -> State:
    batch = state.batch
    if batch is None:
        return state
    if count and state.fault is not None and batch.rows[0][ID] == state.fault.id and state.piece is None:
        state = _healed(state)
    whole = count == len(batch.rows)
    return replace(
        state, sent=batch.end(count), waiting=state.waiting + count, batch=None if whole else batch.after(count),
        full=not whole, waiting_since=now if state.waiting_since is None else state.waiting_since,
    )  # fmt: skip


def _healed(state: State) -> State:
    return replace(state, fault=None, piece=None, trouble=None)


def _confirmed(state: State, *, now: float, policy: Policy) -> State:
    drained = 0.0 if state.draining_since is None else now - state.draining_since
    pause = min(drained * (1 / policy.drain_share - 1), LONGEST_SAVE_PAUSE)
    moved = state.sent != state.confirmed
    state = replace(
        state, confirmed=state.sent, unsaved=state.unsaved + state.waiting if moved else 0, waiting=0,
        waiting_since=None, draining_since=None, full=False, save_pause=pause,
    )  # fmt: skip
    if state.piece is None:
        return state if state.fault is not None else _healed(state)
    larger = 2 * state.piece
    return _healed(state) if larger > policy.batch_rows else replace(state, piece=larger, failures=0)


def _unconfirmed(state: State, *, now: float, policy: Policy) -> State:
    silent = state.waiting_since is not None and now - state.waiting_since > policy.silence
    text = "the broker confirms nothing; rows wait in the client and go on by themselves when it answers"
    return replace(state, full=False, trouble=text if silent and state.fault is None else state.trouble)


def _refused(state: State, event: Refused, *, now: float, pause: float) -> State:
    """
    Stop sending behind the row.

    A row that was looked at and not handed over is at fault for certain: what stands before it is confirmed and saved
    first, then it is tried again. After a failed report the client is made anew, and then told what failed.
    """
    state = _sent(state, event.sent, now=now) if event.sent else state
    if event.broken:
        return replace(state, broken=True, full=False)
    return replace(
        state, fault=event.fault, full=False, send_at=now + pause, failures=state.failures + 1,
        trouble=str(event.fault) if event.fault is not None else event.reason,
    )  # fmt: skip


def _renewed(state: State, fault: Fault | None, *, now: float, policy: Policy, pause: float) -> State:
    """
    Begin behind what was confirmed, with fewer rows at a time.

    The broker refuses whole requests, so that the first row reported need not be the one at fault. Half as many rows go
    next, and half of that, until one row alone is refused; that one is tried with growing pauses.
    """
    outstanding, piece = state.waiting, state.piece
    state = replace(
        state, broken=False, waiting=0, waiting_since=None, draining_since=None, sent=state.confirmed, batch=None,
        full=False, flushing_since=None, poll_at=now,
    )  # fmt: skip
    if not outstanding and fault is None:
        return state
    if fault is None or piece == 1:
        text = "the Kafka client was made anew" if fault is None else str(fault)
        return replace(state, fault=fault, trouble=text, failures=state.failures + 1, send_at=now + pause)
    smaller = max(1, min(outstanding, piece or policy.batch_rows) // 2)
    text = f"the broker refuses rows for topic {fault.topic} ({fault.reason}); looking for the one at fault"
    return replace(state, fault=fault, trouble=text, piece=smaller, send_at=now + policy.retry_first)


def _database_failed(state: State, event: DatabaseFailed, *, now: float, pause: float) -> State:
    state = replace(state, failures=state.failures + 1, database_at=now + pause)
    if event.connected:
        # Once may be chance: a lock, a time-out. Twice in a row stands in the table, which can still be written.
        return replace(state, trouble=event.reason) if state.failures > 1 and state.fault is None else state
    return replace(state, saved=None, confirmed=None, sent=None, batch=None, unsaved=0, flushing_since=None)
