"""How holds come into the state: the rows in hand are screened anew with each change."""

from collections.abc import Iterable

from packhorse.relay.deciding.state import State, replace
from packhorse.relay.holds import Fault, Hold, Screen
from packhorse.relay.model import SEQ, Batch


def with_holds(state: State, holds: Iterable[Hold], *, saved: Iterable[Hold] | None = None) -> State:
    """Return the state with *holds*, and with *saved* as what the table says of them."""
    holds = tuple(holds)
    return replace(
        state, holds=holds, screen=Screen(holds), saved_holds=state.saved_holds if saved is None else tuple(saved)
    )  # fmt: skip


def changed(state: State, hold: Hold) -> State:
    """Return the state with *hold* in the place of the one of its scope; which rows are left out stays as it is."""
    return replace(state, holds=tuple(hold if each.scope == hold.scope else each for each in state.holds))


def held(state: State, fault: Fault) -> State:
    """
    Begin a hold at what is confirmed, for *fault*; one of the same scope only learns the reason.

    Only when nothing is on its way: then all rows of the scope before the position are on the topic, and none behind it.
    While streaming the position is the saved horizon, so that a release repeats a little.
    """
    if (there := state.hold_of(fault.scope)) is not None:
        return changed(state, replace(there, fault=fault))
    assert state.confirmed is not None
    return rescreened(with_holds(state, (*state.holds, Hold(fault=fault, position=state.confirmed))))


def rescreened(state: State) -> State:
    """
    Leave out, of the rows in hand, those that are held by now.

    A fault among them is forgotten: the relay may pass its row by at once, and a hold made for it later would begin behind it.
    Where the row still goes, it is found again.
    """
    state = replace(state, fault=None)
    if (stream := state.stream) is not None and stream.rows:
        rows = state.screen.passed(stream.rows)
        state = replace(
            state, stream=replace(stream, rows=rows, sent=stream.sent if rows else stream.received)
        )
    if state.batch is None:
        return state
    state = replace(state, batch=screened(state, state.batch))
    assert state.batch is not None
    return state if state.batch.rows else passed_by(state)


def screened(state: State, batch: Batch) -> Batch:
    """Return *batch* without the rows that are held; its end stays where it was."""
    if not state.holds or not batch.rows:
        return batch
    reach = max(batch.reach, batch.rows[-1][SEQ])
    return replace(batch, rows=state.screen.passed(batch.rows), reach=reach)


def passed_by(state: State) -> State:
    """Move on behind a batch in hand of which every row is held."""
    assert state.batch is not None
    at = state.batch.end(0)
    return replace(
        state, sent=at, confirmed=state.confirmed if state.waiting else at, batch=None, flushing_since=None
    )
