"""Decide about one partition: a pure function from its state, an event, what its queue holds, time and jitter to orders."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from packhorse.processor.partition.events import (
    Assigned,
    ChunkEnded,
    CommitFailed,
    CommitRefused,
    Committed,
    Crowded,
    Ended,
    Event,
    Fetched,
    FetchStopped,
    Held,
    LaneBroke,
    Lost,
    Marked,
    MarkFailed,
    MarkRefused,
    Opened,
    OpenFailed,
    Revoking,
    Tick,
    Voided,
)
from packhorse.processor.partition.ordering import carry_on, next_mark
from packhorse.processor.partition.orders import (
    Alarm,
    Attach,
    Command,
    Forget,
    Open,
    Resume,
    Seek,
    StopProcess,
    Suspect,
    Take,
)
from packhorse.processor.partition.state import Limits, Load, PartitionState, Phase
from packhorse.processor.partition.waiting import DEAF, Decision, Moment, away, void

REMEMBERED = 4
"""
Troubles that count on after a watermark was read: the database is well then, and what still fails, such as a lane whose
connection ended in the outage, must not wait as long as the outage had come to.
"""
_TIMED = frozenset({Phase.WAITING, Phase.AWAY, Phase.REFUSED})


def decide(
    state: PartitionState, event: Event, load: Load, limits: Limits, *, now: float, jitter: float
) -> Decision:
    """
    Return the state after *event* and what to do, in order; *load* is what the queue holds after the event.

    Held at each step: the watermark is moved to what is dealt with without a gap and no further; a commit never passes
    the watermark; the watermark is read again only when no chunk runs; records are taken in offset order, and a jump right
    after the fetch position was set is believed only when it shows twice.
    """
    if state.phase is Phase.CLOSED:
        return state, ()
    moment = Moment(load=load, limits=limits, now=now, jitter=jitter)
    after, commands = _REACTIONS[type(event)](state, event, moment)
    if after.phase is Phase.CLOSED or any(isinstance(one, Take | Forget) for one in commands):
        return after, commands
    if after.phase is Phase.DRAINING:
        after, more = next_mark(after, load, limits, now=now, last=True)
    else:
        after, more = carry_on(after, load, limits, now=now)
    return after, (*commands, *more)


def _assigned(state: PartitionState, event: Assigned, at: Moment) -> Decision:
    del event
    return replace(state, opening=True, limit=at.limits.batch), (Open(),)


def _opened(state: PartitionState, event: Opened, at: Moment) -> Decision:
    """Read from where the database says; when that is what was remembered, what is read ahead is still good."""
    if state.phase is Phase.DRAINING:
        return replace(state, opening=False), ()
    opened = replace(
        state,
        opening=False,
        phase=Phase.READING,
        position=event.position,
        leader_epoch=event.leader_epoch,
        start=event.start,
        reopen=False,
        trouble="",
        failures=min(state.failures, REMEMBERED),
        committed=event.committed,
        committing=None,
        suspect=None,
    )
    suspected = _suspected(state, at)
    good = event.position == state.position == at.load.end and event.start <= event.position
    if state.attached and good and at.load.tracked == at.load.pending and not state.stopped:
        return opened, suspected
    moved = replace(
        opened,
        expected=event.start,
        attached=True,
        unproved=True,
        stopped=False,
        doubt=None,
        paused=False,
    )
    forget = Forget(offset=event.start)
    if not state.attached:
        return moved, (*suspected, forget, Attach(offset=event.start))
    resume = (Resume(),) if state.paused else ()
    return moved, (*suspected, forget, *resume, Seek(offset=event.start))


def _suspected(state: PartitionState, at: Moment) -> tuple[Command, ...]:
    """Suspect the one that ran when the database was well again at once; a real outage is nobody's fault."""
    if state.suspect is None or at.now - state.suspect[1] > at.limits.quick:
        return ()
    return (Suspect(offset=state.suspect[0]),)


def _open_failed(state: PartitionState, event: OpenFailed, at: Moment) -> Decision:
    state = replace(state, opening=False)
    if state.phase is Phase.DRAINING:
        return state, ()
    if event.refused:
        wait = at.limits.ask_again
        refused = replace(
            state, phase=Phase.REFUSED, due=at.now + wait, reopen=True, trouble=f"refused: {event.text}"
        )
        return refused, (Alarm(what="refused", text=event.text, wait=wait),)
    return away(state, event.away, at, reopen=True, text=event.text)


def _fetched(state: PartitionState, event: Fetched, at: Moment) -> Decision:
    del at
    if not state.attached or state.phase is Phase.DRAINING:
        return state, ()
    jumped = event.first > state.expected and state.unproved and state.doubt != event.first
    if event.first < state.expected or jumped:
        return replace(state, doubt=event.first, unproved=True), (Seek(offset=state.expected),)
    return replace(state, expected=event.last + 1, unproved=False, doubt=None), (Take(),)


