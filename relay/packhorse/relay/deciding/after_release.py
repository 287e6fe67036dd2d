"""
What the relay knows after something happened to a release.

A release sends a hold's rows in seq order from the hold's position towards the relay's, through a client of its own, so that trouble
with them stops nothing else. When it has almost caught up, the relay stands still for a moment; where they meet, the
hold ends, and the same save says both.
"""

from packhorse.relay.deciding import events_release as e
from packhorse.relay.deciding.handlers import Handlers
from packhorse.relay.deciding.holding import changed, with_holds
from packhorse.relay.deciding.moment import Moment
from packhorse.relay.deciding.state import Release, State, replace
from packhorse.relay.holds import Fault, Hold, Kind, Scope, next_leg
from packhorse.relay.model import SEQ, Batch

MEET_WITH = 0.1
"""Seconds that the last rows of a release may take at its rate: the relay stands still for them, and everybody waits."""


def forget(state: State) -> State:
    """Void the release that runs; its client must be closed."""
    return state if state.release is None else replace(state, release=replace(state.release, broken=True))


def ordered(state: State) -> State:
    """Let the holds that a person ordered back begin their release."""
    for hold in state.holds:
        if hold.asked:
            state = changed(state, replace(hold, asked=False, releasing=True))
    return state


def blocked(state: State, hold: Hold) -> bool:
    """Tell whether a wider hold comes first."""
    return any(
        other.scope.kind > hold.scope.kind and other.scope.overlaps(hold.scope) for other in state.holds
    )


def advanced(state: State, at: Moment) -> State:
    """Begin a release, find its next leg, let it meet the relay; whatever needs nothing but thought."""
    if not state.owned or state.confirmed is None or state.streaming or state.stop_by is not None:
        return state
    release = state.release
    if release is None:
        return _begun(state, at)
    if release.broken or release.waiting:
        return state
    hold = state.hold_of(release.scope)
    if hold is None or not hold.releasing or blocked(state, hold):
        return replace(state, release=replace(release, broken=True))
    if release.fault is not None:
        return _narrower(state, hold, release.fault, at)
    return _onward(state, hold, release, at) if release.leg is None and release.batch is None else state


def _begun(state: State, at: Moment) -> State:
    hold = _ready(state, at)
    return state if hold is None else replace(state, release=Release(scope=hold.scope, sent=hold.position))


def _ready(state: State, at: Moment) -> Hold | None:
    """Return the first hold that is to be released and does not pause after trouble."""
    due = dict(state.retries)
    for hold in state.holds:
        paused = not hold.fault.heals and at.now < due.get(hold.scope, at.now)
        if hold.releasing and not paused and not blocked(state, hold):
            return hold
    return None


def _onward(state: State, hold: Hold, release: Release, at: Moment) -> State:
    assert state.sent is not None
    leg = next_leg(hold.position, state.sent)
    if leg is not None:
        if release.meeting and at.now > release.meet_by:
            release = replace(release, meeting=False, next_at=at.now + at.policy.meet_within)
        return replace(state, release=replace(release, leg=leg, sent=leg.start))
    if hold.fault.heals and not release.moved:
        # the relay has passed nothing by: to end the hold would try the relay's own client, and stop all of it again
        waiting = later(changed(state, replace(hold, releasing=False)), hold, at)
        return replace(waiting, release=replace(release, broken=True))
    if not state.settled:
        return state if release.meeting else replace(state, release=_meet(release, at))
    rest = with_holds(state, [each for each in state.holds if each.scope != hold.scope])
    return replace(rest, release=replace(release, broken=True), batch=None, confirmed=state.sent)


def _meet(release: Release, at: Moment) -> Release:
    return replace(release, meeting=True, meet_by=at.now + at.policy.meet_within)


