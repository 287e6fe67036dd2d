"""What a partition's state asks for, whatever has just happened: the fetch, the watermark, the next commit."""

from dataclasses import replace

from packhorse.processor.partition.orders import Commit, Mark, Pause, Resume
from packhorse.processor.partition.state import Limits, Load, PartitionState, Phase
from packhorse.processor.partition.waiting import Decision

_LOW = 2
"""Fetching resumes when the queue is down to one part in so many of its limit."""


def carry_on(state: PartitionState, load: Load, limits: Limits, *, now: float) -> Decision:
    """Return the state and the orders that follow from it alone; called again, it orders nothing more."""
    state, flow = _flow(state, load, limits)
    state, mark = next_mark(state, load, limits, now=now)
    state, commit = _next_commit(state, limits, now=now)
    return state, (*flow, *mark, *commit)


def _flow(state: PartitionState, load: Load, limits: Limits) -> Decision:
    if not state.attached:
        return state, ()
    wanted = _fills(load, limits, part=1) or state.stands
    if wanted and not state.paused:
        return replace(state, paused=True), (Pause(),)
    if state.paused and not state.stands and not _fills(load, limits, part=_LOW):
        return replace(state, paused=False), (Resume(),)
    return state, ()


def _fills(load: Load, limits: Limits, *, part: int) -> bool:
    return (
        load.pending * part >= limits.buffered
        or load.size * part >= limits.buffered_bytes
        or load.tracked * part >= limits.tracked
    )


def next_mark(
    state: PartitionState, load: Load, limits: Limits, *, now: float, last: bool = False
) -> Decision:
    """Return the order to move the watermark behind what is dealt with without a gap; *last*: without waiting."""
    if state.position is None or load.end <= state.position or state.marking is not None or state.reopen:
        return state, ()
    if now < state.mark_at and not last:
        return state, ()
    moving = replace(state, marking=load.end, mark_at=now + limits.mark_every)
    return moving, (Mark(old=state.position, new=load.end, leader_epoch=load.epoch),)


def _next_commit(state: PartitionState, limits: Limits, *, now: float) -> Decision:
    if state.position is None or state.position == state.committed or state.reopen:
        return state, ()
    if state.committing is not None or now < state.commit_at or state.phase is Phase.OPENING:
        return state, ()
    sent = replace(state, committing=state.position, commit_at=now + limits.commit_every)
    return sent, (Commit(position=state.position, leader_epoch=state.leader_epoch),)