def _chunk_ended(state: PartitionState, event: ChunkEnded, at: Moment) -> Decision:
    state = replace(state, running=state.running - 1, failures=0 if event.done else state.failures)
    if event.done and event.ended is not Ended.CONTENTION:
        state = replace(state, limit=min(at.limits.batch, state.limit * 2))
    if state.phase is Phase.DRAINING and event.ended is not Ended.STOPPED:
        return state, ()
    match event.ended:
        case Ended.WELL | Ended.GIVEN_UP:
            return state, ()
        case Ended.NOT_DUE:
            return _not_due(state, event, at)
        case Ended.CONTENTION:
            return replace(state, limit=max(1, state.limit // 2)), ()
        case Ended.AWAY:
            database = event.away == "database"
            if event.suspect is not None and database:
                state = replace(state, suspect=(event.suspect, at.now))
            return away(state, event.away, at, reopen=database, text=event.error)
        case Ended.VOID:
            return void(state, now=at.now)
        case Ended.STOPPED:
            return replace(state, phase=Phase.CLOSED), (StopProcess(error=event.error),)


def _not_due(state: PartitionState, event: ChunkEnded, at: Moment) -> Decision:
    due = at.now + event.wait
    if state.phase is Phase.READING:
        return replace(state, phase=Phase.WAITING, due=due), ()
    if state.phase is Phase.WAITING:
        return replace(state, due=min(due, state.due)), ()
    return state, ()


def _lane_broke(state: PartitionState, event: LaneBroke, at: Moment) -> Decision:
    del at
    return replace(state, running=0, opening=False, phase=Phase.CLOSED), (StopProcess(error=event.error),)


def _marked(state: PartitionState, event: Marked, at: Moment) -> Decision:
    del at
    return replace(state, marking=None, position=event.position, leader_epoch=event.leader_epoch), ()


def _mark_refused(state: PartitionState, event: MarkRefused, at: Moment) -> Decision:
    del event
    state = replace(state, marking=None)
    if state.phase is Phase.DRAINING:
        return replace(state, reopen=True), ()
    return void(state, now=at.now)


def _mark_failed(state: PartitionState, event: MarkFailed, at: Moment) -> Decision:
    state = replace(state, marking=None)
    if state.phase is Phase.DRAINING:
        return replace(state, reopen=True), ()
    if state.phase in DEAF:
        return state, ()
    return away(state, "database", at, reopen=True, text=event.text)


def _voided(state: PartitionState, event: Voided, at: Moment) -> Decision:
    del event
    return void(state, now=at.now)


def _fetch_stopped(state: PartitionState, event: FetchStopped, at: Moment) -> Decision:
    """Read the watermark and where the log begins again; what is remembered of the fetch position is wrong."""
    state = replace(state, stopped=True)
    if state.phase in DEAF or state.reopen:
        return state, ()
    return away(state, "log", at, reopen=True, text=event.text)


def _held(state: PartitionState, event: Held, at: Moment) -> Decision:
    del at
    return replace(state, held=event.paused), ()


def _crowded(state: PartitionState, event: Crowded, at: Moment) -> Decision:
    """Stand still until there is room, and say so: somebody should look at what the keys wait for."""
    del at
    alarm = () if not event.text or state.crowded else (Alarm(what="parked", text=event.text, wait=0.0),)
    return replace(state, crowded=bool(event.text)), alarm


def _revoking(state: PartitionState, event: Revoking, at: Moment) -> Decision:
    del event, at
    return replace(state, phase=Phase.DRAINING), ()


def _lost(state: PartitionState, event: Lost, at: Moment) -> Decision:
    del event, at
    return replace(state, phase=Phase.CLOSED), ()


def _committed(state: PartitionState, event: Committed, at: Moment) -> Decision:
    del at
    return replace(state, committed=event.position, committing=None), ()


def _commit_failed(state: PartitionState, event: CommitFailed, at: Moment) -> Decision:
    del event
    wait = max(at.wait(1), at.limits.commit_every)
    return replace(state, committing=None, commit_at=at.now + wait), ()


def _commit_refused(state: PartitionState, event: CommitRefused, at: Moment) -> Decision:
    del event
    return void(replace(state, committing=None), now=at.now + at.limits.commit_every)


def _tick(state: PartitionState, event: Tick, at: Moment) -> Decision:
    del event
    if state.phase not in _TIMED or at.now < state.due:
        return state, ()
    if not state.reopen:
        return replace(state, phase=Phase.READING, trouble=""), ()
    if state.busy:
        return state, ()
    return replace(state, phase=Phase.OPENING, opening=True), (Open(),)


_REACTIONS: Mapping[type, Callable[[PartitionState, Any, Moment], Decision]] = {
    Assigned: _assigned,
    Opened: _opened,
    OpenFailed: _open_failed,
    Fetched: _fetched,
    ChunkEnded: _chunk_ended,
    LaneBroke: _lane_broke,
    Marked: _marked,
    MarkRefused: _mark_refused,
    MarkFailed: _mark_failed,
    Voided: _voided,
    FetchStopped: _fetch_stopped,
    Held: _held,
    Crowded: _crowded,
    Revoking: _revoking,
    Lost: _lost,
    Committed: _committed,
    CommitFailed: _commit_failed,
    CommitRefused: _commit_refused,
    Tick: _tick,
}
"""What can happen to an assigned partition."""
