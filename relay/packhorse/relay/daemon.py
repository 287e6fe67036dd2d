"""The relay as a process: logs, signals, leaving."""

import gc
import os
import signal
from types import FrameType

from packhorse.core import logs
from packhorse.core.clock import SYSTEM_CHANCE
from packhorse.core.telemetry import NO_TELEMETRY, Telemetry
from packhorse.relay.allocator import keep_freed_memory
from packhorse.relay.compose import Composed, check_ready, tell_of_left_slots
from packhorse.relay.crew.crew import Crew
from packhorse.relay.crew.postgres import PostgresRoster
from packhorse.relay.owner import owner_name
from packhorse.relay.ports import Probe
from packhorse.relay.settings import RelaySettings

GC_THRESHOLD = (200_000, 20, 20)
"""A batch is tens of thousands of tuples without a cycle: at the default of 700 the collector takes a quarter of the time."""

_log = logs.logger("relay")


def run(settings: RelaySettings, *, telemetry: Telemetry = NO_TELEMETRY, probe: Probe | None = None) -> None:
    """
    Run the relays of this process's shards until SIGTERM or SIGINT; a second signal leaves at once, without a save.

    Raises:
        NotReady, SettingsError, DatabaseUnavailable: As `Composed`, before anything is sent.
    """
    logs.set_up(secrets=settings.secrets())
    keep_freed_memory()
    gc.freeze()
    gc.set_threshold(*GC_THRESHOLD)
    url, schema = settings.database_url.get_secret_value(), settings.database_schema
    check_ready(settings)
    tell_of_left_slots(settings)
    roster = PostgresRoster(
        url, schema, token=SYSTEM_CHANCE.token(), name=owner_name(), patience=settings.lease
    )
    crew = Crew(
        roster,
        lambda shard: Composed(settings, shard=shard, telemetry=telemetry, probe=probe),
        pause=min(1.0, settings.lease / 3),
    )

    def stop(number: int, _: FrameType | None) -> None:
        for each in (signal.SIGTERM, signal.SIGINT):
            signal.signal(each, _leave)
        _log.info("stopping", signal=signal.Signals(number).name)
        crew.stop()

    for each in (signal.SIGTERM, signal.SIGINT):
        signal.signal(each, stop)
    crew.run()
    _log.info("stopped")


def _leave(number: int, _: FrameType | None) -> None:
    os._exit(128 + number)
