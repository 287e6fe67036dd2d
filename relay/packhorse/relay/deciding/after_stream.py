"""
What the relay knows after something happened to the stream.

The way in: a slot that stands, a fence drawn behind it, polling until the horizon is past the fence, then the stream without what
the horizon has. While streaming, a snapshot becomes the horizon once all up to a position of the log read after it is
confirmed. The way out is polling from the horizon: what came since is sent again, nothing is passed over.
"""

from packhorse.relay.cdc.stream import Cause
from packhorse.relay.deciding import events_stream as e
from packhorse.relay.deciding.handlers import Handlers
from packhorse.relay.deciding.moment import Moment
from packhorse.relay.deciding.state import State, Stream, replace
from packhorse.relay.model import Position

FEW_ROWS = 200
"""A read that brings fewer has caught up."""
_OUR_OWN = frozenset(
    {Cause.RELEASE, Cause.FINISH, Cause.STOP, Cause.OWNER_CHANGED, Cause.CLIENT_RENEWED, Cause.DATABASE_AWAY}
)
"""Causes of leaving that say nothing against the stream."""


def leave(state: State, cause: Cause, *, drop: bool = False) -> State:
    """Return the state that leaves the stream, or the way to it, for *cause*."""
    if state.stream is None:
        return state
    return replace(state, leaving=state.leaving or cause, drop_slot=state.drop_slot or drop)


def wanted(state: State, *, now: float, mode: str) -> bool:
    """Tell whether a stream is to be looked for now."""
    idle = state.release is None and not any(hold.releasing for hold in state.holds)
    free = state.stream is None and not state.preparing and not state.finish
    return mode != "polling" and free and idle and now >= state.stream_at


def past(horizon: str, fence: int) -> bool:
    """
    Tell whether every transaction up to *fence* is over in *horizon*.

    >>> past("7:9:7", 7), past("8:9:8", 7)
    (False, True)
    """
    return int(horizon.partition(":")[0]) > fence


def _slot_asked(state: State, event: e.SlotAsked, at: Moment) -> State:
    del event, at
    return replace(state, preparing=True)


def _slot_ready(state: State, event: e.SlotReady, at: Moment) -> State:
    """Go on towards the stream, if nobody has changed their mind meanwhile."""
    asked = state.preparing
    state = replace(state, preparing=False)
    if not asked or not state.owned or state.confirmed is None or state.finish or state.stop_by is not None:
        return state
    stream = Stream(fence=event.slot.fence, at=event.slot.at)
    return replace(state, stream=stream, slot_at=at.now + at.policy.slot_look, poll_at=at.now)


def _started(state: State, event: e.StreamStarted, at: Moment) -> State:
    del event, at
    assert state.stream is not None
    begin = state.stream.at
    stream = replace(
        state.stream, running=True, received=begin, sent=begin, confirmed=begin, rows=(), mark=None
    )
    return replace(state, stream=stream, batch=None, mode="cdc", mode_cause=Cause.CAUGHT_UP)


def _streamed(state: State, event: e.Streamed, at: Moment) -> State:
    del at
    if state.stream is None:
        return state
    rows, received = event.batch.rows, event.batch.received
    passed = state.screen.passed(rows) if state.holds else rows
    stream = replace(
        state.stream, rows=passed, received=received, sent=state.stream.sent if passed else received,
        caught_up=len(rows) < FEW_ROWS,
    )  # fmt: skip
    if not state.waiting and not passed:
        stream = replace(stream, confirmed=received)
    return _marked(replace(state, stream=stream, stream_failures=0))


def taken(state: State, count: int) -> State:
    """Count *count* more of the stream's rows in hand as sent."""
    stream = state.stream
    assert stream is not None
    rest = stream.rows[count:]
    return replace(
        state, waiting=state.waiting + count, full=bool(rest),
        stream=replace(stream, rows=rest, sent=stream.sent if rest else stream.received),
    )  # fmt: skip


def confirmed(state: State) -> State:
    """Take in that all of the stream that was sent is confirmed."""
    assert state.stream is not None
    return _marked(replace(state, stream=replace(state.stream, confirmed=state.stream.sent)))


def _marked(state: State) -> State:
    """Make the marked snapshot the horizon once everything that it shows is confirmed."""
    stream = state.stream
    if stream is None or stream.mark is None or state.waiting or stream.confirmed < stream.mark[1]:
        return state
    at = Position(horizon=stream.mark[0])
    closed = state.stop_by is not None
    return replace(state, sent=at, confirmed=at, stream=replace(stream, mark=None, closed=closed))


def _mark(state: State, event: e.Marked, at: Moment) -> State:
    del at
    if state.stream is None:
        return state
    return _marked(replace(state, stream=replace(state.stream, mark=(event.snapshot, event.at))))


def _slot_seen(state: State, event: e.SlotSeen, at: Moment) -> State:
    """Give the slot up when it holds too much log; leave it for polling when the stream lags."""
    slot = event.slot
    state = replace(state, slot_at=at.now + at.policy.slot_look)
    if slot.lost is not None or not slot.exists:
        return leave(state, Cause.SLOT_LOST, drop=slot.exists)
    if (slot.held_bytes or 0) > at.policy.slot_budget:
        return leave(state, Cause.OVER_BUDGET, drop=True)
    if (slot.lag_bytes or 0) > at.policy.slot_lag and at.policy.mode == "auto" and not state.waiting:
        return leave(state, Cause.LAGGING)
    return state


def _failed(state: State, event: e.StreamFailed, at: Moment) -> State:
    if state.stream is None:
        return _later(replace(state, preparing=False), event.cause, at)
    return leave(state, event.cause, drop=event.cause is Cause.SLOT_LOST)


def _later(state: State, cause: Cause, at: Moment) -> State:
    """Look for a stream again after a pause that grows while it fails for a reason of its own."""
    failures = 0 if cause in _OUR_OWN else state.stream_failures + 1
    first = at.policy.stream_retry
    pause = at.pause(max(failures, 1), first=first, longest=12 * first)
    return replace(state, stream_failures=failures, stream_at=at.now + pause, mode_cause=cause)


def _stopped(state: State, event: e.StreamStopped, at: Moment) -> State:
    del event
    cause = state.leaving or Cause.STOP  # nothing else leaves without saying why
    state = replace(
        state, stream=None, leaving=None, drop_slot=False, mode="polling", sent=state.confirmed, batch=None, full=False,
        poll_at=at.now,
    )  # fmt: skip
    return _later(state, cause, at)


HANDLERS: Handlers = {
    e.SlotAsked: _slot_asked,
    e.SlotReady: _slot_ready,
    e.StreamStarted: _started,
    e.Streamed: _streamed,
    e.Marked: _mark,
    e.SlotSeen: _slot_seen,
    e.StreamFailed: _failed,
    e.StreamStopped: _stopped,
}
