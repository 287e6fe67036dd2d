"""All that one relay process knows."""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from packhorse.relay.cdc.stream import Cause
from packhorse.relay.holds import Fault, Hold, Leg, Scope, Screen
from packhorse.relay.model import Batch, Position, Row


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """
    A hold whose rows are on their way, through a client of their own; one at a time.

    Attributes:
        scope: Which hold.
        leg: The stretch in work; None: the next one is to be found.
        sent: Position behind what the client took.
        batch: Rows read and not yet sent.
        waiting, waiting_since: Rows taken and not confirmed.
        fault: A row that can't be sent; it becomes a hold once what stands before it is confirmed.
        piece: So many rows go at a time: one at first, twice as many after each confirmation.
        moved: A leg is done.
        meeting, meet_by: The relay stands still, until the release has caught up with it or this time is over.
        next_at: No earlier, for the rate or after trouble.
        failures: Troubles in a row that nobody's row is to blame for.
        broken: The client must be closed.
    """

    scope: Scope
    sent: Position
    leg: Leg | None = None
    batch: Batch | None = None
    waiting: int = 0
    waiting_since: float | None = None
    fault: Fault | None = None
    piece: int = 1
    moved: bool = False
    meeting: bool = False
    meet_by: float = 0.0
    next_at: float = 0.0
    failures: int = 0
    broken: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream:
    """
    The way from polling to a stream, and the stream.

    Attributes:
        fence, at: A horizon whose xmin is past the fence holds every transaction that a stream from `at` leaves out.
        running: Rows come from the stream; False: polling goes on until the horizon is past the fence.
        received, sent, confirmed: Positions of the log behind which all was read, handed over, confirmed.
        rows: Read and not yet sent.
        mark: A snapshot and a position of the log: once all up to there is confirmed, the snapshot is the horizon.
        caught_up: The last read brought few rows, so that waiting for confirmations costs nothing.
        closed: A horizon was marked since a stop was asked for; nothing more is read.
    """

    fence: int
    at: int
    running: bool = False
    received: int = 0
    sent: int = 0
    confirmed: int = 0
    rows: Sequence[Row] = ()
    mark: tuple[str, int] | None = None
    caught_up: bool = True
    closed: bool = False


@dataclass(frozen=True, kw_only=True)
class State:
    """
    All that one relay process knows; times are the machine's monotonic clock.

    Attributes:
        owned, deadline: Whether the shard is ours, and until when nobody else may take it.
        orders, orders_read: People's orders in the table, and how many of them are known.
        finish: Take no new target.
        saved, confirmed, sent: Positions in the table, behind what the broker confirmed, behind what the client took.
            None: not known through this connection. While streaming all three stay at the horizon.
        holds, saved_holds: What is left out, and what the table says of it.
        screen: Tells the rows that are left out.
        retries: When a hold that heals by itself is probed next.
        waiting: Rows that the client took and the broker has not confirmed.
        unsaved: Rows confirmed since the last save.
        batch: Rows read and not yet sent.
        full: The client had no room for the whole batch.
        fault: A row or topic that can't be sent; it becomes a hold once what was sent before it is confirmed.
        unreachable: Partitions that become holds once the client is made anew.
        piece: So many rows go at a time, while the one is looked for that the broker refuses; None: whole batches.
        broken: The client must be made anew.
        trouble, told: What is wrong, and what the table says about it.
        release: A hold on its way back.
        turn: The release comes before the next batch.
        stream: The stream, or the way to it.
        mode, mode_cause, mode_told: How the outbox is read, why, and what of that the table says.
        preparing: A slot is being made ready, beside everything else.
        leaving: Why the stream is left; None: it is not.
    """

    owned: bool = False
    deadline: float = 0.0
    orders: int = 0
    orders_read: int = 0
    finish: bool = False
    saved: Position | None = None
    confirmed: Position | None = None
    sent: Position | None = None
    holds: tuple[Hold, ...] = ()
    saved_holds: tuple[Hold, ...] = ()
    screen: Screen = field(default_factory=lambda: Screen(()), compare=False)
    retries: tuple[tuple[Scope, float], ...] = ()
    waiting: int = 0
    unsaved: int = 0
    batch: Batch | None = None
    full: bool = False
    fault: Fault | None = None
    unreachable: tuple[Fault, ...] = ()
    piece: int | None = None
    broken: bool = False
    trouble: str | None = None
    told: str | None = None
    failures: int = 0
    release: Release | None = None
    turn: bool = False
    stream: Stream | None = None
    mode: str = "polling"
    mode_cause: Cause = Cause.START
    mode_told: tuple[str, Cause] | None = None
    preparing: bool = False
    leaving: Cause | None = None
    drop_slot: bool = False
    stream_failures: int = 0
    database_at: float = 0.0
    send_at: float = 0.0
    look_at: float = 0.0
    poll_at: float = 0.0
    save_at: float = 0.0
    idle_save_at: float = 0.0
    save_pause: float = 0.0
    measure_at: float = 0.0
    busy_until: float = 0.0
    broker_at: float = 0.0
    renew_at: float = 0.0
    stream_at: float = 0.0
    slot_at: float = 0.0
    flushing_since: float | None = None
    waiting_since: float | None = None
    draining_since: float | None = None
    stop_by: float | None = None
    left: bool = False

    @property
    def streaming(self) -> bool:
        """Tell whether rows come from the stream."""
        return self.stream is not None and self.stream.running

    @property
    def settled(self) -> bool:
        """Tell whether all that was sent is confirmed."""
        return self.waiting == 0 and not self.broken

    def hold_of(self, scope: Scope) -> Hold | None:
        """Return the hold of *scope*, if there is one."""
        return next((hold for hold in self.holds if hold.scope == scope), None)


if TYPE_CHECKING:
    from dataclasses import replace as replace  # noqa: PLC0414 handed on, so that types are checked as for any dataclass
else:

    def replace(instance: Any, /, **changes: Any) -> Any:
        """
        Be `dataclasses.replace`, a tenth as dear for State: it has many fields, and a row at a time costs a dozen changes.

        Copying a dict takes 1 µs, calling a constructor of fifty fields 10.
        """
        if type(instance) is not State:
            return dataclasses.replace(instance, **changes)
        new = object.__new__(State)
        new.__dict__.update(instance.__dict__)
        new.__dict__.update(changes)
        assert len(new.__dict__) == _FIELDS, f"no such field: {changes.keys()}"
        return new

    _FIELDS = len(dataclasses.fields(State))
