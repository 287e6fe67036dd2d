"""
What the relay thinks with: positions, batches, what happened (events) and what to do (commands).

A row is a tuple, because 100,000 rows a second leave ten microseconds a row:

    (seq, aggregatetype, aggregateid, payload, created_at in ms, id, type, schema version, ... the rest of HEADER_COLUMNS,
     size of a payload that was held back and read afterwards, or None)
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from packhorse.core.errors import SettingsError
from packhorse.core.message import HEADER_COLUMNS

Row = tuple[Any, ...]
Snapshot = str
"""Text of a pg_snapshot: `xmin:xmax:running,...`. The core only compares and passes it on."""

SEQ, AGGREGATETYPE, AGGREGATEID, PAYLOAD, CREATED_MS, ID = range(6)
FIRST_HEADER = ID
"""From here on a row holds the columns of HEADER_COLUMNS in their order."""
WITHHELD = FIRST_HEADER + len(HEADER_COLUMNS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    """
    How far the outbox is published.

    A row is behind it when its transaction is visible in `horizon`, or visible in `target` with a seq of at most
    `progress`. Without a target, progress is 0.
    """

    horizon: Snapshot
    target: Snapshot | None = None
    progress: int = 0

    def __post_init__(self) -> None:
        assert self.target is not None or self.progress == 0, "progress means nothing without its target"


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """
    Rows of one target, in seq order, that follow a position without a gap.

    Attributes:
        start: Position that the rows follow.
        target: Snapshot in which they are visible.
        rows: What to send; may be empty.
        complete: True when the target holds no further row, or a release's stretch none.
        reach: seq up to which the rows were looked for; 0: up to the last one.
        unflushed: Write-ahead-log position that must be on disk before any of them is sent; None when it is.
    """

    start: Position
    target: Snapshot
    rows: Sequence[Row]
    complete: bool
    reach: int = 0
    unflushed: str | None = None

    def end(self, count: int) -> Position:
        """Return the position behind the first *count* rows."""
        if count == len(self.rows) and self.complete:
            return Position(horizon=self.target)
        progress = self.rows[count - 1][SEQ] if count else self.start.progress
        if count == len(self.rows):
            progress = max(progress, self.reach)
        return Position(horizon=self.start.horizon, target=self.target, progress=progress)

    def after(self, count: int) -> "Batch":
        """Return what is left behind the first *count* rows."""
        return Batch(
            start=self.end(count),
            target=self.target,
            rows=self.rows[count:],
            complete=self.complete,
            reach=self.reach,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """
    How the relay behaves; durations are in seconds.

    Attributes:
        batch_rows: Rows in one fetch, at most.
        poll: Pause between polls while rows come, at most.
        idle_poll: Pause between polls once none came for `idle_after`.
        save: Pause between saves, at least.
        idle_save: Pause between saves of a horizon that moved past no row.
        drain_share: Part of the time that may be spent waiting for the broker's confirmations before saves.
        flush_patience, flush_poll: How long to wait until somebody flushes the log, before the relay does; and how
            often to look.
        standby_poll: Pause between looks at a lease that another relay holds.
        confirm_slice: Longest single wait for confirmations, so that a stop or a lost lease is noticed.
        silence: Waiting longer than this for confirmations is trouble; the broker is then asked for partitions that
            can't be written to.
        broker_look: Pause between two such questions.
        silence_longest: After this, with a broker that answers, the client is made anew: partitions that never
            confirmed while others did are held.
        release_rows, release_rate: Rows in one step of a release, and rows a second, at most.
        meet_within: How long the relay stands still for a release to catch up.
        mode: polling, cdc or auto: whether to look for a stream.
        stream_retry: Pause before a stream is looked for again, at first.
        slot_look: Pause between two looks at the slot.
        slot_budget: Bytes of log that the slot may hold before it is given up.
        slot_lag: Bytes of log that the stream may lag before polling catches up instead.
        stop_within: Time for the last confirmations after a stop was asked for.
        measure: Pause between measurements of what waits; 0: it is not measured.
        retry_first, retry_longest: Bounds of the growing pause after a failure.
        heal_first: Pause before a hold that heals by itself is probed, at first; it grows up to retry_longest.
    """

    batch_rows: int = 5_000
    poll: float = 0.005
    idle_poll: float = 0.05
    idle_after: float = 5.0
    save: float = 0.2
    idle_save: float = 60.0
    drain_share: float = 0.1
    flush_patience: float = 0.01
    flush_poll: float = 0.001
    standby_poll: float = 0.25
    confirm_slice: float = 0.1
    silence: float = 5.0
    broker_look: float = 2.0
    silence_longest: float = 15.0
    release_rows: int = 500
    release_rate: int = 10_000
    meet_within: float = 2.0
    mode: str = "polling"
    stream_retry: float = 5.0
    slot_look: float = 2.0
    slot_budget: int = 4 << 30
    slot_lag: int = 256 << 20
    stop_within: float = 10.0
    measure: float = 0.0
    retry_first: float = 0.1
    retry_longest: float = 30.0
    heal_first: float = 1.0

    def __post_init__(self) -> None:
        if self.batch_rows < 1:
            raise SettingsError(f"batch_rows {self.batch_rows} is not allowed: at least 1")
        if not 0 < self.poll <= self.idle_poll:
            raise SettingsError(
                f"poll {self.poll} is not allowed: more than 0, at most idle_poll ({self.idle_poll})"
            )
