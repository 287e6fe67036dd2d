"""All that one relay process knows."""

from dataclasses import dataclass

from packhorse.relay.holds import Fault
from packhorse.relay.model import Batch, Position


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
        fault: A row that can't be sent, or the first one of those that the broker refused together.
        piece: So many rows go at a time, while the one is looked for that the broker refuses; None: whole batches.
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
    piece: int | None = None
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
    measure_at: float = 0.0
    busy_until: float = 0.0
    flushing_since: float | None = None
    waiting_since: float | None = None
    draining_since: float | None = None
    stop_by: float | None = None
    left: bool = False
