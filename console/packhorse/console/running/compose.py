"""Put runners together, of whatever kind of run; the drivers are imported here and not before."""

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from packhorse.console.running.lease import Ending
from packhorse.console.running.loop import Tell
from packhorse.console.running.sql import Statements
from packhorse.console.running.working import Begin, Runner, work

if TYPE_CHECKING:
    from packhorse.console.acting.postgres import Database
    from packhorse.console.running.postgres import Leases
    from packhorse.console.settings import ConsoleSettings

Making = Callable[["Database", "Leases"], Begin]
"""Returns what makes the shell of a run that was taken, over a runner's database and leases."""


def work_in_foreground(
    run_id: int,
    settings: "ConsoleSettings",
    *,
    kind: Statements,
    making: Making,
    tell: Tell,
    stop: threading.Event,
    stand_by: bool = False,
) -> Ending:
    """
    Work on run *run_id* in this process until it is over, somebody else's, or *stop* is set; trouble underneath is waited out.

    The work and the lease have a connection each, which come again after trouble. *stand_by*: as `work` has it.

    Raises:
        UnknownId: There is no such run.
        OwnershipLost: Another runner lives and works on it, and we do not stand by.
    """
    from packhorse.console.running.postgres import Leases, lasting

    with lasting(settings) as database, lasting(settings) as beside:
        leases = Leases(database, kind)
        return work(
            run_id,
            what=kind.table,
            leases=leases,
            renewing=Leases(beside, kind),
            begin=making(database, leases),
            tell=tell,
            stop=stop,
            stand_by=stand_by,
        )


def background_runner(database: "Database", *, kind: Statements, making: Making, log: Tell) -> Runner:
    """
    Return what works on abandoned runs in a server; call its `look` every second or so, and `stop` at the end.

    *database* must lend a connection to each thread that asks, as a pool does.
    """
    from packhorse.console.running.postgres import Leases

    leases = Leases(database, kind)
    return Runner(what=kind.table, leases=leases, renewing=leases, begin=making(database, leases), log=log)