def _fetched(state: State, event: e.HeldFetched, at: Moment) -> State:
    release, hold = _running(state)
    if release is None or hold is None or release.leg is None or event.batch.start != release.sent:
        return state
    batch = _own(state, hold, event.batch)
    # near the end: the relay stands still until this is there too
    few = min(at.policy.release_rows - 1, _rate(hold, at) * MEET_WITH)
    near = release.leg.last and batch.complete
    if near and not release.meeting and len(event.batch.rows) <= few:
        release = _meet(release, at)
    release = replace(release, batch=batch)
    state = replace(state, release=release, turn=False)
    return state if batch.rows else _behind(state, hold, release)


def _rate(hold: Hold | None, at: Moment) -> int:
    """Return the rows a second of the release, at most."""
    return (hold.rate if hold is not None else None) or at.policy.release_rate


def _own(state: State, hold: Hold, batch: Batch) -> Batch:
    """Return *batch* with the rows that wait in this hold and in no narrower one, up to the end of a range."""
    rows = batch.rows
    if hold.until is not None:
        rows = [row for row in rows if row[SEQ] <= hold.until]
        batch = replace(batch, complete=batch.complete or len(rows) < len(batch.rows))
    reach = max(batch.reach, batch.rows[-1][SEQ] if batch.rows else 0)
    return replace(batch, rows=[row for row in rows if state.screen.holder(row) == hold.scope], reach=reach)


def _running(state: State) -> tuple[Release | None, Hold | None]:
    release = state.release
    if release is None or release.broken:
        return None, None
    return release, state.hold_of(release.scope)


def _sent(state: State, event: e.HeldSent, at: Moment) -> State:
    return _taken(replace(state, turn=False), event.count, at)


def _taken(state: State, count: int, at: Moment) -> State:
    release = state.release
    if release is None or release.batch is None:
        return state
    rate = _rate(state.hold_of(release.scope), at)
    since = at.now if release.waiting_since is None else release.waiting_since
    return replace(
        state,
        release=replace(
            release, waiting=release.waiting + count, waiting_since=since, sent=release.batch.end(count),
            batch=release.batch.after(count), next_at=max(release.next_at, at.now) + count / rate,
        ),
    )  # fmt: skip


def _confirmed(state: State, event: e.HeldConfirmed, at: Moment) -> State:
    del event
    release, hold = _running(state)
    if release is None or hold is None or release.batch is None:
        return state
    hold = replace(hold, sent=hold.sent + release.waiting)
    state = replace(state, turn=False, unsaved=state.unsaved + release.waiting)
    piece = min(2 * release.piece, at.policy.release_rows)
    release = replace(release, waiting=0, waiting_since=None, piece=piece, failures=0)
    return _behind(state, hold, release)


def _behind(state: State, hold: Hold, release: Release) -> State:
    """Move the hold behind what is confirmed; at the end of a leg the next one is looked for."""
    batch, leg = release.batch, release.leg
    assert batch is not None
    assert leg is not None
    if batch.rows:
        hold = replace(hold, position=batch.start)
        return changed(replace(state, release=release), hold)
    if not batch.complete:
        at = batch.end(0)
        return changed(
            replace(state, release=replace(release, batch=None, sent=at)), replace(hold, position=at)
        )
    hold = replace(hold, position=leg.end)
    if hold.until is not None:
        hold = replace(hold, position=hold.resume or leg.end, until=None)
    release = replace(release, batch=None, leg=None, sent=hold.position, moved=True)
    return changed(replace(state, release=release), hold)


def _unconfirmed(state: State, event: e.HeldUnconfirmed, at: Moment) -> State:
    del event
    release, _ = _running(state)
    state = replace(state, turn=False)
    if release is None or release.waiting_since is None:
        return state
    if at.now - release.waiting_since <= at.policy.silence:
        return state
    return _stumbled(state, "the broker confirms nothing of what is released", at)


def _refused(state: State, event: e.HeldRefused, at: Moment) -> State:
    state = _taken(replace(state, turn=False), event.sent, at) if event.sent else replace(state, turn=False)
    release = state.release
    if release is None:
        return state
    if event.broken:
        return replace(state, release=replace(release, broken=True, meeting=False))
    if event.fault is None:
        return _stumbled(state, event.reason, at)
    return replace(state, release=replace(release, fault=event.fault, meeting=False))


