"""The relay's hands: run the commands that the core decides on, one after another, and tell it what happened."""

import contextlib
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any
from uuid import UUID

from packhorse.core import logs
from packhorse.core.clock import Chance, Clock
from packhorse.core.errors import BrokerUnavailable, DatabaseUnavailable, NotReady, PackhorseError
from packhorse.core.telemetry import NO_TELEMETRY, Metric, Telemetry
from packhorse.relay import steps as m
from packhorse.relay.core import decide
from packhorse.relay.errors import StatementFailed
from packhorse.relay.identity.judge import Verdict
from packhorse.relay.model import Policy, Position, Row
from packhorse.relay.ports import Broker, Handed, Keeper, NoProbe, Outbox, Pace, Pending, Probe
from packhorse.relay.state import State
from packhorse.relay.tracing import sending

_log = logs.logger("relay")
AWAIT_REPORTS = 10.0
"""Seconds that outstanding reports are awaited for after one failed."""
PIECE = 500
"""Rows between two looks at the lease: some five milliseconds."""


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
    ) -> None:
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
        self._stop = False
        self._ahead: tuple[Position, Pending] | None = None
        self._do: dict[type[Any], Callable[[Any], m.Event]] = {
            m.Own: self._own,
            m.Fetch: self._fetch,
            m.LookAtLog: lambda command: m.LogFlushed(self._outbox.log_reached(command.until)),
            m.FlushLog: self._flush_log,
            m.Send: self._send,
            m.Confirm: self._confirm,
            m.RenewSender: self._renew_sender,
            m.Save: self._save,
            m.RecordTrouble: self._record_trouble,
            m.MeasureLag: self._measure_lag,
            m.Wait: self._wait,
            m.Release: self._release,
        }

    def stop(self) -> None:
        """Ask for a clean stop: nothing new is taken, what was sent is confirmed and saved, the lease is given back."""
        self._stop = True
        self._pace.wake()

    def run(self) -> None:
        """Run until a stop is done; trouble of any kind pauses and is tried again."""
        state = State()
        event: m.Event = m.Started()
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
                if isinstance(command, m.Leave):
                    return
                event = self._execute(command)
        finally:
            self._keeper.drop()

    def _news(self, state: State) -> Sequence[m.Event]:
        news: list[m.Event] = []
        if self._stop and state.stop_by is None:
            news.append(m.StopAsked())
        if state.owned:
            deadline = self._keeper.deadline()
            news.append(m.OwnerChanged() if deadline is None else m.Renewed(deadline))
        return news

    def _execute(self, command: m.Command) -> m.Event:
        try:
            return self._do[type(command)](command)
        except DatabaseUnavailable as error:
            self._forget_ahead()
            _log.warning("the database is away", reason=str(error))
            self._telemetry.record(Metric.RELAY_PAUSES, 1, {"reason": "database"})
            return m.DatabaseFailed(str(error), connected=False)
        except (StatementFailed, NotReady) as error:
            _log.warning("a statement failed", command=type(command).__name__, reason=str(error))
            self._telemetry.record(Metric.RELAY_PAUSES, 1, {"reason": "database"})
            return m.DatabaseFailed(str(error), connected=True)

    def _own(self, _: m.Own) -> m.Event:
        self._forget_ahead()
        token = self._token or self._chance.token()
        asked = self._clock.monotonic()
        owned = self._outbox.own(token, self._owner, self._lease)
        if owned is None:
            self._token = None
            return m.OwnedElsewhere()
        deadline = asked + self._lease
        if self._token is None:
            _log.info("this process owns the shard", epoch=owned.epoch, horizon=owned.position.horizon)
        self._token = token
        self._keeper.keep(token, deadline)
        self._tell_of_server(owned.verdict)
        self._probe.reached("owned")
        return m.Owned(owned.position, deadline, owned.trouble)

    def _tell_of_server(self, verdict: Verdict | None) -> None:
        if verdict is None or verdict.text is None:
            return
        tell = _log.warning if verdict.alarm else _log.info
        tell("another server or an earlier state of it answers", kind=verdict.kind, said=verdict.text)
        self._telemetry.record(Metric.RELAY_SERVER_CHANGES, 1, {"reason": verdict.kind})

    def _fetch(self, command: m.Fetch) -> m.Event:
        ahead, self._ahead = self._ahead, None
        if ahead is not None and ahead[0] == command.position:
            batch = ahead[1].result()
        else:
            batch = self._outbox.fetch(command.position, self._policy.batch_rows)
        if batch.rows:
            self._probe.reached("fetched")
        return m.Fetched(batch)

    def _forget_ahead(self) -> None:
        """Wait for a fetch that runs ahead and drop what it brought."""
        ahead, self._ahead = self._ahead, None
        if ahead is not None:
            with contextlib.suppress(PackhorseError):
                ahead[1].result()

    def _flush_log(self, _: m.FlushLog) -> m.Event:
        self._outbox.flush_log()
        return m.LogFlushed(True)

    def _send(self, command: m.Send) -> m.Event:
        if command.ahead is not None and (self._ahead is None or self._ahead[0] != command.ahead):
            self._forget_ahead()
            limit = self._policy.batch_rows
            self._ahead = command.ahead, self._pace.begin(partial(self._outbox.fetch, command.ahead, limit))
        try:
            with sending(self._telemetry, command.rows):
                handed = self._hand_over(command.rows)
        except BrokerUnavailable as error:
            return m.Refused(None, str(error), broken=False)
        self._probe.reached("sent")
        if (failed := self._broker.failed()) is not None:
            return m.Refused(None, failed.reason, broken=True, sent=handed.count)
        if handed.fault is not None:
            return m.Refused(handed.fault, handed.fault.reason, broken=False, sent=handed.count)
        return m.Sent(handed.count)

    def _hand_over(self, rows: Sequence[Row]) -> Handed:
        """Hand over in pieces, none of them past the end of the lease: a process that was frozen stops here when it wakes."""
        for start in range(0, len(rows), PIECE):
            deadline = self._keeper.deadline()
            if deadline is None or self._clock.monotonic() >= deadline:
                return Handed(start)
            piece = rows[start : start + PIECE]
            handed = self._broker.send(piece)
            if handed.count < len(piece):
                return Handed(start + handed.count, handed.fault)
        return Handed(len(rows))

    def _confirm(self, command: m.Confirm) -> m.Event:
        confirmed = self._broker.confirmed(command.patience)
        if (failed := self._broker.failed()) is not None:
            return m.Refused(None, failed.reason, broken=True)
        if not confirmed:
            return m.Unconfirmed()
        self._probe.reached("confirmed")
        return m.Confirmed()

    def _renew_sender(self, command: m.RenewSender) -> m.Event:
        failed = self._broker.renew(0.0 if command.at_once else AWAIT_REPORTS)
        _log.warning("the Kafka client was made anew", reason=None if failed is None else failed.reason)
        return m.SenderRenewed(None if failed is None or command.at_once else failed.fault)

    def _save(self, command: m.Save) -> m.Event:
        assert self._token is not None
        if not self._outbox.save(self._token, command.old, command.new, command.rows):
            return self._lost("the save was refused")
        self._telemetry.record(Metric.RELAY_SAVES, 1)
        self._telemetry.record(Metric.RELAY_PUBLISHED, command.rows)
        self._probe.reached("saved")
        return m.Saved()

    def _record_trouble(self, command: m.RecordTrouble) -> m.Event:
        assert self._token is not None
        if not self._outbox.record_trouble(self._token, command.text):
            return self._lost("the record of trouble was refused")
        return m.TroubleRecorded()

    def _measure_lag(self, command: m.MeasureLag) -> m.Event:
        rows, seconds = self._outbox.lag(command.position)
        self._telemetry.record(Metric.RELAY_LAG_ROWS, rows)
        self._telemetry.record(Metric.RELAY_LAG_SECONDS, seconds)
        return m.LagMeasured()

    def _lost(self, what: str) -> m.Event:
        self._broker.halt()
        self._keeper.drop()
        self._token = None
        _log.error(f"{what}: somebody else owns the shard")
        return m.OwnerChanged()

    def _wait(self, command: m.Wait) -> m.Event:
        self._pace.pause(max(command.seconds, 0.0))
        return m.Waited()

    def _release(self, _: m.Release) -> m.Event:
        assert self._token is not None
        self._keeper.drop()
        self._outbox.release(self._token)
        self._probe.reached("released")
        return m.Released()

    def _tell(self, before: State, after: State) -> None:
        if after.owned != before.owned:
            self._telemetry.record(Metric.RELAY_OWNER, int(after.owned))
            if not after.owned:
                _log.warning("this process no longer owns the shard; nothing more is sent")
                self._token = None
                self._keeper.drop()
        if after.trouble != before.trouble:
            if after.trouble is None:
                _log.info("the trouble is over")
            else:
                _log.error("the relay pauses", trouble=after.trouble, failures=after.failures)
                reason = "broker" if after.fault is None else "row"
                self._telemetry.record(Metric.RELAY_PAUSES, 1, {"reason": reason})
