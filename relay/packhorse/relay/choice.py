"""What the relay does next: `choose(state) -> command`."""

from packhorse.relay.model import Batch, Policy, Position
from packhorse.relay.state import State
from packhorse.relay.steps import (
    Command,
    Confirm,
    Fetch,
    FlushLog,
    Leave,
    LookAtLog,
    MeasureLag,
    Own,
    RecordTrouble,
    Release,
    RenewSender,
    Save,
    Send,
    Wait,
)


def choose(state: State, *, now: float, policy: Policy) -> Command:
    """Return the one command that comes next."""
    if state.left:
        return Leave()
    if state.broken:
        return RenewSender(at_once=not state.owned or state.stop_by is not None)
    if state.stop_by is not None:
        return _stop(state, state.stop_by, now=now, policy=policy)
    if not state.owned or state.saved is None or state.sent is None:
        return Own() if now >= state.database_at else Wait(state.database_at - now)
    return _settle(state, now=now, policy=policy) or _carry(state, state.sent, now=now, policy=policy)


def _settle(state: State, *, now: float, policy: Policy) -> Command | None:
    """Return what must come before more is sent: the record of trouble, confirmations, the save."""
    if state.trouble != state.told and now >= state.database_at:
        return RecordTrouble(state.trouble)
    due = now >= state.save_at or state.fault is not None
    if state.waiting and (due or state.full or state.piece is not None):
        return Confirm(policy.confirm_slice)
    moved = state.confirmed != state.saved and not state.waiting
    if moved and ((state.unsaved and due) or now >= state.idle_save_at):
        return _database(state, _save(state), now=now)
    if policy.measure and state.saved is not None and now >= max(state.measure_at, state.database_at):
        return MeasureLag(state.saved)
    return None


def _save(state: State) -> Command:
    assert state.saved is not None
    assert state.confirmed is not None
    return Save(state.saved, state.confirmed, state.unsaved)


def _database(state: State, command: Command, *, now: float) -> Command:
    return command if now >= state.database_at else Wait(state.database_at - now)


def _carry(state: State, sent: Position, *, now: float, policy: Policy) -> Command:
    """
    Fetch, flush or send, whichever is next.

    The time until the next poll is spent waiting for confirmations: the client then sends at once instead of lingering.
    """
    if (batch := state.batch) is None:
        if now >= state.poll_at:
            return _database(state, Fetch(sent), now=now)
        pause = state.poll_at - now
        return Confirm(min(pause, policy.confirm_slice)) if state.waiting else Wait(pause)
    if batch.unflushed is not None:
        return _database(state, _flush(state, batch.unflushed, now=now, policy=policy), now=now)
    if now < state.send_at:
        return Wait(state.send_at - now)
    return _send(state, batch, now=now)


def _flush(state: State, until: str, *, now: float, policy: Policy) -> Command:
    if state.flushing_since is not None and now - state.flushing_since >= policy.flush_patience:
        return FlushLog()
    return LookAtLog(until) if now >= state.look_at else Wait(state.look_at - now)


def _send(state: State, batch: Batch, *, now: float) -> Command:
    """Send the batch, or a piece of it while a row is looked for that the broker refuses."""
    rows = batch.rows if state.piece is None else batch.rows[: state.piece]
    eager = state.poll_at <= now and state.piece is None
    return Send(rows, ahead=batch.end(len(rows)) if eager else None)


def _stop(state: State, stop_by: float, *, now: float, policy: Policy) -> Command:
    """Take nothing new; confirm and save what was sent, give the lease back, leave; without them when time is up."""
    if not state.owned or state.saved is None:
        return Leave()
    if state.waiting:
        return (
            Confirm(min(policy.confirm_slice, stop_by - now)) if now < stop_by else RenewSender(at_once=True)
        )
    if now < state.database_at:
        return Wait(state.database_at - now) if now < stop_by else Leave()
    return _save(state) if state.confirmed != state.saved else Release()