def _stumbled(state: State, reason: str, at: Moment) -> State:
    """
    Pause after trouble that no row is to blame for; others that are to be released have their turn meanwhile.

    A hold that heals by itself waits for its next probe.
    """
    release = state.release
    assert release is not None
    hold = state.hold_of(release.scope)
    if hold is not None and hold.fault.heals:
        state = _back(state, hold, replace(hold.fault, reason=reason), at)
    failures = release.failures + 1
    next_at = at.now + at.pause(failures)
    if hold is not None and not hold.fault.heals:
        state = _paused(state, hold.scope, next_at)
    return replace(
        state, release=replace(release, broken=True, meeting=False, failures=failures, next_at=next_at)
    )


def _narrower(state: State, hold: Hold, fault: Fault, at: Moment) -> State:
    """Take in a fault that was found on the way: the hold's own, or that of a narrower scope, which becomes a hold where this one stands."""
    release = state.release
    assert release is not None
    state = replace(state, release=replace(release, broken=True, fault=None))
    if fault.scope.kind < hold.scope.kind:
        there = state.hold_of(fault.scope)
        new = replace(there, fault=fault) if there else Hold(fault=fault, position=hold.position)
        return with_holds(state, [*(each for each in state.holds if each.scope != fault.scope), new])
    if fault.scope == hold.scope or hold.fault.heals:
        return _back(state, hold, replace(fault, scope=hold.scope), at)
    return _stumbled(state, str(fault), at)


def _back(state: State, hold: Hold, fault: Fault, at: Moment) -> State:
    """Hold what was on its way back again."""
    state = changed(state, replace(hold, fault=fault, releasing=False, tries=hold.tries + 1))
    return later(state, hold, at) if fault.heals else state


def later(state: State, hold: Hold, at: Moment) -> State:
    """Probe *hold* again after a pause that grows."""
    return _paused(state, hold.scope, at.now + at.pause(hold.tries + 1, first=at.policy.heal_first))


def _paused(state: State, scope: Scope, until: float) -> State:
    """Note that the hold of *scope* has no turn before *until*; forget the scopes that are held no more."""
    open_ = {hold.scope for hold in state.holds} - {scope}
    others = tuple(item for item in state.retries if item[0] in open_)
    return replace(state, retries=(*others, (scope, until)))


def _probed(state: State, event: e.ScopeProbed, at: Moment) -> State:
    hold = state.hold_of(event.scope)
    if hold is None or hold.releasing:
        return state
    if event.obstacle is None:
        return changed(state, replace(hold, releasing=True))
    hold = replace(hold, tries=hold.tries + 1)
    return later(changed(state, hold), hold, at)


def _releaser_renewed(state: State, event: e.ReleaserRenewed, at: Moment) -> State:
    """Begin again behind what is confirmed, one row at a time; a row refused alone is at fault for certain."""
    release = state.release
    if release is None:
        return state
    hold = state.hold_of(release.scope)
    if hold is None or not state.owned or state.stop_by is not None:
        return replace(state, release=None)
    fault = event.fault
    if fault is not None and (release.piece == 1 or fault.scope.kind is Kind.TOPIC):
        state = _narrower(state, hold, fault, at)
    left = state.release or release
    hold = state.hold_of(release.scope)
    if hold is None or not hold.releasing or blocked(state, hold):
        return replace(state, release=None)
    if left.failures and _ready(state, at) is not None:
        return replace(state, release=None)
    again = Release(scope=hold.scope, sent=hold.position, next_at=left.next_at, failures=left.failures)
    return replace(state, release=again)


HANDLERS: Handlers = {
    e.ScopeProbed: _probed,
    e.HeldFetched: _fetched,
    e.HeldSent: _sent,
    e.HeldConfirmed: _confirmed,
    e.HeldUnconfirmed: _unconfirmed,
    e.HeldRefused: _refused,
    e.ReleaserRenewed: _releaser_renewed,
}
