"""Work on a replay in the foreground of a command, and say how that ended."""

import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING

from packhorse.console.acting.person import Person, this_process
from packhorse.console.compose import service_of
from packhorse.console.replaying.run import Run
from packhorse.console.running import compose
from packhorse.console.running.compose import Making
from packhorse.console.running.lease import Ending, Lease
from packhorse.console.running.loop import Shell, Tell
from packhorse.console.running.sql import REPLAYS
from packhorse.console.running.working import Begin, Runner
from packhorse.console.settings import ConsoleSettings
from packhorse.core.errors import SettingsError

if TYPE_CHECKING:
    from packhorse.console.acting.postgres import Database
    from packhorse.console.running.postgres import Leases

OK, FAILED, LOST, UNPROVED = 0, 1, 5, 7


@dataclass(frozen=True, slots=True, kw_only=True)
class Worked:
    """How working on a replay ended here, and how the replay stands."""

    ending: Ending
    run: Run


def work_here(
    run: int, settings: ConsoleSettings, *, tell: Tell, stop: threading.Event, stand_by: bool = False
) -> Worked:
    """
    Work on replay *run* until it ends, halts, is somebody else's, or *stop* is set; trouble underneath is waited out.

    Raises:
        SettingsError: No broker is set.
        OwnershipLost: Another runner lives and works on it, and we do not stand by.
        UnknownId: There is no such replay.
    """
    making = _shells(settings, this_process(token=settings.token_in_clear()))
    ending = compose.work_in_foreground(
        run, settings, kind=REPLAYS, making=making, tell=tell, stop=stop, stand_by=stand_by
    )
    with service_of(settings) as service:
        return Worked(ending=ending, run=service.replays.show(run))


def background_runner(database: "Database", settings: ConsoleSettings, *, log: Tell) -> Runner:
    """
    Return what works on abandoned replays in a server, over a *database* as that of all runs.

    Raises:
        SettingsError: No broker is set.
    """
    return compose.background_runner(
        database, kind=REPLAYS, making=_shells(settings, this_process()), log=log
    )


def _shells(settings: ConsoleSettings, person: Person) -> Making:
    """Return what makes the shells of replays that were taken. Raises SettingsError when no broker is set."""
    if (broker := settings.kafka()) is None:
        raise SettingsError("PACKHORSE_KAFKA_BOOTSTRAP_SERVERS is not set; a replay reads the topic")

    def making(database: "Database", leases: "Leases") -> Begin:
        from packhorse.console.replaying.handing.postgres import HandingTables
        from packhorse.console.replaying.handing.shell import ReplayShell
        from packhorse.console.replaying.kafka import KafkaRanges
        from packhorse.console.replaying.postgres import ReplayTables

        tables = ReplayTables(database)

        def begin(lease: Lease) -> Shell:
            run = tables.run(person, lease.run)
            return ReplayShell(HandingTables(leases, lease, run), KafkaRanges(broker), run)

        return begin

    return making


def code_of(worked: Worked) -> int:
    """
    Return the exit code: 0 when all is proved well, 1 when something stopped or it halted, 5 when a person paused or stopped it,
    7 when it is left to another runner or something rests unproved.
    """
    run = worked.run
    if worked.ending is Ending.LEFT:
        return UNPROVED
    if run.state == "halted":
        return FAILED
    if run.state != "ended":
        return LOST
    if run.progress.failed:
        return FAILED
    return UNPROVED if run.progress.unproved else OK
