"""The relay's hands: run the commands that the core decides on, one after another, and tell it what happened."""

import contextlib
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any
from uuid import UUID

from packhorse.core import logs
from packhorse.core.clock import Chance, Clock
from packhorse.core.errors import DatabaseUnavailable, NotReady, PackhorseError
from packhorse.core.telemetry import NO_TELEMETRY, Metric, Telemetry
from packhorse.relay.cdc.stream import Stream
from packhorse.relay.deciding import commands as c
from packhorse.relay.deciding import events as e
from packhorse.relay.deciding.core import decide
from packhorse.relay.deciding.state import State
from packhorse.relay.doing.releaser import Releaser
from packhorse.relay.doing.sender import Sender
from packhorse.relay.doing.streamer import Streamer
from packhorse.relay.doing.telling import Teller
from packhorse.relay.errors import StatementFailed
from packhorse.relay.identity.judge import Verdict
from packhorse.relay.model import Batch, Policy, Position
from packhorse.relay.ports import Broker, Keeper, NoProbe, Outbox, Pace, Pending, Probe

_log = logs.logger("relay")


class Relay:
    """
    Carry rows from the outbox to the topics until a stop is asked for.

    `run` blocks and belongs to one thread; `stop` may be called from any, and from a signal handler.
    """

    def __init__(
        self,
        *,
        outbox: Outbox,
        broker: Broker,
        keeper: Keeper,
        pace: Pace,
        policy: Policy,
        owner: str,
        lease: float,
        clock: Clock,
        chance: Chance,
        telemetry: Telemetry = NO_TELEMETRY,
        probe: Probe | None = None,
        second: Callable[[], Broker] | None = None,
        stream: Stream | None = None,
    ) -> None:
        """Put the hands on their tools; *second* makes the client that releases of holds go through."""
        self._outbox = outbox
        self._broker = broker
        self._keeper = keeper
        self._pace = pace
        self._policy = policy
        self._owner = owner
        self._lease = lease
        self._clock = clock
        self._chance = chance
        self._telemetry = telemetry
        self._probe = probe or NoProbe()
        self._token: UUID | None = None
        self._stop = self._standing_by = False
        self._woken = False
        self._ahead: tuple[Position, Pending[Batch]] | None = None
        self._do: dict[type[Any], Callable[[Any], e.Event]] = {
            c.Own: self._own,
            c.Fetch: self._fetch,
            c.LookAtLog: lambda command: e.LogFlushed(self._outbox.log_reached(command.until)),
            c.FlushLog: self._flush_log,
            c.Send: self._send,
            c.Save: self._save,
            c.RecordTrouble: self._record_trouble,
            c.MeasureLag: self._measure_lag,
            c.Wait: self._wait,
            c.Release: self._release,
            c.ReadOrders: self._read_orders,
            c.RecordMode: self._record_mode,
        }
        self._teller = Teller(telemetry)
        self._releaser = Releaser(outbox, second or (lambda: broker), self._probe, self._deadline)
        self._sender = Sender(broker, telemetry, self._probe, self._deadline)
        self._do |= self._releaser.do | self._sender.do
        self._streamer = None if stream is None else Streamer(stream, pace, limit=policy.batch_rows)
        if self._streamer is not None:
            self._do |= self._streamer.do

    def wake(self) -> None:
        """Say that rows may have been committed; from any thread. The next poll comes at once."""
        self._woken = True
        self._pace.wake()

    def stop(self) -> None:
        """Ask for a clean stop: nothing new is taken, what was sent is confirmed and saved, the lease is given back."""
        self._stop = True
        self._pace.wake()

    @property
    def owned(self) -> bool:
        """Tell whether this process owns the shard; from any thread, and a moment old."""
        return self._token is not None

    def halt_release(self) -> None:
        """Drop what a release has on its way and has not left yet; from any thread."""
        self._releaser.halt()

    def run(self) -> None:
        """Run until a stop is done; trouble of any kind pauses and is tried again."""
        state = State()
        event: e.Event = e.Started()
        try:
            while True:
                news = [event, *self._news(state)]
                before = state
                state, command = decide(
                    state,
                    news,
                    now=self._clock.monotonic(),
                    policy=self._policy,
                    jitter=self._chance.fraction(),
                )
                self._tell(before, state)
                if isinstance(command, c.Leave):
                    return
                event = self._execute(command)
        finally:
            self._keeper.drop()
            self._releaser.close()

    def _deadline(self) -> float | None:
        """Return the end of the lease as long as it runs."""
        deadline = self._keeper.deadline()
        return None if deadline is None or self._clock.monotonic() >= deadline else deadline

    def _news(self, state: State) -> Sequence[e.Event]:
        news: list[e.Event] = []
        if self._woken:
            self._woken = False  # before the poll: what is committed after it wakes again
            news.append(e.Woken())
        if self._stop and state.stop_by is None:
            news.append(e.StopAsked())
        if state.owned:
            deadline = self._keeper.deadline()
            news.append(e.OwnerChanged() if deadline is None else e.Renewed(deadline, self._keeper.orders()))
        if self._streamer is not None and (ready := self._streamer.prepared()) is not None:
            news.append(ready)
        return news

    def _execute(self, command: c.Command) -> e.Event:
        if self._streamer is not None:
            self._streamer.tend()
        try:
            return self._do[type(command)](command)
        except DatabaseUnavailable as error:
            self._forget_ahead()
            _log.warning("the database is away", reason=str(error))
            self._telemetry.record(Metric.RELAY_PAUSES, 1, {"reason": "database"})
            return e.DatabaseFailed(str(error), connected=False)
        except (StatementFailed, NotReady) as error:
            _log.warning("a statement failed", command=type(command).__name__, reason=str(error))
            self._telemetry.record(Metric.RELAY_PAUSES, 1, {"reason": "database"})
            return e.DatabaseFailed(str(error), connected=True)

    def _own(self, _: c.Own) -> e.Event:
        self._forget_ahead()
        token = self._token or self._chance.token()
        asked = self._clock.monotonic()
        owned = self._outbox.own(token, self._owner, self._lease)
        if owned is None:
            if not self._standing_by:
                _log.info("another process owns the shard; this one stands by")
            self._token, self._standing_by = None, True
            return e.OwnedElsewhere()
        self._standing_by = False
        deadline = asked + self._lease
        if self._token is None:
            _log.info("this process owns the shard", epoch=owned.epoch, horizon=owned.position.horizon)
        self._token = token
        if self._streamer is not None:
            self._streamer.share(owned.shard, owned.shards)
        self._keeper.keep(token, deadline)
        self._tell_of_server(owned.verdict)
        self._probe.reached("owned")
        return e.Owned(
            owned.position, deadline, owned.trouble, holds=owned.holds, orders=owned.orders, finish=owned.finish, mode=owned.mode
        )  # fmt: skip

    def _tell_of_server(self, verdict: Verdict | None) -> None:
        if verdict is None or verdict.text is None:
            return
        tell = _log.warning if verdict.alarm else _log.info
        tell("another server or an earlier state of it answers", kind=verdict.kind, said=verdict.text)
        self._telemetry.record(Metric.RELAY_SERVER_CHANGES, 1, {"reason": verdict.kind})

    def _fetch(self, command: c.Fetch) -> e.Event:
        ahead, self._ahead = self._ahead, None
        if ahead is not None and ahead[0] == command.position:
            batch = ahead[1].result()
        else:
            batch = self._outbox.fetch(command.position, self._policy.batch_rows)
        if batch.rows:
            self._probe.reached("fetched")
        return e.Fetched(batch)

    def _forget_ahead(self) -> None:
        """Wait for a fetch that runs ahead and drop what it brought."""
        ahead, self._ahead = self._ahead, None
        if ahead is not None:
            with contextlib.suppress(PackhorseError):
                ahead[1].result()

    def _flush_log(self, _: c.FlushLog) -> e.Event:
        self._outbox.flush_log()
        return e.LogFlushed(True)

    def _send(self, command: c.Send) -> e.Event:
        if command.ahead is not None and (self._ahead is None or self._ahead[0] != command.ahead):
            self._forget_ahead()
            limit = self._policy.batch_rows
            self._ahead = command.ahead, self._pace.begin(partial(self._outbox.fetch, command.ahead, limit))
        return self._sender.send(command.rows)

    def _save(self, command: c.Save) -> e.Event:
        assert self._token is not None
        if not self._outbox.save(self._token, command):
            return self._lost("the save was refused")
        self._telemetry.record(Metric.RELAY_SAVES, 1)
        self._telemetry.record(Metric.RELAY_PUBLISHED, command.rows)
        self._probe.reached("saved")
        return e.Saved()

    def _read_orders(self, _: c.ReadOrders) -> e.Event:
        orders = self._outbox.orders()
        return e.OrdersRead(orders.holds, orders.finish, orders.orders)

    def _record_mode(self, command: c.RecordMode) -> e.Event:
        assert self._token is not None
        if not self._outbox.record_mode(self._token, command.mode, command.cause):
            return self._lost("the record of the mode was refused")
        return e.ModeRecorded()

    def _record_trouble(self, command: c.RecordTrouble) -> e.Event:
        assert self._token is not None
        if not self._outbox.record_trouble(self._token, command.text):
            return self._lost("the record of trouble was refused")
        return e.TroubleRecorded()

    def _measure_lag(self, command: c.MeasureLag) -> e.Event:
        rows, seconds = self._outbox.lag(command.position)
        self._telemetry.record(Metric.RELAY_LAG_ROWS, rows)
        self._telemetry.record(Metric.RELAY_LAG_SECONDS, seconds)
        return e.LagMeasured()

    def _lost(self, what: str) -> e.Event:
        self._broker.halt()
        self._keeper.drop()
        self._token = None
        _log.error(f"{what}: somebody else owns the shard")
        return e.OwnerChanged()

    def _wait(self, command: c.Wait) -> e.Event:
        self._pace.pause(max(command.seconds, 0.0))
        return e.Waited()

    def _release(self, _: c.Release) -> e.Event:
        assert self._token is not None
        self._keeper.drop()
        self._outbox.release(self._token)
        self._probe.reached("released")
        return e.Released()

    def _tell(self, before: State, after: State) -> None:
        if after.owned != before.owned:
            self._telemetry.record(Metric.RELAY_OWNER, int(after.owned))
            if not after.owned:
                _log.warning("this process no longer owns the shard; nothing more is sent")
                self._token = None
                self._keeper.drop()
        self._teller.tell(before, after)
