"""What the relay tells people of its changes of mind: log lines and metrics, each change once."""

from packhorse.core import logs
from packhorse.core.telemetry import Metric, Telemetry
from packhorse.relay.deciding.state import State
from packhorse.relay.holds import Hold

_log = logs.logger("relay")


class Teller:
    """Compare two states and tell the difference."""

    def __init__(self, telemetry: Telemetry) -> None:
        self._telemetry = telemetry

    def tell(self, before: State, after: State) -> None:
        """Tell of trouble, holds and the way of reading."""
        if after.trouble != before.trouble:
            self._tell_trouble(after)
        if after.holds != before.holds and after.owned and after.confirmed is not None:
            self._tell_holds(before, after)
        if (after.mode, after.mode_cause) != (before.mode, before.mode_cause) and after.owned:
            self._tell_mode(before, after)

    def _tell_trouble(self, after: State) -> None:
        if after.trouble is None:
            _log.info("the trouble is over")
            return
        _log.error("the relay pauses", trouble=after.trouble, failures=after.failures)
        self._telemetry.record(Metric.RELAY_PAUSES, 1, {"reason": "broker"})

    def _tell_holds(self, before: State, after: State) -> None:
        if before.confirmed is not None:
            old = {hold.scope: hold for hold in before.holds}
            for hold in after.holds:
                self._tell_hold(old.pop(hold.scope, None), hold)
            for hold in old.values():
                _log.info("a hold has ended", scope=str(hold.scope), published=hold.sent)
        self._telemetry.record(Metric.RELAY_HOLDS, len(after.holds))

    def _tell_hold(self, before: Hold | None, hold: Hold) -> None:
        fault = hold.fault
        if before is None:
            _log.error(
                "held, and everything else flows", scope=str(hold.scope), topic=fault.topic, row=fault.id, code=fault.code,
                reason=fault.reason, heals=fault.heals,
            )  # fmt: skip
        elif hold.releasing and not before.releasing:
            _log.info("a release begins", scope=str(hold.scope))
        elif before.releasing and not hold.releasing:
            _log.warning(
                "a release has failed",
                scope=str(hold.scope),
                row=fault.id,
                reason=fault.reason,
                tries=hold.tries,
            )

    def _tell_mode(self, before: State, after: State) -> None:
        if after.mode != before.mode:
            _log.info("the outbox is read another way", mode=after.mode, cause=after.mode_cause)
            self._telemetry.record(Metric.RELAY_MOVES, 1, {"reason": after.mode_cause})
        elif after.mode_cause != before.mode_cause and before.confirmed is not None:
            _log.warning("no stream for now", mode=after.mode, cause=after.mode_cause)
