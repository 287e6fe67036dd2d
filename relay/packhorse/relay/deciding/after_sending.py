"""What the relay knows after rows were fetched, sent, confirmed or refused."""

from packhorse.relay.cdc.stream import Cause
from packhorse.relay.deciding import after_stream
from packhorse.relay.deciding import events as e
from packhorse.relay.deciding.handlers import Handlers
from packhorse.relay.deciding.holding import held, passed_by, screened
from packhorse.relay.deciding.moment import Moment
from packhorse.relay.deciding.state import State, replace
from packhorse.relay.holds import Fault, Kind
from packhorse.relay.model import Policy

LONGEST_SAVE_PAUSE = 5.0
"""Seconds; however slow the broker confirms, this is what a kill repeats at most."""


def _woken(state: State, event: e.Woken, at: Moment) -> State:
    del event
    return replace(state, poll_at=min(state.poll_at, at.now))


def _fetched(state: State, event: e.Fetched, at: Moment) -> State:
    fetched = event.batch
    if fetched.start != state.sent:
        return state
    batch = screened(state, fetched)
    state = replace(state, turn=True)
    if not fetched.rows:
        return _idle(replace(state, batch=batch), at)
    eager = not batch.complete or 2 * len(fetched.rows) >= at.policy.batch_rows
    state = replace(
        state, batch=batch, busy_until=at.now + at.policy.idle_after, poll_at=at.now if eager else at.now + at.policy.poll,
        flushing_since=at.now, look_at=at.now,
    )  # fmt: skip
    return state if batch.rows else passed_by(state)


def _idle(state: State, at: Moment) -> State:
    busy = at.now < state.busy_until
    state = passed_by(state)
    state = replace(
        state, poll_at=at.now + (at.policy.poll if busy else at.policy.idle_poll),
        failures=state.failures if state.unsaved or state.waiting else 0,
    )  # fmt: skip
    return state if state.waiting else healed(state)


def _log_flushed(state: State, event: e.LogFlushed, at: Moment) -> State:
    if state.batch is None or not event.reached:
        return replace(state, look_at=at.now + at.policy.flush_poll)
    return replace(state, batch=replace(state.batch, unflushed=None), flushing_since=None)


def _sent(state: State, event: e.Sent, at: Moment) -> State:
    return taken(replace(state, turn=True), event.count, now=at.now)


def taken(state: State, count: int, *, now: float) -> State:
    """Count *count* more of the rows in hand as sent."""
    since = now if state.waiting_since is None and count else state.waiting_since
    if state.streaming:
        return after_stream.taken(replace(state, waiting_since=since), count)
    batch = state.batch
    if batch is None:
        return state
    whole = count == len(batch.rows)
    return replace(
        state, sent=batch.end(count), waiting=state.waiting + count, batch=None if whole else batch.after(count),
        full=not whole, waiting_since=since,
    )  # fmt: skip


def healed(state: State) -> State:
    """Return the state without the trouble that a row or the broker made."""
    return replace(state, piece=None, trouble=None)


def _confirmed(state: State, event: e.Confirmed, at: Moment) -> State:
    del event
    drained = 0.0 if state.draining_since is None else at.now - state.draining_since
    pause = min(drained * (1 / at.policy.drain_share - 1), LONGEST_SAVE_PAUSE)
    moved = state.sent != state.confirmed or state.streaming
    state = replace(
        state, confirmed=state.sent, unsaved=state.unsaved + state.waiting if moved else 0, waiting=0,
        waiting_since=None, draining_since=None, full=False, save_pause=pause,
    )  # fmt: skip
    state = hold_if_settled(after_stream.confirmed(state) if state.streaming else state)
    if state.piece is None:
        return healed(state)
    larger = 2 * state.piece
    return healed(state) if larger > at.policy.batch_rows else replace(state, piece=larger, failures=0)


def _unconfirmed(state: State, event: e.Unconfirmed, at: Moment) -> State:
    del event
    silent = silence_of(state, at.now) > at.policy.silence
    text = "the broker confirms nothing; rows wait in the client and go on by themselves when it answers"
    return replace(state, full=False, trouble=text if silent else state.trouble)


