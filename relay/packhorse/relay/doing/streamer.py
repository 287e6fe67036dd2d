"""The relay's hands for the stream."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from packhorse.core import logs
from packhorse.relay.cdc.stream import Slot, Stream, StreamUnavailable
from packhorse.relay.deciding import commands as c
from packhorse.relay.deciding import events_stream as e
from packhorse.relay.deciding.events import Event
from packhorse.relay.model import AGGREGATEID
from packhorse.relay.ports import Pace, Pending
from packhorse.relay.shards import shard_of

_log = logs.logger("relay")


class Streamer:
    """Run the commands of the stream."""

    def __init__(self, stream: Stream, pace: Pace, *, limit: int) -> None:
        self._stream = stream
        self._pace = pace
        self._preparing: Pending[Slot] | None = None
        self._void = False
        self._limit = limit
        self._running = False
        self._shard, self._shards = 0, 1
        do: dict[type[Any], Callable[[Any], Event]] = {
            c.PrepareSlot: self._prepare,
            c.StartStream: self._start,
            c.ReadStream: self._read,
            c.MarkHorizon: lambda _: e.Marked(*self._stream.mark()),
            c.LookAtSlot: lambda _: e.SlotSeen(self._stream.held()),
            c.StopStream: self._stop,
        }
        self.do = {kind: partial(self._guarded, hand) for kind, hand in do.items()}

    def share(self, shard: int, shards: int) -> None:
        """Bring the rows of *shard*, of *shards*; the stream has those of all."""
        self._shard, self._shards = shard, shards

    def tend(self) -> None:
        """Keep the stream alive while the loop is busy elsewhere; what fails here shows at the next read."""
        if self._running:
            try:
                self._stream.tend()
            except StreamUnavailable as error:
                _log.warning("the stream broke", cause=error.cause, reason=str(error))

    def _prepare(self, _: c.PrepareSlot) -> Event:
        """Begin; a fence that is still being drawn for an earlier question may be of a database that has started anew since."""
        if self._preparing is None:
            self._preparing = self._pace.aside(self._stream.prepare)
        else:
            self._void = True
        return e.SlotAsked()

    def prepared(self) -> Event | None:
        """Return what became of the slot that was asked for, once; None: nothing new."""
        if self._preparing is None or not self._preparing.done():
            return None
        preparing, self._preparing = self._preparing, None
        if self._void:
            self._void, self._preparing = False, self._pace.aside(self._stream.prepare)
            return None
        return self._guarded(lambda _: e.SlotReady(preparing.result()), None)

    def _guarded(self, hand: Callable[[Any], Event], command: Any) -> Event:
        try:
            return hand(command)
        except StreamUnavailable as error:
            _log.warning("the stream is not to be had", cause=error.cause, reason=str(error))
            return e.StreamFailed(error.cause, str(error))

    def _start(self, command: c.StartStream) -> Event:
        self._stream.start(command.horizon, command.at)
        self._running = True
        return e.StreamStarted()

    def _read(self, command: c.ReadStream) -> Event:
        batch = self._stream.read(
            command.patience, limit=self._limit, confirmed=command.confirmed, ask=command.ask
        )
        if self._shards > 1:
            mine = [row for row in batch.rows if shard_of(row[AGGREGATEID], self._shards) == self._shard]
            batch = replace(batch, rows=mine)
        return e.Streamed(batch)

    def _stop(self, command: c.StopStream) -> Event:
        self._running = False
        self._stream.stop()
        if command.drop:
            try:
                self._stream.drop()
                _log.error("the slot is given up")
            except StreamUnavailable as error:
                _log.warning("the slot could not be given up", reason=str(error))
        return e.StreamStopped()
