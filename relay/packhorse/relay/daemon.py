"""The relay as a process: logs, signals, leaving."""

import gc
import os
import signal
from types import FrameType

from packhorse.core import logs
from packhorse.core.telemetry import NO_TELEMETRY, Telemetry
from packhorse.relay.compose import Composed
from packhorse.relay.ports import Probe
from packhorse.relay.settings import RelaySettings

GC_THRESHOLD = (200_000, 20, 20)
"""A batch is tens of thousands of tuples without a cycle: at the default of 700 the collector takes a quarter of the time."""

_log = logs.logger("relay")


def run(settings: RelaySettings, *, telemetry: Telemetry = NO_TELEMETRY, probe: Probe | None = None) -> None:
    """
    Run a relay until SIGTERM or SIGINT; a second signal leaves at once, without a save.

    Raises:
        NotReady, SettingsError, DatabaseUnavailable: As `Composed`, before anything is sent.
    """
    logs.set_up(secrets=settings.secrets())
    gc.freeze()
    gc.set_threshold(*GC_THRESHOLD)
    composed = Composed(settings, telemetry=telemetry, probe=probe)

    def stop(number: int, _: FrameType | None) -> None:
        for each in (signal.SIGTERM, signal.SIGINT):
            signal.signal(each, _leave)
        _log.info("stopping", signal=signal.Signals(number).name)
        composed.relay.stop()

    for each in (signal.SIGTERM, signal.SIGINT):
        signal.signal(each, stop)
    try:
        composed.relay.run()
    finally:
        composed.close()
    _log.info("stopped")


def _leave(number: int, _: FrameType | None) -> None:
    os._exit(128 + number)
