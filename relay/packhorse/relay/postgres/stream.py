"""Committed outbox rows as the server decodes them: the port `Stream`."""

from datetime import UTC, datetime

from packhorse.core.clock import Clock
from packhorse.relay.cdc.pgoutput import Decoder
from packhorse.relay.cdc.stream import Cause, Slot, SlotState, StreamBatch, StreamUnavailable
from packhorse.relay.model import Snapshot
from packhorse.relay.postgres.connection import Reach
from packhorse.relay.postgres.replication import Replication
from packhorse.relay.postgres.slot_faults import failed, lost, not_set_up
from packhorse.relay.postgres.slots import Slots

BATCH_BYTES = 16 * 1024 * 1024
"""Bytes of rows in one read, about; what lies behind them stays in the socket and with the server."""
SILENCE = 20.0
"""Seconds after which the server ends the stream of a reader that says nothing: so long does a frozen one keep the slot."""
STATUS_PAUSE = 1.0
"""Seconds between two signs of life, at most."""
_REST_OF_TRANSACTION = 0.002
"""Seconds to wait for the end of a transaction whose first rows are there: the server sends each row by itself."""
_POSTGRES_EPOCH = datetime(2000, 1, 1, tzinfo=UTC)


class PostgresStream:
    """Be the port `Stream`; one thread at a time."""

    def __init__(
        self,
        url: str,
        schema: str,
        *,
        clock: Clock,
        shard: int = 0,
        database_url: str | None = None,
        reach: Reach | None = None,
        silence: float = SILENCE,
    ) -> None:
        """
        Connect to nothing yet.

        *url* must lead to the server itself, not to a pooler. *database_url*, when another, is the one that the outbox
        is read through: the two are compared, for a horizon of one database means nothing in another.
        """
        self._url = url
        self._schema = schema
        self._clock = clock
        self._reach = reach or Reach()
        self._silence = silence
        self._pause = min(STATUS_PAUSE, silence / 4)
        self._slots = Slots(url, schema, shard=shard, reach=self._reach)
        self._other = None if database_url in (None, url) else database_url
        self._connection: Replication | None = None
        self._decoder: Decoder | None = None
        self._process = self._generation = 0
        self._at = self._confirmed = 0
        self._told_at = 0.0
        self._asked_at: float | None = None
        self._error: StreamUnavailable | None = None

    def prepare(self) -> Slot:
        server = self._slots.open()
        self._slots.check(server)
        self._compare()
        self._slots.make(server)
        slot = self._slots.fence()
        self._leave_behind()
        self._slots.advance(slot.at)
        return slot

    def start(self, horizon: Snapshot, at: int) -> None:
        self.stop()
        self._slots.check(self._slots.open())
        self._leave_behind()
        self._slots.advance(at)
        connection = Replication(self._url, self._reach, silence=self._silence)
        try:
            self._same_server(connection)
            connection.start(slot=self._slots.name, publication=self._slots.publication, at=at)
        except BaseException:
            connection.close()
            raise
        self._connection, self._process, self._error = connection, connection.process, None
        self._decoder = Decoder(self._schema, horizon=horizon, received=at)
        self._generation = self._slots.generation
        self._at, self._confirmed, self._asked_at = at, 0, None
        self._tell(connection, self._decoder, ask=False)

    def read(self, patience: float, *, limit: int, confirmed: int, ask: bool) -> StreamBatch:
        connection, decoder = self._running()
        if confirmed > self._at:  # the position that we began at may not be on disk; what the server sent is
            self._confirmed = max(self._confirmed, confirmed)
        try:
            if ask and self._asked_at is None:
                decoder.word = False
                self._tell(connection, decoder, ask=True)
            self._gather(connection, decoder, patience, limit, asked=ask)
            self._tend(connection, decoder)
            if decoder.rows:
                self._slots.secure()
        except StreamUnavailable as error:
            raise self._broken(error) from error
        return StreamBatch(rows=decoder.take(), received=decoder.received)

    def _gather(
        self, connection: Replication, decoder: Decoder, patience: float, limit: int, *, asked: bool
    ) -> None:
        """Fill the decoder up to the limits; wait only while it has nothing to give."""
        until = self._clock.monotonic() + patience
        while True:
            for _ in range(connection.pulls):
                if not self._drain(connection, decoder, limit):
                    return
                connection.pull()
            if not self._drain(connection, decoder, limit):
                return
            now = self._clock.monotonic()
            if decoder.rows:
                if not decoder.open or now >= until:
                    return
                until = min(until, now + _REST_OF_TRANSACTION)
            elif now >= until or (asked and decoder.word):
                return
            self._tend(connection, decoder)
            connection.wait(min(until, self._told_at + self._pause) - now)

    def _drain(self, connection: Replication, decoder: Decoder, limit: int) -> bool:
        """Decode what is here already; False when a limit was met."""
        read, feed, rows = connection.read, decoder.feed, decoder.rows
        while len(rows) < limit and decoder.size < BATCH_BYTES:
            size, data = read(1)
            if size > 0:
                feed(data)
            elif size == 0:
                return True
            else:
                raise connection.end()
        return False

    def tend(self) -> None:
        if self._connection is None or self._decoder is None:
            return
        try:
            self._tend(self._connection, self._decoder)
        except StreamUnavailable as error:
            self._error = self._broken(error)

    def _tend(self, connection: Replication, decoder: Decoder) -> None:
        now = self._clock.monotonic()
        if decoder.word:
            self._asked_at = None
        elif self._asked_at is not None and now >= self._asked_at + self._silence:
            raise failed(
                f"the server has not answered for {self._silence:g} s; is it busy, or the network cut?"
            )
        if decoder.reply_wanted or now >= self._told_at + self._pause:
            self._tell(connection, decoder, ask=False)

    def _tell(self, connection: Replication, decoder: Decoder, *, ask: bool) -> None:
        now = self._clock.monotonic()
        micros = (self._clock.now() - _POSTGRES_EPOCH).total_seconds() * 1_000_000
        connection.status(received=decoder.received, confirmed=self._confirmed, micros=int(micros), ask=ask)
        decoder.reply_wanted = False
        self._told_at = now
        if ask:
            self._asked_at = now

    def stop(self) -> None:
        connection, self._connection, self._decoder = self._connection, None, None
        if connection is not None:
            connection.close()

    def mark(self) -> tuple[Snapshot, int]:
        self._running()
        try:
            if self._slots.generation != self._generation:
                raise failed("the connection to the database was another when the stream began")
            return self._slots.mark()
        except StreamUnavailable as error:
            raise self._broken(error) from error

    def held(self) -> SlotState:
        self._slots.open()
        return self._slots.state()

    def drop(self) -> None:
        self.stop()
        self._slots.open()
        self._leave_behind()
        self._slots.drop()

    def close(self) -> None:
        """Drop both connections; the slot stays. Never raises."""
        self.stop()
        self._slots.close()

    def _leave_behind(self) -> None:
        """End our last server process: it may not have noticed that we left, and holds the slot until it does."""
        if self._process:
            self._slots.end_reader(self._process)
            self._process = 0

    def _running(self) -> tuple[Replication, Decoder]:
        if self._connection is None or self._decoder is None:
            raise self._error or failed("there is no stream; it has to be started first")
        return self._connection, self._decoder

    def _broken(self, error: StreamUnavailable) -> StreamUnavailable:
        """
        Stop, and look whether the slot itself is gone or lost, where the other connection still answers.

        The server says no more than "terminated" when it takes a slot away.
        """
        self.stop()
        if error.cause is not Cause.STREAM_FAILED:
            return error
        try:
            state = self._slots.state()
        except StreamUnavailable:
            return error
        if state.exists and state.lost is None:
            return error
        what = f"is lost ({state.lost})" if state.exists else "is gone"
        return lost(f"slot {self._slots.name} {what}; {error}")

    def _same_server(self, connection: Replication) -> None:
        """Refuse two connections to different servers: after a failover, a mark of one means nothing in the log of the other."""
        if (streams := connection.identity()) != (ours := self._slots.identity()):
            raise failed(
                f"two connections of one URL lead to different servers: {streams} and {ours}; "
                "name the primary alone in replication_url"
            )

    def _compare(self) -> None:
        """Refuse a replication_url that leads to another database than the outbox's."""
        if self._other is None:
            return
        outbox = Slots(self._other, self._schema, shard=0, reach=self._reach)
        try:
            outbox.open()
            theirs = outbox.identity()
        finally:
            outbox.close()
        if (ours := self._slots.identity()) != theirs:
            raise not_set_up(
                f"replication_url leads to server {ours[0]}, timeline {ours[1]}, database {ours[2]}, and database_url to "
                f"{theirs[0]}, {theirs[1]}, {theirs[2]}; both must be the same primary"
            )
