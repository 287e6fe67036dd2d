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
from dataclasses import dataclass, replace

from packhorse.core.backoff import Backoff, delay_after
from packhorse.relay.model import ID, Batch, Fault, Policy, Position
from packhorse.relay.steps import (
    Command,
    Confirm,
    Confirmed,
    DatabaseFailed,
    Event,
    Fetch,
    Fetched,
    FlushLog,
    Leave,
    LogFlushed,
    LookAtLog,
    Own,
    Owned,
    OwnedElsewhere,
    OwnerChanged,
    RecordTrouble,
    Refused,
    Release,
    Released,
    Renewed,
    RenewSender,
    Save,
    Saved,
    Send,
    SenderRenewed,
    Sent,
    StopAsked,
    TroubleRecorded,
    Unconfirmed,
    Wait,
)

LONGEST_SAVE_PAUSE = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """
    All that one relay process knows; times are the machine's monotonic clock.

    Attributes:
        owned, deadline: Whether the shard is ours, and until when nobody else may take it.
        saved, confirmed, sent: Positions in the table, behind what the broker confirmed, behind what the client took.
            None: not known through this connection.
        waiting: Rows that the client took and the broker has not confirmed.
        unsaved: Rows confirmed since the last save.
        batch: Rows read and not yet sent.
        full: The client had no room for the whole batch.
        fault: A row that failed; rows before it go alone, then it goes alone.
        probing: The failed row is on its way again.
        broken: The client must be made anew.
        trouble, told: What is wrong, and what the table says about it.
    """

    owned: bool = False
    deadline: float = 0.0
    saved: Position | None = None
    confirmed: Position | None = None
    sent: Position | None = None
    waiting: int = 0
    unsaved: int = 0
    batch: Batch | None = None
    full: bool = False
    fault: Fault | None = None
    probing: bool = False
    broken: bool = False
    trouble: str | None = None
    told: str | None = None
    failures: int = 0
    database_at: float = 0.0
    send_at: float = 0.0
    look_at: float = 0.0
    poll_at: float = 0.0
    save_at: float = 0.0
    idle_save_at: float = 0.0
    save_pause: float = 0.0
    busy_until: float = 0.0
    flushing_since: float | None = None
    waiting_since: float | None = None
    draining_since: float | None = None
    stop_by: float | None = None
    left: bool = False


def decide(
    state: State, events: Iterable[Event], *, now: float, policy: Policy, jitter: float
) -> tuple[State, Command]:
    """Take in what happened, in order, and return what to do next; *jitter* is drawn from [0, 1)."""
    for event in events:
        state = apply(state, event, now=now, policy=policy, jitter=jitter)
    if state.owned and now >= state.deadline:
        state = _lose(state, now=now, policy=policy)
    command = choose(state, now=now, policy=policy)
    match command:
        case Confirm() if state.draining_since is None:
            state = replace(state, draining_since=now)
        case Send(rows=rows) if state.fault is not None and rows[0][ID] == state.fault.id:
            state = replace(state, probing=True)
    return state, command


# --- what happened ---------------------------------------------------------------------------------------------------


def apply(state: State, event: Event, *, now: float, policy: Policy, jitter: float) -> State:  # noqa: C901, PLR0911, PLR0912 one line an event
    """Return the state after *event*."""
    match event:
        case Owned():
            return _own(state, event)
        case OwnedElsewhere():
            return replace(state, owned=False, database_at=now + policy.standby_poll)
        case Renewed(deadline):
            return replace(state, deadline=max(state.deadline, deadline))
        case OwnerChanged():
            return _lose(state, now=now, policy=policy)
        case Fetched(batch):
            return _fetched(state, batch, now=now, policy=policy)
        case LogFlushed(reached):
            return _log_flushed(state, reached, now=now, policy=policy)
        case Sent(count):
            return _sent(state, count, now=now)
        case Confirmed():
            return _confirmed(state, now=now, policy=policy)
        case Unconfirmed():
            return _unconfirmed(state, now=now, policy=policy)
        case Refused():
            return _refused(state, event, now=now, pause=_pause(state, policy, jitter))
        case SenderRenewed():
            return replace(
                state, broken=False, waiting=0, waiting_since=None, draining_since=None, sent=state.confirmed,
                batch=None, full=False, probing=False, flushing_since=None,
            )  # fmt: skip
        case Saved():
            return replace(
                state, saved=state.confirmed, unsaved=0, failures=0 if state.fault is None else state.failures,
                save_at=now + max(state.save_pause, policy.save), idle_save_at=now + policy.idle_save,
            )  # fmt: skip
        case TroubleRecorded():
            return replace(state, told=state.trouble)
        case DatabaseFailed():
            return _database_failed(state, event, now=now, pause=_pause(state, policy, jitter))
        case StopAsked():
            return state if state.stop_by is not None else replace(state, stop_by=now + policy.stop_within)
        case Released():
            return replace(state, left=True)
    return state


