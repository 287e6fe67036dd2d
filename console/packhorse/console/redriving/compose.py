"""Put runners of redrives together; the drivers are imported here and not before."""

from typing import TYPE_CHECKING

from packhorse.console.running.lease import Ending, Lease, Standing
from packhorse.console.running.loop import Tell
from packhorse.console.running.working import Runner, progress_told, stoppable, work

if TYPE_CHECKING:
    from packhorse.console.acting.postgres import Database
    from packhorse.console.settings import ConsoleSettings

WHAT = "redrive"


def work_in_foreground(settings: "ConsoleSettings", redrive_id: int) -> tuple[Ending, Standing]:
    """
    Work on a confirmed set in this process until it ends, is paused or halted, or this process is asked to stop.

    Progress goes to stderr. The work and the lease have a connection each, which come again after trouble.

    Raises:
        UnknownId: There is no such redrive.
        OwnershipLost: Another runner lives and works on it.
    """
    from packhorse.console.redriving.shell import RedriveShell
    from packhorse.console.running.postgres import Leases, lasting
    from packhorse.console.running.sql import REDRIVES

    with (
        lasting(settings) as database,
        lasting(settings) as beside,
        stoppable() as stop,
        progress_told() as tell,
    ):
        leases = Leases(database, REDRIVES)

        def begin(lease: Lease) -> RedriveShell:
            return RedriveShell(database, leases, lease)

        renewing = Leases(beside, REDRIVES)
        return work(
            redrive_id, what=WHAT, leases=leases, renewing=renewing, begin=begin, tell=tell, stop=stop
        )


def background_runner(database: "Database", *, log: Tell) -> Runner:
    """
    Return what works on abandoned redrives in a server; call its `look` every second or so, and `stop` at the end.

    *database* must lend a connection to each thread that asks, as a pool does.
    """
    from packhorse.console.redriving.shell import RedriveShell
    from packhorse.console.running.postgres import Leases
    from packhorse.console.running.sql import REDRIVES

    leases = Leases(database, REDRIVES)
    return Runner(
        what=WHAT,
        leases=leases,
        renewing=leases,
        begin=lambda lease: RedriveShell(database, leases, lease),
        log=log,
    )
