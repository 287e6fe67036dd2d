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
    *more: Processor,
    telemetry: Telemetry = NO_TELEMETRY,
    signal: Signal = no_signal,
) -> None:
    """
    Run *app*, and *more* beside it, until SIGTERM or SIGINT: what is in hand is finished, written and committed, within the
    grace time. A second signal leaves at once, without a commit.

    Each is a member of its own group, with lanes and connections of its own; when one must stop, all do.

    Raises:
        NotReady, SettingsError, InfrastructureError: As `Composed`, before a message is read.
        PackhorseError: The process must stop, as `Loop.run` says.
    """
    logs.set_up(secrets=settings.secrets())
    all_composed: list[Composed] = []
    try:
        for at, one in enumerate((app, *more)):
            own = settings.of_group(at)
            all_composed.append(Composed(one, own, telemetry=telemetry, signal=signal))
    except BaseException:
        for made in all_composed:
            made.close()
        raise
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
    _run_side_by_side(all_composed, stop)


def _run_side_by_side(all_composed: list[Composed], stop: threading.Event) -> None:
    """Run the first here and each other one in a thread of its own; raise what the first that failed has raised."""
    failures: list[BaseException] = []

    def work(composed: Composed) -> None:
        app = composed.plant.app
        log.info("starting", group=app.group, topics=", ".join(app.topics), handlers=len(app.all_handlers))
        try:
            composed.run(stop)
            log.info("stopped", group=app.group)
        except BaseException as error:  # noqa: BLE001 raised below, once all have stopped
            failures.append(error)
        finally:
            stop.set()

    first, *others = all_composed
    threads = [threading.Thread(target=work, args=(one,), name="packhorse-group") for one in others]
    for thread in threads:
        thread.start()
    work(first)
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


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