def _pause(state: State, policy: Policy, jitter: float) -> float:
    backoff = Backoff(first=policy.retry_first, longest=policy.retry_longest)
    return delay_after(state.failures + 1, backoff, jitter=jitter)


def _own(state: State, event: Owned) -> State:
    """Begin at the position in the table; rows still on their way from before are confirmed together with what follows."""
    at = event.position
    return replace(
        state, owned=True, deadline=event.deadline, saved=at, confirmed=at, sent=at, unsaved=0, batch=None,
        full=False, probing=False, flushing_since=None, told=event.trouble,
    )  # fmt: skip


def _lose(state: State, *, now: float, policy: Policy) -> State:
    """Forget everything; what is on its way is dropped by making the client anew."""
    return State(
        broken=state.broken or state.waiting > 0, database_at=now + policy.standby_poll, stop_by=state.stop_by
    )


def _fetched(state: State, batch: Batch, *, now: float, policy: Policy) -> State:
    if batch.start != state.sent:
        return state
    if not batch.rows:
        at = batch.end(0)
        busy = now < state.busy_until
        return replace(
            state, sent=at, confirmed=state.confirmed if state.waiting else at,
            poll_at=now + (policy.poll if busy else policy.idle_poll), fault=None,
            trouble=None if state.fault is not None else state.trouble,
            failures=state.failures if state.unsaved or state.waiting else 0,
        )  # fmt: skip
    eager = not batch.complete or 2 * len(batch.rows) >= policy.batch_rows
    return replace(
        state, batch=batch, busy_until=now + policy.idle_after, poll_at=now if eager else now + policy.poll,
        flushing_since=now, look_at=now,
    )  # fmt: skip


def _log_flushed(state: State, reached: bool, *, now: float, policy: Policy) -> State:
    if state.batch is None or not reached:
        return replace(state, look_at=now + policy.flush_poll)
    return replace(state, batch=replace(state.batch, unflushed=None), flushing_since=None)


def _sent(state: State, count: int, *, now: float) -> State:
    batch = state.batch
    if batch is None:
        return state
    whole = count == len(batch.rows)
    return replace(
        state, sent=batch.end(count), waiting=state.waiting + count, batch=None if whole else batch.after(count),
        full=not whole and state.fault is None,
        waiting_since=now if state.waiting_since is None else state.waiting_since,
    )  # fmt: skip


def _confirmed(state: State, *, now: float, policy: Policy) -> State:
    drained = 0.0 if state.draining_since is None else now - state.draining_since
    pause = min(drained * (1 / policy.drain_share - 1), LONGEST_SAVE_PAUSE)
    healed = state.probing or state.fault is None
    return replace(
        state, confirmed=state.sent, unsaved=state.unsaved + state.waiting if state.sent != state.confirmed else 0,
        waiting=0, waiting_since=None, draining_since=None, full=False, save_pause=pause, probing=False,
        fault=None if healed else state.fault, trouble=None if healed else state.trouble,
        failures=0 if healed else state.failures,
    )  # fmt: skip


def _unconfirmed(state: State, *, now: float, policy: Policy) -> State:
    silent = state.waiting_since is not None and now - state.waiting_since > policy.silence
    text = "the broker confirms nothing; rows wait in the client and go on by themselves when it answers"
    return replace(state, full=False, trouble=text if silent and state.fault is None else state.trouble)


