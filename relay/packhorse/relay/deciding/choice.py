"""What the relay does next: `choose(state) -> command`."""

from packhorse.relay.deciding import choose_release, choose_stream
from packhorse.relay.deciding import commands as c
from packhorse.relay.deciding.after_sending import silence_of
from packhorse.relay.deciding.state import State
from packhorse.relay.model import Batch, Policy, Position

AWAIT_REPORTS = 10.0
"""Seconds that outstanding reports are awaited for after one failed."""
AWAIT_OTHERS = 1.0
"""The same, where some partitions are known never to answer."""


def choose(state: State, *, now: float, policy: Policy) -> c.Command:
    """Return the one command that comes next."""
    if state.left:
        return c.Leave()
    hurry = not state.owned or state.stop_by is not None
    if state.broken:
        return c.RenewSender(0.0 if hurry else AWAIT_OTHERS if state.unreachable else AWAIT_REPORTS)
    if state.release is not None and state.release.broken:
        return c.RenewReleaser(0.0 if hurry else AWAIT_OTHERS)
    if state.leaving is not None:
        return c.StopStream(drop=state.drop_slot)
    if state.stop_by is not None:
        return _stop(state, state.stop_by, now=now, policy=policy)
    if not state.owned or state.saved is None or state.sent is None:
        return c.Own() if now >= state.database_at else c.Wait(state.database_at - now)
    return _settle(state, now=now, policy=policy) or _carry(state, state.sent, now=now, policy=policy)


def _settle(state: State, *, now: float, policy: Policy) -> c.Command | None:
    """Return what must come before more is sent: records, orders, confirmations, the save."""
    if now >= state.database_at and (told := _tell(state)) is not None:
        return told
    changed = state.holds != state.saved_holds
    due = now >= state.save_at or state.fault is not None or changed
    if state.waiting:
        if silence_of(state, now) > policy.silence and now >= state.broker_at:
            return c.LookAtBroker()
        if state.full or state.piece is not None or (due and not state.streaming) or changed:
            return c.Confirm(policy.confirm_slice)
        return None
    moved = state.confirmed != state.saved
    if changed or (moved and ((state.unsaved and due) or now >= state.idle_save_at)):
        return _database(state, _save(state), now=now)
    if policy.measure and state.saved is not None and now >= max(state.measure_at, state.database_at):
        return c.MeasureLag(state.saved)
    return choose_release.probe(state, now=now)


def _tell(state: State) -> c.Command | None:
    if state.trouble != state.told:
        return c.RecordTrouble(state.trouble)
    if (state.mode, state.mode_cause) != state.mode_told:
        return c.RecordMode(state.mode, state.mode_cause)
    return c.ReadOrders() if state.orders != state.orders_read else None


def _save(state: State) -> c.Command:
    assert state.saved is not None
    assert state.confirmed is not None
    open_ = {hold.scope: hold for hold in state.holds}
    before = {hold.scope: hold for hold in state.saved_holds}
    ended = [c.HoldChange(scope, None) for scope in before if scope not in open_]
    changes = [c.HoldChange(scope, hold) for scope, hold in open_.items() if before.get(scope) != hold]
    return c.Save(state.saved, state.confirmed, state.unsaved, (*ended, *changes))


def _database(state: State, command: c.Command, *, now: float) -> c.Command:
    return command if now >= state.database_at else c.Wait(state.database_at - now)


def _carry(state: State, sent: Position, *, now: float, policy: Policy) -> c.Command:
    """
    Carry rows on: of the stream, of a release, or of the next poll.

    A release and the polls take turns; while the two are about to meet, the relay itself stands still.
    """
    if state.streaming:
        return choose_stream.carry(state, now=now, policy=policy)
    if choose_release.standing(state, now=now):
        if state.waiting:
            return c.Confirm(policy.confirm_slice)
        return choose_release.step(state, pause=0.01, now=now, policy=policy) or c.Wait(0.001)
    command = _poll(state, sent, now=now, policy=policy)
    idle = isinstance(command, (c.Wait, c.Confirm))
    if state.release is not None and (idle or state.turn):
        pause = min(0.01, getattr(command, "seconds", 0.01)) if idle else 0.0
        return choose_release.step(state, pause=pause, now=now, policy=policy) or command
    return command


def _poll(state: State, sent: Position, *, now: float, policy: Policy) -> c.Command:
    """
    Fetch, flush or send, whichever is next.

    The time until the next poll is spent waiting for confirmations: the client then sends at once instead of lingering.
    """
    if (batch := state.batch) is None:
        if state.finish and sent.target is None:
            return _finish(state, now=now, policy=policy)
        if (way := choose_stream.way_in(state, now=now, policy=policy)) is not None:
            return _database(state, way, now=now)
        if now >= state.poll_at:
            return _database(state, c.Fetch(sent), now=now)
        pause = state.poll_at - now
        return c.Confirm(min(pause, policy.confirm_slice)) if state.waiting else c.Wait(pause)
    if batch.unflushed is not None:
        return _database(state, _flush(state, batch.unflushed, now=now, policy=policy), now=now)
    if now < state.send_at:
        return c.Wait(state.send_at - now)
    return _send(state, batch, now=now)


def _finish(state: State, *, now: float, policy: Policy) -> c.Command:
    """The shards change: save what was done and give the lease back."""
    if state.waiting:
        return c.Confirm(policy.confirm_slice)
    return _database(state, _save(state) if state.confirmed != state.saved else c.Release(), now=now)


def _flush(state: State, until: str, *, now: float, policy: Policy) -> c.Command:
    if state.flushing_since is not None and now - state.flushing_since >= policy.flush_patience:
        return c.FlushLog()
    return c.LookAtLog(until) if now >= state.look_at else c.Wait(state.look_at - now)


def _send(state: State, batch: Batch, *, now: float) -> c.Command:
    """Send the batch, or a piece of it while a row is looked for that the broker refuses."""
    rows = batch.rows if state.piece is None else batch.rows[: state.piece]
    eager = state.poll_at <= now and state.piece is None
    return c.Send(rows, ahead=batch.end(len(rows)) if eager else None)


def _stop(state: State, stop_by: float, *, now: float, policy: Policy) -> c.Command:
    """Take nothing new; confirm and save what was sent, give the lease back, leave; without them when time is up."""
    if state.streaming and now < stop_by and now >= state.database_at:
        if (last := choose_stream.close(state, policy=policy)) is not None:
            return last
        if state.confirmed != state.saved and not state.waiting:
            return _save(state)
    if state.stream is not None:
        return c.StopStream()
    if state.release is not None:
        return c.RenewReleaser(0.0)
    if not state.owned or state.saved is None:
        return c.Leave()
    if state.waiting:
        return c.Confirm(min(policy.confirm_slice, stop_by - now)) if now < stop_by else c.RenewSender(0.0)
    if now < state.database_at:
        return c.Wait(state.database_at - now) if now < stop_by else c.Leave()
    return _save(state) if state.confirmed != state.saved or state.holds != state.saved_holds else c.Release()
