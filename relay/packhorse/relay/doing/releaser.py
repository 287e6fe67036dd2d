"""The relay's hands for releases of holds: a client of their own, made when one begins and closed when it ends."""

from collections.abc import Callable
from typing import Any

from packhorse.core import logs
from packhorse.core.errors import BrokerUnavailable
from packhorse.relay.deciding import commands as c
from packhorse.relay.deciding import events_release as e
from packhorse.relay.deciding.events import Event
from packhorse.relay.ports import Broker, Outbox, Probe

_log = logs.logger("relay")


class Releaser:
    """Run the commands of releases."""

    def __init__(
        self, outbox: Outbox, make: Callable[[], Broker], probe: Probe, deadline: Callable[[], float | None]
    ) -> None:
        self._outbox = outbox
        self._make = make
        self._probe = probe
        self._deadline = deadline
        self._broker: Broker | None = None
        self.do: dict[type[Any], Callable[[Any], Event]] = {
            c.FetchHeld: self._fetch,
            c.SendHeld: self._send,
            c.ConfirmHeld: self._confirm,
            c.RenewReleaser: self._renew,
        }

    def _fetch(self, command: c.FetchHeld) -> Event:
        return e.HeldFetched(self._outbox.fetch_held(command.scope, command.leg, command.limit))

    def _send(self, command: c.SendHeld) -> Event:
        if self._broker is None:
            self._broker = self._make()
        if self._deadline() is None:
            return e.HeldSent(0)
        try:
            handed = self._broker.send(command.rows)
        except BrokerUnavailable as error:
            return e.HeldRefused(None, str(error), broken=False)
        self._probe.reached("release_sent")
        if (failed := self._broker.failed()) is not None:
            return e.HeldRefused(None, failed.reason, broken=True, sent=handed.count)
        if handed.fault is not None:
            return e.HeldRefused(handed.fault, handed.fault.reason, broken=False, sent=handed.count)
        return e.HeldSent(handed.count)

    def _confirm(self, command: c.ConfirmHeld) -> Event:
        assert self._broker is not None
        confirmed = self._broker.confirmed(command.patience)
        if (failed := self._broker.failed()) is not None:
            return e.HeldRefused(None, failed.reason, broken=True)
        if not confirmed:
            return e.HeldUnconfirmed()
        self._probe.reached("release_confirmed")
        return e.HeldConfirmed()

    def _renew(self, command: c.RenewReleaser) -> Event:
        broker, self._broker = self._broker, None
        if broker is None:
            return e.ReleaserRenewed()
        failed = broker.renew(command.patience)
        broker.close()
        return e.ReleaserRenewed(None if failed is None else failed.fault)

    def halt(self) -> None:
        """Drop what has not left yet; from any thread."""
        broker = self._broker
        if broker is not None:
            broker.halt()

    def close(self) -> None:
        """Close the client, if there is one."""
        broker, self._broker = self._broker, None
        if broker is not None:
            broker.close()
