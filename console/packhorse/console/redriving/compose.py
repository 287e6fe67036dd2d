"""Put runners of redrives together; the drivers are imported here and not before."""

from typing import TYPE_CHECKING

from packhorse.console.running import compose
from packhorse.console.running.lease import Ending
from packhorse.console.running.loop import Tell
from packhorse.console.running.sql import REDRIVES
from packhorse.console.running.working import Begin, Runner, progress_told, stoppable

if TYPE_CHECKING:
    from packhorse.console.acting.postgres import Database
    from packhorse.console.running.postgres import Leases
    from packhorse.console.settings import ConsoleSettings


def work_in_foreground(settings: "ConsoleSettings", redrive_id: int, *, stand_by: bool) -> Ending:
    """
    Work on a confirmed set in this process until it ends, is paused or halted, or this process is asked to stop.

    Progress goes to stderr. Raises what the `work_in_foreground` of all runs does.
    """
    with stoppable() as stop, progress_told() as tell:
        return compose.work_in_foreground(
            redrive_id, settings, kind=REDRIVES, making=_shells, tell=tell, stop=stop, stand_by=stand_by
        )


def background_runner(database: "Database", *, log: Tell) -> Runner:
    """Return what works on abandoned redrives in a server, over a *database* as that of all runs."""
    return compose.background_runner(database, kind=REDRIVES, making=_shells, log=log)


def _shells(database: "Database", leases: "Leases") -> Begin:
    from packhorse.console.redriving.shell import RedriveShell

    return lambda lease: RedriveShell(database, leases, lease)