def silence_of(state: State, now: float) -> float:
    """Return how long nothing was confirmed of what waits, in seconds."""
    return 0.0 if state.waiting_since is None else now - state.waiting_since


def _broker_seen(state: State, event: e.BrokerSeen, at: Moment) -> State:
    """Hold the partitions that the broker gives up itself; after a long silence let the reports of a dropped client tell which."""
    state = replace(state, broker_at=at.now + at.policy.broker_look)
    if event.unreachable:
        return replace(state, unreachable=tuple(event.unreachable), broken=True)
    if silence_of(state, at.now) > at.policy.silence_longest and at.now >= state.renew_at:
        return replace(state, broken=True, renew_at=at.now + 4 * at.policy.silence_longest)
    return state


def _broker_away(state: State, event: e.BrokerAway, at: Moment) -> State:
    del event
    return replace(state, broker_at=at.now + at.policy.broker_look)


def _refused(state: State, event: e.Refused, at: Moment) -> State:
    """
    Stop sending behind the row.

    A row that was looked at and not handed over is at fault for certain: once what stands before it is confirmed, its
    scope is held. After a failed report the client is made anew, and then told what failed.
    """
    state = taken(state, event.sent, now=at.now) if event.sent else state
    if event.broken:
        return replace(state, broken=True, full=False)
    if event.fault is not None:
        return hold_if_settled(replace(state, fault=event.fault, full=False))
    failures = state.failures + 1
    return replace(
        state, full=False, send_at=at.now + at.pause(failures), failures=failures, trouble=event.reason
    )


def hold_if_settled(state: State) -> State:
    """Make the fault a hold when nothing is on its way any more."""
    if state.fault is None or not state.settled or state.confirmed is None:
        return state
    return held(replace(state, fault=None), state.fault)


def _renewed(state: State, event: e.SenderRenewed, at: Moment) -> State:
    """
    Begin behind what was confirmed; hold what is at fault, or look for it with fewer rows at a time.

    The broker refuses whole requests, so that the first row reported need not be the one at fault. Half as many rows go
    next, and half of that, until one row alone is refused: that one's scope is held. A topic is held at once. Rows of a stream
    are in the table too: they are read from there.
    """
    outstanding, piece, gone = state.waiting, state.piece, state.unreachable
    state = replace(
        state, broken=False, waiting=0, waiting_since=None, draining_since=None, sent=state.confirmed, batch=None,
        full=False, flushing_since=None, poll_at=at.now, unreachable=(),
    )  # fmt: skip
    if state.confirmed is None or not state.owned:
        return state
    state = after_stream.leave(state, Cause.CLIENT_RENEWED)
    for partition in {fault.scope: fault for fault in (*event.silent, *gone)}.values():
        state = held(state, partition)
    if event.fault is None or gone or event.silent:
        if not outstanding or gone or event.silent:
            return replace(state, trouble=None) if gone or event.silent else state
        failures = state.failures + 1
        return replace(
            state, trouble="the Kafka client was made anew", failures=failures, send_at=at.now + at.pause(failures)
        )  # fmt: skip
    return _blamed(state, event.fault, outstanding, piece, at)


def _blamed(state: State, fault: Fault, outstanding: int, piece: int | None, at: Moment) -> State:
    if fault.scope.kind is Kind.TOPIC or piece == 1 or outstanding == 1:
        return held(replace(state, fault=None, trouble=None), fault)
    return replace(
        state, piece=smaller(outstanding, piece, at.policy), send_at=at.now + at.policy.retry_first,
        trouble=f"the broker refuses rows for topic {fault.topic} ({fault.reason}); looking for the one at fault",
    )  # fmt: skip


def smaller(outstanding: int, piece: int | None, policy: Policy) -> int:
    """Return how many rows go next, after so many were refused together."""
    return max(1, min(outstanding, piece or policy.batch_rows) // 2)


HANDLERS: Handlers = {
    e.Woken: _woken,
    e.Fetched: _fetched,
    e.LogFlushed: _log_flushed,
    e.Sent: _sent,
    e.Confirmed: _confirmed,
    e.Unconfirmed: _unconfirmed,
    e.BrokerSeen: _broker_seen,
    e.BrokerAway: _broker_away,
    e.Refused: _refused,
    e.SenderRenewed: _renewed,
}