def _refused(state: State, event: Refused, *, now: float, pause: float) -> State:
    """Stop sending behind the row; what the client took before it stays on its way unless the client is broken."""
    state = _sent(state, event.sent, now=now) if event.sent else state
    fault = event.fault or state.fault
    return replace(
        state, fault=fault, probing=False, broken=state.broken or event.broken, full=False, send_at=now + pause,
        failures=state.failures + 1, trouble=str(fault) if fault is not None else event.reason,
    )  # fmt: skip


def _database_failed(state: State, event: DatabaseFailed, *, now: float, pause: float) -> State:
    state = replace(state, failures=state.failures + 1, database_at=now + pause)
    if event.connected:
        return state
    return replace(state, saved=None, confirmed=None, sent=None, batch=None, unsaved=0, flushing_since=None)


# --- what to do ------------------------------------------------------------------------------------------------------


def choose(state: State, *, now: float, policy: Policy) -> Command:
    """Return the one command that comes next."""
    if state.left:
        return Leave()
    if state.broken:
        return RenewSender(at_once=not state.owned or state.stop_by is not None)
    if state.stop_by is not None:
        return _stop(state, state.stop_by, now=now, policy=policy)
    if not state.owned or state.saved is None or state.sent is None:
        return Own() if now >= state.database_at else Wait(state.database_at - now)
    return _settle(state, now=now, policy=policy) or _carry(state, state.sent, now=now, policy=policy)


def _settle(state: State, *, now: float, policy: Policy) -> Command | None:
    """Return what must come before more is sent: the record of trouble, confirmations, the save."""
    if state.trouble != state.told and now >= state.database_at:
        return RecordTrouble(state.trouble)
    due = now >= state.save_at or state.fault is not None
    if state.waiting and (due or state.full):
        return Confirm(policy.confirm_slice)
    moved = state.confirmed != state.saved and not state.waiting
    if moved and ((state.unsaved and due) or now >= state.idle_save_at):
        return _database(state, _save(state), now=now)
    return None


def _save(state: State) -> Command:
    assert state.saved is not None
    assert state.confirmed is not None
    return Save(state.saved, state.confirmed, state.unsaved)


def _database(state: State, command: Command, *, now: float) -> Command:
    return command if now >= state.database_at else Wait(state.database_at - now)


def _carry(state: State, sent: Position, *, now: float, policy: Policy) -> Command:
    if (batch := state.batch) is None:
        if now >= state.poll_at:
            return _database(state, Fetch(sent), now=now)
        return Wait((min(state.poll_at, state.save_at) if state.waiting else state.poll_at) - now)
    if batch.unflushed is not None:
        return _database(state, _flush(state, batch.unflushed, now=now, policy=policy), now=now)
    if now < state.send_at:
        return Wait(state.send_at - now)
    return _send(state, batch, now=now)


def _flush(state: State, until: str, *, now: float, policy: Policy) -> Command:
    if state.flushing_since is not None and now - state.flushing_since >= policy.flush_patience:
        return FlushLog()
    return LookAtLog(until) if now >= state.look_at else Wait(state.look_at - now)


def _send(state: State, batch: Batch, *, now: float) -> Command:
    """Send the batch; with a failed row in it, only what stands before it, then that row alone."""
    rows = batch.rows
    if state.fault is None:
        return Send(rows, ahead=batch.end(len(rows)) if state.poll_at <= now else None)
    place = next((n for n, row in enumerate(rows) if row[ID] == state.fault.id), len(rows))
    return Send(rows[: place or 1], ahead=None)


def _stop(state: State, stop_by: float, *, now: float, policy: Policy) -> Command:
    """Take nothing new; confirm and save what was sent, give the lease back, leave; without them when time is up."""
    if not state.owned or state.saved is None:
        return Leave()
    if state.waiting:
        return (
            Confirm(min(policy.confirm_slice, stop_by - now)) if now < stop_by else RenewSender(at_once=True)
        )
    if now < state.database_at:
        return Wait(state.database_at - now) if now < stop_by else Leave()
    return _save(state) if state.confirmed != state.saved else Release()
