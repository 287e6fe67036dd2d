"""Decide about one partition: a pure function from its state, an event, the time and a jitter to orders."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from packhorse.core.backoff import delay_after
from packhorse.processor.partition.events import (
    Assigned,
    BatchEnded,
    CommitFailed,
    CommitRefused,
    Committed,
    Ended,
    Event,
    Fetched,
    FetchStopped,
    Held,
    LaneBroke,
    Lost,
    Opened,
    OpenFailed,
    Revoking,
    Tick,
    Voided,
)
from packhorse.processor.partition.ordering import carry_on
from packhorse.processor.partition.orders import (
    Alarm,
    Attach,
    Command,
    DropBelow,
    Forget,
    Open,
    Resume,
    Seek,
    StopProcess,
    Take,
)
from packhorse.processor.partition.state import (
    Limits,
    PartitionState,
    Phase,
)

Decision = tuple[PartitionState, tuple[Command, ...]]

_DEAF = frozenset({Phase.OPENING, Phase.REFUSED, Phase.DRAINING})
_TIMED = frozenset({Phase.WAITING, Phase.AWAY, Phase.REFUSED})
_ENDING = frozenset({Phase.DRAINING, Phase.CLOSED})


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """What a decision is made with besides state and event; *jitter* is drawn from [0, 1)."""

    limits: Limits
    now: float
    jitter: float

    def wait(self, failure: int) -> float:
        """Return the seconds to wait after failure number *failure*."""
        return delay_after(failure, self.limits.backoff, jitter=self.jitter)


def decide(state: PartitionState, event: Event, limits: Limits, *, now: float, jitter: float) -> Decision:
    """
    Return the state after *event* and what to do, in order.

    Held at each step: one job at a time is with a lane; a commit never passes the watermark; records are taken in
    offset order, and a jump right after the fetch position was set is believed only when it shows twice.
    """
    if state.phase is Phase.CLOSED:
        return state, ()
    moment = Moment(limits=limits, now=now, jitter=jitter)
    after, commands = _REACTIONS[type(event)](state, event, moment)
    if after.phase in _ENDING:
        return after, commands
    after, more = carry_on(after, limits, now=now)
    return after, (*commands, *more)


def _assigned(state: PartitionState, event: Assigned, at: Moment) -> Decision:
    del event
    return replace(state, busy=True, limit=at.limits.batch), (Open(),)


def _opened(state: PartitionState, event: Opened, at: Moment) -> Decision:
    """Read from where the database says; when that is what was remembered, what is read ahead is still good."""
    if state.phase is Phase.DRAINING:
        return replace(state, busy=False), ()
    opened = replace(
        state,
        busy=False,
        phase=Phase.READING,
        position=event.position,
        leader_epoch=event.leader_epoch,
        reopen=False,
        trouble="",
        committed=event.committed,
        committing=None,
        suspect=None,
        suspicion=_still_ahead(_suspicion(state, at), event.start),
    )
    good = event.position == state.position and event.start <= state.handled and not state.stopped
    if state.attached and good:
        return opened, ()
    moved = replace(
        opened,
        handled=event.start,
        expected=event.start,
        attached=True,
        unproved=True,
        stopped=False,
        doubt=None,
        buffered=0,
        buffered_bytes=0,
        paused=False,
    )
    if not state.attached:
        return moved, (Forget(), Attach(offset=event.start))
    resume = (Resume(),) if state.paused else ()
    return moved, (Forget(), *resume, Seek(offset=event.start))


def _suspicion(state: PartitionState, at: Moment) -> tuple[int, int] | None:
    """Count one more for the suspect when the database was well again at once; a real outage counts nothing."""
    if state.suspect is None:
        return state.suspicion
    offset, since = state.suspect
    if at.now - since > at.limits.quick:
        return state.suspicion
    before = state.suspicion[1] if state.suspicion is not None and state.suspicion[0] == offset else 0
    return offset, before + 1


def _open_failed(state: PartitionState, event: OpenFailed, at: Moment) -> Decision:
    state = replace(state, busy=False)
    if state.phase is Phase.DRAINING:
        return state, ()
    if event.refused:
        wait = at.limits.ask_again
        refused = replace(state, phase=Phase.REFUSED, due=at.now + wait, reopen=True, trouble=event.text)
        return refused, (Alarm(what="refused", text=event.text, wait=wait),)
    return _away(state, event.away, at, reopen=True, text=event.text)


def _away(state: PartitionState, what: str, at: Moment, *, reopen: bool, text: str) -> Decision:
    failures = state.failures + 1
    wait = at.wait(failures)
    reopen = reopen or state.reopen
    away = replace(state, phase=Phase.AWAY, failures=failures, due=at.now + wait, reopen=reopen, trouble=text)
    return away, (Alarm(what=what, text=text, wait=wait),)


def _fetched(state: PartitionState, event: Fetched, at: Moment) -> Decision:
    del at
    if not state.attached or state.phase is Phase.DRAINING:
        return state, ()
    jumped = event.first > state.expected and state.unproved and state.doubt != event.first
    if event.first < state.expected or jumped:
        return replace(state, doubt=event.first, unproved=True), (Seek(offset=state.expected),)
    taken = replace(
        state,
        expected=event.last + 1,
        unproved=False,
        doubt=None,
        buffered=state.buffered + event.count,
        buffered_bytes=state.buffered_bytes + event.size,
    )
    return taken, (Take(),)


def _batch_ended(state: PartitionState, event: BatchEnded, at: Moment) -> Decision:
    moved = event.handled > state.handled
    state = replace(
        state,
        busy=False,
        position=event.position,
        leader_epoch=event.leader_epoch,
        handled=max(state.handled, event.handled),
        failures=0 if moved else state.failures,
        losses=0 if moved else state.losses,
        suspicion=_still_ahead(state.suspicion, max(event.handled, event.tried)),
        buffered=state.buffered - event.records,
        buffered_bytes=state.buffered_bytes - event.size,
        limit=min(at.limits.batch, state.limit * 2) if moved else state.limit,
    )
    drop = (DropBelow(offset=event.handled),) if event.records else ()
    if state.phase is Phase.DRAINING and event.ended is not Ended.STOPPED:
        return state, drop
    after, commands = _ended(state, event, at)
    return after, (*drop, *commands)


def _still_ahead(suspicion: tuple[int, int] | None, handled: int) -> tuple[int, int] | None:
    return suspicion if suspicion is not None and suspicion[0] >= handled else None


def _ended(state: PartitionState, event: BatchEnded, at: Moment) -> Decision:
    match event.ended:
        case Ended.WELL | Ended.GIVEN_UP:
            return state, ()
        case Ended.NOT_DUE:
            return replace(state, phase=Phase.WAITING, due=at.now + event.wait), ()
        case Ended.CONTENTION:
            return _contention(state, event, at)
        case Ended.AWAY:
            database = event.away == "database"
            suspect = None if event.suspect is None or not database else (event.suspect, at.now)
            return _away(replace(state, suspect=suspect), event.away, at, reopen=database, text=event.error)
        case Ended.VOID:
            return _void(state, now=at.now)
        case Ended.STOPPED:
            return replace(state, phase=Phase.CLOSED), (StopProcess(error=event.error),)


def _contention(state: PartitionState, event: BatchEnded, at: Moment) -> Decision:
    if not event.alone:
        return replace(state, limit=max(1, state.limit // 2), losses=0), ()
    losses = state.losses + 1
    return replace(state, limit=1, losses=losses, phase=Phase.WAITING, due=at.now + at.wait(losses)), ()


def _lane_broke(state: PartitionState, event: LaneBroke, at: Moment) -> Decision:
    del at
    return replace(state, busy=False, phase=Phase.CLOSED), (StopProcess(error=event.error),)


def _voided(state: PartitionState, event: Voided, at: Moment) -> Decision:
    del event
    return _void(state, now=at.now)


def _fetch_stopped(state: PartitionState, event: FetchStopped, at: Moment) -> Decision:
    """Read the watermark and where the log begins again; what is remembered of the fetch position is wrong."""
    state = replace(state, stopped=True)
    if state.phase in _DEAF or state.reopen:
        return state, ()
    return _away(state, "log", at, reopen=True, text=event.text)


def _void(state: PartitionState, *, now: float) -> Decision:
    """Read the watermark again, at *now*; whoever reads it just now or is about to has nothing to forget."""
    if state.phase in _DEAF or state.reopen:
        return state, ()
    return replace(state, phase=Phase.AWAY, due=now, reopen=True), ()


def _held(state: PartitionState, event: Held, at: Moment) -> Decision:
    del at
    return replace(state, held=event.paused), ()


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
    return _void(replace(state, committing=None), now=at.now + at.limits.commit_every)


def _tick(state: PartitionState, event: Tick, at: Moment) -> Decision:
    del event
    if state.phase not in _TIMED or at.now < state.due or state.busy:
        return state, ()
    if state.reopen:
        return replace(state, phase=Phase.OPENING, busy=True), (Open(),)
    return replace(state, phase=Phase.READING, trouble=""), ()


_REACTIONS: Mapping[type, Callable[[PartitionState, Any, Moment], Decision]] = {
    Assigned: _assigned,
    Opened: _opened,
    OpenFailed: _open_failed,
    Fetched: _fetched,
    BatchEnded: _batch_ended,
    LaneBroke: _lane_broke,
    Voided: _voided,
    FetchStopped: _fetch_stopped,
    Held: _held,
    Revoking: _revoking,
    Lost: _lost,
    Committed: _committed,
    CommitFailed: _commit_failed,
    CommitRefused: _commit_refused,
    Tick: _tick,
}
