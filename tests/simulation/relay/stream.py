"""The port `Stream` on the simulated database: what the flushed log says, commit by commit."""

from collections.abc import Callable

from tests.simulation.relay.database import Database, visible
from tests.simulation.relay.outbox import as_tuple

from packhorse.relay.cdc.stream import Cause, Slot, SlotState, StreamBatch, StreamUnavailable
from packhorse.relay.model import Row

PATIENCE = 40


class SimStream:
    """
    Be the port `Stream`; a commit is given once its record is on disk, though nobody may see it yet.

    Attributes:
        skip_the_fence: Planted: stream at once, without waiting for those that ran when the slot was made.
        mark_late: Planted: take the position of the log before the snapshot.
    """

    def __init__(self, database: Database, shard: int, *, pause: Callable[[], None]) -> None:
        self.database = database
        self.shard = shard
        self.pause = pause
        self.cut: Callable[[], bool] = lambda: False
        self.skip_the_fence = False
        self.mark_early = False
        self._incarnation = -1
        self._at = self._given = 0
        self._horizon = ""
        self._rest: list[Row] = []

    def _look(self) -> None:
        self.pause()
        if self.cut():
            self._incarnation = -1
            raise StreamUnavailable("cut", cause=Cause.STREAM_FAILED)

    def prepare(self) -> Slot:
        self._look()
        database = self.database
        if self.shard not in database.slots:
            born, running = database.incarnation, set(database.running)
            for _ in range(PATIENCE):
                if not running & set(database.running) or database.incarnation != born:
                    break
                self.pause()
            if running & set(database.running) or database.incarnation != born:
                raise StreamUnavailable("a writer runs", cause=Cause.SLOT_LOST)
            database.slots[self.shard] = database.inserted
        at = database.inserted
        self._look()
        fence = database.begin()
        database.abort(fence)
        self.pause()
        return Slot(name="slot", fence=-1 if self.skip_the_fence else fence.xid, at=at)

    def start(self, horizon: str, at: int) -> None:
        self._look()
        slots = self.database.slots
        if self.shard not in slots:
            raise StreamUnavailable("no slot", cause=Cause.SLOT_LOST)
        slots[self.shard] = max(slots[self.shard], at)
        self._incarnation, self._horizon, self._rest = self.database.incarnation, horizon, []
        self._at = self._given = at

    def read(self, patience: float, *, limit: int, confirmed: int, ask: bool) -> StreamBatch:
        del patience, ask
        self._look()
        database = self.database
        if self.shard not in database.slots or self._incarnation != database.incarnation:
            raise StreamUnavailable("the slot is gone", cause=Cause.SLOT_LOST)
        at = database.slots[self.shard]
        database.slots[self.shard] = max(at, min(confirmed, database.flushed))
        rows = self._rest
        for commit in database.log:
            if len(rows) >= limit:
                break
            if self._at < commit.lsn <= database.flushed:
                self._at = commit.lsn
                rows = rows + [
                    as_tuple(row)
                    for row in sorted(commit.rows, key=lambda row: row.seq)
                    if not visible(row.xid, self._horizon)
                ]
        else:
            self._at = max(self._at, database.flushed)
        self._rest = rows[limit:]
        if not self._rest:
            self._given = self._at
        self.pause()
        return StreamBatch(rows=rows[:limit], received=self._given)

    def tend(self) -> None:
        pass

    def stop(self) -> None:
        self._incarnation = -1

    def mark(self) -> tuple[str, int]:
        self._look()
        early = self.database.inserted
        snapshot = self.database.snapshot()
        self.pause()
        if self._incarnation != self.database.incarnation:
            raise StreamUnavailable("cut", cause=Cause.STREAM_FAILED)
        return snapshot, max(early - 2, 0) if self.mark_early else self.database.inserted

    def held(self) -> SlotState:
        self._look()
        slot = self.database.slots.get(self.shard)
        held = None if slot is None else self.database.inserted - slot
        return SlotState(name="slot", exists=slot is not None, held_bytes=held, lag_bytes=held)

    def drop(self) -> None:
        self.database.slots.pop(self.shard, None)
