"""What a partition's state asks for, whatever has just happened: the next batch, the fetch, the next commit."""

from dataclasses import replace

from packhorse.processor.partition.orders import (
    Command,
    Commit,
    Pause,
    Resume,
    Run,
)
from packhorse.processor.partition.state import (
    Limits,
    PartitionState,
    Phase,
)

_LOW = 2
"""Fetching resumes when the buffer is down to one part in so many of its limit."""


def carry_on(
    state: PartitionState, limits: Limits, *, now: float
) -> tuple[PartitionState, tuple[Command, ...]]:
    """Return the state and the orders that follow from it alone; called again, it orders nothing more."""
    state, run = _next_run(state, limits)
    state, flow = _flow(state, limits)
    state, commit = _next_commit(state, limits, now=now)
    return state, (*run, *flow, *commit)


def _next_run(state: PartitionState, limits: Limits) -> tuple[PartitionState, tuple[Command, ...]]:
    if state.phase is not Phase.READING or state.busy or state.held:
        return state, ()
    if state.buffered == 0 or state.position is None:
        return state, ()
    suspect, count = state.suspicion or (None, 0)
    run = Run(
        limit=state.limit,
        position=state.position,
        leader_epoch=state.leader_epoch,
        alone=suspect,
        charged=suspect if count >= limits.suspected else None,
        contended=state.losses >= limits.uncharged,
    )
    return replace(state, busy=True), (run,)


def _flow(state: PartitionState, limits: Limits) -> tuple[PartitionState, tuple[Command, ...]]:
    if not state.attached:
        return state, ()
    full = state.held or state.buffered >= limits.buffered or state.buffered_bytes >= limits.buffered_bytes
    if full and not state.paused:
        return replace(state, paused=True), (Pause(),)
    low = state.buffered * _LOW <= limits.buffered and state.buffered_bytes * _LOW <= limits.buffered_bytes
    if low and state.paused and not state.held:
        return replace(state, paused=False), (Resume(),)
    return state, ()


def _next_commit(
    state: PartitionState, limits: Limits, *, now: float
) -> tuple[PartitionState, tuple[Command, ...]]:
    if state.position is None or state.position == state.committed or state.reopen:
        return state, ()
    if state.committing is not None or now < state.commit_at:
        return state, ()
    sent = replace(state, committing=state.position, commit_at=now + limits.commit_every)
    return sent, (Commit(position=state.position, leader_epoch=state.leader_epoch),)
