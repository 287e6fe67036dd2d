"""The processor as a process: logs, signals, leaving."""

import gc
import os
import signal as signals
import threading
from types import FrameType

from packhorse.core import logs
from packhorse.core.telemetry import NO_TELEMETRY, Telemetry
from packhorse.processor.app import Processor
from packhorse.processor.compose import Composed, log
from packhorse.processor.processes import end_with_parent
from packhorse.processor.settings import ProcessorSettings
from packhorse.processor.signals import Signal, no_signal


def run(
    app: Processor,
    settings: ProcessorSettings,
    *,
    telemetry: Telemetry = NO_TELEMETRY,
    signal: Signal = no_signal,
) -> None:
    """
    Run *app* until SIGTERM or SIGINT: what is in hand is finished, written and committed, within the grace time.

    A second signal leaves at once, without a commit.

    Raises:
        NotReady, SettingsError, InfrastructureError: As `Composed`, before a message is read.
        PackhorseError: The process must stop, as `Loop.run` says.
    """
    logs.set_up(secrets=settings.secrets())
    composed = Composed(app, settings, telemetry=telemetry, signal=signal)
    settle_garbage()
    stop = threading.Event()

    def ask_to_stop(number: int, _: FrameType | None) -> None:
        for each in (signals.SIGTERM, signals.SIGINT):
            signals.signal(each, _leave)
        log.info("stopping", signal=signals.Signals(number).name)
        stop.set()

    for each in (signals.SIGTERM, signals.SIGINT):
        signals.signal(each, ask_to_stop)
    end_with_parent(os.environ)
    log.info("starting", group=app.group, topics=", ".join(app.topics), handlers=len(app.handlers))
    composed.run(stop)
    log.info("stopped", group=app.group)


def _leave(number: int, _: FrameType | None) -> None:
    os._exit(128 + number)


_PYTHONS = (700, 10, 10)
GENERATIONS = (20_000, 20, 50)
"""Objects made before the youngest are looked through, and how often that is before the older ones are."""


def settle_garbage() -> None:
    """
    Let the collector of cycles look less often, and never again at what the program is made of.

    Each message makes some twenty objects that make no cycle; looking through them every 700 took a third of the processor
    time between broker and handler. Who has set thresholds keeps them.
    """
    if gc.get_threshold() != _PYTHONS:
        return
    gc.collect()
    gc.freeze()
    gc.set_threshold(*GENERATIONS)
