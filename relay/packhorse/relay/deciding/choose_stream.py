"""What the relay does next on its way into the stream, and in it."""

from packhorse.relay.deciding import commands as c
from packhorse.relay.deciding.after_stream import past, wanted
from packhorse.relay.deciding.state import State, Stream
from packhorse.relay.model import Policy

PROMPT = 0.002
"""Seconds to wait for confirmations between two reads: the client sends at once meanwhile instead of lingering."""


def way_in(state: State, *, now: float, policy: Policy) -> c.Command | None:
    """Return the next step towards the stream, in the pause before a poll; None: go on polling."""
    stream = state.stream
    if stream is None:
        caught_up = now < state.poll_at and not state.waiting
        return c.PrepareSlot() if caught_up and wanted(state, now=now, mode=policy.mode) else None
    if now >= state.slot_at:
        return c.LookAtSlot()
    at = state.confirmed
    if state.waiting or at is None or at.target is not None or at != state.sent or state.piece is not None:
        return None
    return c.StartStream(at.horizon, stream.at) if past(at.horizon, stream.fence) else None


def carry(state: State, *, now: float, policy: Policy) -> c.Command:
    """
    Send what was read, mark a horizon now and then, read on.

    Nothing is read before the table has heard of the mode: that write, through the connection that the horizon was read
    through, proves that the database has not started anew since, and that the horizon is still a fact.
    """
    stream = state.stream
    assert stream is not None
    if state.mode_told != (state.mode, state.mode_cause):
        return c.Wait(max(state.database_at - now, 0.001))
    if now >= state.slot_at:
        return c.LookAtSlot()
    if stream.rows:
        if state.fault is not None:
            return c.Confirm(policy.confirm_slice)
        return c.Send(stream.rows, ahead=None) if now >= state.send_at else c.Wait(state.send_at - now)
    if stream.mark is None and _mark_due(state, stream, now=now) and now >= state.database_at:
        return c.MarkHorizon()
    if stream.mark is not None and stream.sent >= stream.mark[1] and state.waiting:
        return c.Confirm(policy.confirm_slice)
    if state.waiting and stream.caught_up:
        return c.Confirm(PROMPT)
    pause = 0.0 if state.waiting else policy.confirm_slice
    return c.ReadStream(pause, stream.confirmed, ask=stream.mark is not None)


def close(state: State, *, policy: Policy) -> c.Command | None:
    """Return what makes the horizon of what was sent before a clean stop, so that nothing of it goes out again; None: it is done."""
    stream = state.stream
    assert stream is not None
    idle = stream.mark is None and not state.unsaved and not state.waiting
    if stream.closed or idle:
        return None
    if stream.mark is None:
        return c.MarkHorizon()
    if stream.rows:
        full = state.waiting and (state.full or state.fault is not None)
        return c.Confirm(policy.confirm_slice) if full else c.Send(stream.rows, ahead=None)
    if stream.sent >= stream.mark[1]:
        return c.Confirm(policy.confirm_slice)
    return c.ReadStream(policy.confirm_slice, stream.confirmed, ask=True)


def _mark_due(state: State, stream: Stream, *, now: float) -> bool:
    if state.unsaved or state.waiting:
        return now >= state.save_at
    return now >= state.idle_save_at and stream.confirmed > stream.at
