"""The relay's hands at the broker: hand rows over, wait for confirmations, ask what is wrong."""

from collections.abc import Callable, Sequence
from typing import Any

from packhorse.core import logs
from packhorse.core.errors import BrokerUnavailable
from packhorse.core.telemetry import Telemetry
from packhorse.relay.deciding import commands as c
from packhorse.relay.deciding import events as e
from packhorse.relay.deciding.events_release import ScopeProbed
from packhorse.relay.doing.tracing import sending
from packhorse.relay.model import Row
from packhorse.relay.ports import Broker, Failed, Handed, Probe

_log = logs.logger("relay")
PIECE = 500
"""Rows between two looks at the lease: some five milliseconds."""


class Sender:
    """Run the commands that go to the broker."""

    def __init__(
        self, broker: Broker, telemetry: Telemetry, probe: Probe, deadline: Callable[[], float | None]
    ) -> None:
        """Work with *broker*, as long as *deadline* returns one: the end of the lease while it runs."""
        self._broker = broker
        self._telemetry = telemetry
        self._probe = probe
        self._deadline = deadline
        self.do: dict[type[Any], Callable[[Any], e.Event]] = {
            c.Confirm: self._confirm,
            c.RenewSender: self._renew,
            c.LookAtBroker: self._look,
            c.ProbeScope: self._probe_scope,
        }

    def send(self, rows: Sequence[Row]) -> e.Event:
        """Hand *rows* over and say how far that went."""
        with sending(self._telemetry, rows):
            handed, away = self._hand_over(rows)
        self._probe.reached("sent")
        if (failed := self._broker.failed()) is not None:
            return self._after(failed, sent=handed.count)
        if handed.fault is not None:
            return e.Refused(handed.fault, handed.fault.reason, broken=False, sent=handed.count)
        if away is not None:
            return e.Refused(None, away, broken=False, sent=handed.count)
        return e.Sent(handed.count)

    def _hand_over(self, rows: Sequence[Row]) -> tuple[Handed, str | None]:
        """Hand over in pieces, none of them past the end of the lease: a process that was frozen stops here when it wakes."""
        for start in range(0, len(rows), PIECE):
            if self._deadline() is None:
                return Handed(start), None
            piece = rows[start : start + PIECE]
            try:
                handed = self._broker.send(piece)
            except BrokerUnavailable as error:
                return Handed(start), str(error)
            if handed.count < len(piece):
                return Handed(start + handed.count, handed.fault), None
        return Handed(len(rows)), None

    def _confirm(self, command: c.Confirm) -> e.Event:
        confirmed = self._broker.confirmed(command.patience)
        if (failed := self._broker.failed()) is not None:
            return self._after(failed)
        if not confirmed:
            return e.Unconfirmed()
        self._probe.reached("confirmed")
        return e.Confirmed()

    def _renew(self, command: c.RenewSender) -> e.Event:
        failed = self._broker.renew(command.patience)
        _log.warning("the Kafka client was made anew", reason=None if failed is None else failed.reason)
        return e.SenderRenewed() if failed is None else e.SenderRenewed(failed.fault, failed.silent)

    def _look(self, _: c.LookAtBroker) -> e.Event:
        try:
            return e.BrokerSeen(self._broker.unreachable())
        except BrokerUnavailable:
            return e.BrokerAway()

    def _probe_scope(self, command: c.ProbeScope) -> e.Event:
        try:
            return ScopeProbed(command.scope, self._broker.probe(command.scope))
        except BrokerUnavailable as error:
            return ScopeProbed(command.scope, str(error))

    def _after(self, failed: Failed, *, sent: int = 0) -> e.Event:
        """Return what a failure means: the end of owning the shard when another relay has taken over, else a client beyond use."""
        if failed.fenced:
            _log.warning("the broker fenced this relay", reason=failed.reason)
            self._broker.renew(0.0)
            return e.OwnerChanged()
        return e.Refused(None, failed.reason, broken=True, sent=sent)
