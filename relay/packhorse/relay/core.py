"""
The relay's mind: `decide(state, events, now) -> (state, command)`; no I/O, no clock, no chance.

What it keeps to, whatever happens:

* Rows leave in seq order inside one frozen target; the next target is taken only when the last one's rows are all sent.
* Sending comes before confirming, confirming before saving: a crash in between repeats rows and loses none.
* A save is due before more is sent, so that a table that can't be written doesn't make rows go out again and again.
* Nothing is sent without a lease that still runs, before the log is flushed past the target, or behind a row that failed.
* What was read through a connection is void when the connection is gone.
"""

from collections.abc import Iterable
from dataclasses import replace

from packhorse.relay import after, choice
from packhorse.relay.model import Policy
from packhorse.relay.state import State
from packhorse.relay.steps import Command, Confirm, Event


def decide(
    state: State, events: Iterable[Event], *, now: float, policy: Policy, jitter: float
) -> tuple[State, Command]:
    """Take in what happened, in order, and return what to do next; *jitter* is drawn from [0, 1)."""
    for event in events:
        state = after.apply(state, event, now=now, policy=policy, jitter=jitter)
    if state.owned and now >= state.deadline:
        state = after.lose(state, now=now, policy=policy)
    command = choice.choose(state, now=now, policy=policy)
    if isinstance(command, Confirm) and state.draining_since is None:
        state = replace(state, draining_since=now)
    return state, command
