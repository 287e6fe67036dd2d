"""Work on a replay in the foreground of a command, and say how that ended."""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from packhorse.console.acting.person import Person, this_process
from packhorse.console.replaying.run import Run
from packhorse.console.running.lease import Ending, Lease
from packhorse.console.running.loop import Shell, Tell
from packhorse.console.running.working import Runner
from packhorse.console.settings import ConsoleSettings
from packhorse.core.errors import SettingsError

if TYPE_CHECKING:
    from packhorse.console.acting.postgres import Database
    from packhorse.console.replaying.postgres import ReplayTables
    from packhorse.console.running.postgres import Leases

OK, FAILED, LOST, UNPROVED = 0, 1, 5, 7


@dataclass(frozen=True, slots=True, kw_only=True)
class Worked:
    """How working on a replay ended here, and how the replay stands."""

    ending: Ending
    run: Run


def work_here(run: int, settings: ConsoleSettings, *, tell: Tell, stop: threading.Event) -> Worked:
    """
    Work on replay *run* until it ends, halts, is somebody else's, or *stop* is set; trouble underneath is waited out.

    Raises:
        SettingsError: No broker is set.
        OwnershipLost: Another runner lives and works on it.
        UnknownId: There is no such replay.
    """
    from packhorse.console.replaying.postgres import ReplayTables
    from packhorse.console.running.postgres import Leases, lasting
    from packhorse.console.running.sql import REPLAYS
    from packhorse.console.running.working import work

    person = this_process(token=settings.token_in_clear())
    with lasting(settings) as database, lasting(settings) as beside:
        leases, renewing = Leases(database, REPLAYS), Leases(beside, REPLAYS)
        begin = shells(settings, person, leases, ReplayTables(database))
        ending, _ = work(
            run, what="replay", leases=leases, renewing=renewing, begin=begin, tell=tell, stop=stop
        )
        return Worked(ending=ending, run=ReplayTables(database).run(person, run))


def shells(
    settings: ConsoleSettings, person: Person, leases: "Leases", tables: "ReplayTables"
) -> Callable[[Lease], Shell]:
    """
    Return what makes the shell of a replay that was taken; a server's background runner takes it too.

    Raises:
        SettingsError: No broker is set.
    """
    from packhorse.console.replaying.handing.postgres import HandingTables
    from packhorse.console.replaying.handing.shell import ReplayShell
    from packhorse.console.replaying.kafka import KafkaRanges

    if (broker := settings.kafka()) is None:
        raise SettingsError("PACKHORSE_KAFKA_BOOTSTRAP_SERVERS is not set; a replay reads the topic")

    def begin(lease: Lease) -> Shell:
        run = tables.run(person, lease.run)
        return ReplayShell(HandingTables(leases, lease, run), KafkaRanges(broker), run)

    return begin


def background_runner(database: "Database", settings: ConsoleSettings, *, log: Tell) -> Runner:
    """
    Return what works on abandoned replays in a server; call its `look` every second or so, and `stop` at the end.

    *database* must lend a connection to each thread that asks, as a pool does.
    """
    from packhorse.console.replaying.postgres import ReplayTables
    from packhorse.console.running.postgres import Leases
    from packhorse.console.running.sql import REPLAYS

    leases = Leases(database, REPLAYS)
    begin = shells(settings, this_process(), leases, ReplayTables(database))
    return Runner(what="replay", leases=leases, renewing=leases, begin=begin, log=log)


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
