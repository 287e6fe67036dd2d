"""What the relay knows after something happened: `apply(state, event) -> state`."""

from packhorse.relay.cdc.stream import Cause
from packhorse.relay.deciding import after_release, after_sending, after_stream
from packhorse.relay.deciding import events as e
from packhorse.relay.deciding.handlers import Handlers
from packhorse.relay.deciding.holding import rescreened, with_holds
from packhorse.relay.deciding.moment import Moment
from packhorse.relay.deciding.state import State, replace


def apply(state: State, event: e.Event, at: Moment) -> State:
    """Return the state after *event*; one that says nothing to the core leaves it as it is."""
    handler = _HANDLERS.get(type(event))
    return state if handler is None else handler(state, event, at)


def _owned(state: State, event: e.Owned, at: Moment) -> State:
    """Begin at the position in the table; rows still on their way from before are confirmed together with what follows."""
    del at
    position = event.position
    state = replace(
        state, owned=True, deadline=event.deadline, saved=position, confirmed=position, sent=position, unsaved=0, batch=None,
        full=False, flushing_since=None, told=event.trouble, orders=event.orders, orders_read=event.orders,
        finish=event.finish, mode_told=("polling", Cause.START) if event.mode == "polling" else None,
    )  # fmt: skip
    return after_release.ordered(after_release.forget(with_holds(state, event.holds, saved=event.holds)))


def _owned_elsewhere(state: State, event: e.OwnedElsewhere, at: Moment) -> State:
    del event
    return replace(state, owned=False, database_at=at.now + at.policy.standby_poll)


def _renewed(state: State, event: e.Renewed, at: Moment) -> State:
    del at
    if event.deadline <= state.deadline and event.orders <= state.orders:
        return state  # as at nearly every step: the lease is renewed once in hundreds of them
    return replace(
        state, deadline=max(state.deadline, event.deadline), orders=max(state.orders, event.orders)
    )


def _owner_changed(state: State, event: e.OwnerChanged, at: Moment) -> State:
    del event
    return lose(state, at)


def lose(state: State, at: Moment) -> State:
    """Forget everything; what is on its way is dropped by making the clients anew."""
    release = state.release
    return State(
        broken=state.broken or state.waiting > 0,
        release=None if release is None else replace(release, broken=True),
        stream=state.stream,
        leaving=Cause.OWNER_CHANGED if state.stream is not None else None,
        database_at=at.now + at.policy.standby_poll,
        stop_by=state.stop_by,
    )


def _orders_read(state: State, event: e.OrdersRead, at: Moment) -> State:
    del at
    known = {hold.scope for hold in state.holds}
    asked = {hold.scope: hold for hold in event.holds if hold.asked}
    holds = tuple(
        replace(hold, asked=True, rate=asked[hold.scope].rate) if hold.scope in asked else hold
        for hold in state.holds
    )
    new = tuple(hold for hold in event.holds if hold.scope not in known)
    state = replace(
        state, finish=event.finish, orders_read=event.orders, orders=max(state.orders, event.orders)
    )
    state = with_holds(state, (*holds, *new), saved=(*state.saved_holds, *new))
    return after_release.ordered(rescreened(state) if new else state)


def _saved(state: State, event: e.Saved, at: Moment) -> State:
    del event
    return replace(
        state, saved=state.confirmed, saved_holds=state.holds, unsaved=0, failures=state.failures if state.trouble else 0,
        save_at=at.now + max(state.save_pause, at.policy.save), idle_save_at=at.now + at.policy.idle_save,
    )  # fmt: skip


def _trouble_recorded(state: State, event: e.TroubleRecorded, at: Moment) -> State:
    del event, at
    return replace(state, told=state.trouble)


def _mode_recorded(state: State, event: e.ModeRecorded, at: Moment) -> State:
    del event, at
    return replace(state, mode_told=(state.mode, state.mode_cause))


def _lag_measured(state: State, event: e.LagMeasured, at: Moment) -> State:
    del event
    return replace(state, measure_at=at.now + at.policy.measure)


def _database_failed(state: State, event: e.DatabaseFailed, at: Moment) -> State:
    failures = state.failures + 1
    state = replace(state, failures=failures, database_at=at.now + at.pause(failures))
    if event.connected:
        # Once may be chance: a lock, a time-out. Twice in a row stands in the table, which can still be written.
        return replace(state, trouble=event.reason) if state.failures > 1 and state.fault is None else state
    state = replace(
        state, saved=None, confirmed=None, sent=None, batch=None, unsaved=0, flushing_since=None, fault=None, unreachable=(),
        preparing=False,
    )  # fmt: skip
    return after_stream.leave(after_release.forget(with_holds(state, (), saved=())), Cause.DATABASE_AWAY)


def _stop_asked(state: State, event: e.StopAsked, at: Moment) -> State:
    del event
    return state if state.stop_by is not None else replace(state, stop_by=at.now + at.policy.stop_within)


def _released(state: State, event: e.Released, at: Moment) -> State:
    """A stop is done; or, while the shards change, another relay may finish what is left."""
    del event
    if state.stop_by is not None:
        return replace(state, left=True)
    return lose(state, at)


_HANDLERS: Handlers = {
    e.Owned: _owned,
    e.OwnedElsewhere: _owned_elsewhere,
    e.Renewed: _renewed,
    e.OwnerChanged: _owner_changed,
    e.OrdersRead: _orders_read,
    e.Saved: _saved,
    e.TroubleRecorded: _trouble_recorded,
    e.ModeRecorded: _mode_recorded,
    e.LagMeasured: _lag_measured,
    e.DatabaseFailed: _database_failed,
    e.StopAsked: _stop_asked,
    e.Released: _released,
    **after_sending.HANDLERS,
    **after_release.HANDLERS,
    **after_stream.HANDLERS,
}
