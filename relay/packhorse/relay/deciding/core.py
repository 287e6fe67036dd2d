"""
The relay's mind: `decide(state, events, now) -> (state, command)`; no I/O, no clock, no chance.

What it promises: every committed row reaches its topic at least once, and the first arrivals of a key stand in commit order, for
writers that lock the key before they draw the sequence value. What it keeps to for that, whatever happens:

* Rows leave in seq order inside one frozen target; the next target is taken only when the last one's rows are all sent.
  From a stream they leave in commit order.
* Sending comes before confirming, confirming before saving: a crash in between repeats rows and loses none.
* A save is due before more is sent, so that a table that can't be written doesn't make rows go out again and again.
* Nothing is sent without a lease that still runs, or before the log is flushed past the target.
* Behind a row that failed nothing of its key is sent: its scope is held from what is confirmed on, and everything else flows.
  A release sends in seq order towards the relay's position; while it runs, the relay leaves the scope out.
* A stream begins where the horizon has all that it leaves out; polling goes on from the horizon. Repeats are allowed, gaps are not.
* What was read through a connection is void when the connection is gone.
"""

from collections.abc import Iterable

from packhorse.relay.cdc.stream import Cause
from packhorse.relay.deciding import after, after_release, after_sending, after_stream, choice
from packhorse.relay.deciding.commands import Command, Confirm
from packhorse.relay.deciding.events import Event
from packhorse.relay.deciding.moment import Moment
from packhorse.relay.deciding.state import State, replace
from packhorse.relay.model import Policy


def decide(
    state: State, events: Iterable[Event], *, now: float, policy: Policy, jitter: float
) -> tuple[State, Command]:
    """Take in what happened, in order, and return what to do next; *jitter* is drawn from [0, 1)."""
    at = Moment(now=now, policy=policy, jitter=jitter)
    for event in events:
        state = after.apply(state, event, at)
    if state.owned and now >= state.deadline:
        state = after.lose(state, at)
    state = _concluded(state, at)
    command = choice.choose(state, now=now, policy=policy)
    if isinstance(command, Confirm) and state.draining_since is None:
        state = replace(state, draining_since=now)
    return state, command


def _concluded(state: State, at: Moment) -> State:
    """Draw the conclusions that need nothing but thought."""
    state = after_sending.hold_if_settled(state)
    if state.stream is not None:
        if any(hold.releasing for hold in state.holds):
            state = after_stream.leave(state, Cause.RELEASE)
        elif state.finish:
            state = after_stream.leave(state, Cause.FINISH)
    return after_release.advanced(state, at)
