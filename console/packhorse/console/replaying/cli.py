"""`packhorse replay`: plan, run, see and stop replays of ranges of topics."""

from typing import TYPE_CHECKING, Annotated

import typer

from packhorse.console import options
from packhorse.console.replaying.plan_cli import plan
from packhorse.schemas import flags
from packhorse.schemas.asking import check_answerable, confirmed

if TYPE_CHECKING:
    from packhorse.console.replaying.run import Run
    from packhorse.console.settings import ConsoleSettings

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    help="Hand a range of a topic to a group once more: plan, run, see, pause, resume and stop.",
)

RunId = Annotated[int, typer.Argument(metavar="ID", min=1, help="The replay's number.")]


app.command()(plan)


@app.command()
def run(
    replay: RunId,
    why: options.Why,
    yes: options.Yes = False,
    actor: options.ClaimedActor = None,
    as_json: flags.Json = False,
    database_url: flags.Url = None,
    database_schema: flags.Schema = None,
    kafka_bootstrap_servers: flags.Broker = None,
) -> None:
    """
    Do what was planned, exactly and once, on the record; work on it here until it ends.

    Messages are handed to the group's processors, which run them with all retries as any other. Live messages of a key wait while
    that key is replayed. Ctrl-C leaves it: `packhorse replay resume` goes on, from any machine. Where a console takes the run first,
    this waits for its end. Exit code 0: all proved; 1: something stopped, or it halted; 5: somebody paused or stopped it; 7: left, or something rests.

    [bold]Example[/]
      packhorse replay run 17 --why "backfill of 30 November, after the reset"
    """
    from packhorse.console.compose import service_of
    from packhorse.console.output import terminal
    from packhorse.console.replaying.render import run_sheet

    check_answerable(as_json=as_json, yes=yes, act="do it")
    settings = options.settings_of(database_url, database_schema, broker=kafka_bootstrap_servers)
    with service_of(settings, claimed=actor) as service:
        if not yes:
            terminal().print(run_sheet(service.replays.show(replay)))
            confirmed("run it?")
        service.replays.confirm(replay, why=why)
    _work(replay, settings, stand_by=True, as_json=as_json)


@app.command()
def resume(
    replay: RunId,
    why: Annotated[
        str | None,
        typer.Option("--why", metavar="TEXT", help="The reason, for the record, of a paused or halted one."),
    ] = None,
    most_failures: Annotated[
        int | None,
        typer.Option(
            "--most-failures", metavar="N", help="Halt when more fail altogether; else as many more."
        ),
    ] = None,
    actor: options.ClaimedActor = None,
    as_json: flags.Json = False,
    database_url: flags.Url = None,
    database_schema: flags.Schema = None,
    kafka_bootstrap_servers: flags.Broker = None,
) -> None:
    """
    Go on with a replay that is paused, halted, or has lost its runner; work on it here until it ends.

    [bold]Example[/]
      packhorse replay resume 17 --why "the handler is fixed"
    """
    from packhorse.console.compose import service_of
    from packhorse.core.errors import OwnershipLost, UsageError

    settings = options.settings_of(database_url, database_schema, broker=kafka_bootstrap_servers)
    with service_of(settings, claimed=actor) as service:
        found = service.replays.show(replay)
        if found.state in {"ended", "stopped"}:
            raise OwnershipLost(f"replay {replay} is {found.state} and can't go on; nothing was done now")
        if found.state != "running":
            if why is None:
                raise UsageError(f"replay {replay} is {found.state}: say with --why why it goes on")
            service.replays.resume(replay, why=why, most_failures=most_failures)
    _work(replay, settings, stand_by=found.state != "running", as_json=as_json)


@app.command()
def pause(
    replay: RunId,
    why: options.Why,
    actor: options.ClaimedActor = None,
    as_json: flags.Json = False,
    database_url: flags.Url = None,
    database_schema: flags.Schema = None,
) -> None:
    """
    Hand over nothing more for now. Live messages of keys that it holds go on waiting; `stop` lets go of them.

    [bold]Example[/]
      packhorse replay pause 17 --why "the database is busy"
    """
    from packhorse.console.compose import service_of

    with service_of(options.settings_of(database_url, database_schema), claimed=actor) as service:
        _shown(service.replays.pause(replay, why=why), as_json=as_json)


@app.command()
def stop(
    replay: RunId,
    why: options.Why,
    yes: options.Yes = False,
    actor: options.ClaimedActor = None,
    as_json: flags.Json = False,
    database_url: flags.Url = None,
    database_schema: flags.Schema = None,
) -> None:
    """
    End a replay for good. What was handed over stays with the group; live messages of the keys that it held go on.

    [bold]Example[/]
      packhorse replay stop 17 --why "the wrong hour"
    """
    from packhorse.console.compose import service_of

    check_answerable(as_json=as_json, yes=yes, act="do it")
    with service_of(options.settings_of(database_url, database_schema), claimed=actor) as service:
        if not yes:
            _shown(service.replays.show(replay), as_json=False)
            confirmed("stop it for good?")
        _shown(service.replays.stop(replay, why=why), as_json=as_json)


@app.command()
def status(
    replay: RunId,
    as_json: flags.Json = False,
    database_url: flags.Url = None,
    database_schema: flags.Schema = None,
) -> None:
    """
    Show how far a replay is: handed over and proved by an outcome are two different things.

    [bold]Example[/]
      packhorse replay status 17 --json
    """
    from packhorse.console.compose import service_of

    with service_of(options.settings_of(database_url, database_schema)) as service:
        _shown(service.replays.show(replay), as_json=as_json)


@app.command("list")
def list_runs(
    group: options.Group = None,
    topic: Annotated[str | None, typer.Option("--topic", metavar="NAME", help="Of this topic.")] = None,
    limit: Annotated[int, typer.Option("--limit", metavar="N", help="At most N, up to 1000.")] = 50,
    as_json: flags.Json = False,
    database_url: flags.Url = None,
    database_schema: flags.Schema = None,
) -> None:
    """
    List replays, the latest first.

    [bold]Example[/]
      packhorse replay list --group figures
    """
    from packhorse.console.compose import service_of
    from packhorse.console.output import tell, tell_json, terminal
    from packhorse.console.replaying.render import run_json, runs_table

    with service_of(options.settings_of(database_url, database_schema)) as service:
        found = service.replays.list(group=group, topic=topic, limit=limit)
    if as_json:
        tell_json({"replays": [run_json(one) for one in found]})
    elif found:
        terminal().print(runs_table(found))
    else:
        tell("no replay" + (" fits" if group or topic else ""))


def _work(replay: int, settings: "ConsoleSettings", *, stand_by: bool, as_json: bool) -> None:
    from packhorse.console.replaying.foreground import code_of, work_here
    from packhorse.console.running.working import progress_told, stoppable

    with stoppable() as stopping, progress_told() as progress:
        worked = work_here(replay, settings, tell=progress, stop=stopping, stand_by=stand_by)
    _shown(worked.run, as_json=as_json)
    raise typer.Exit(code_of(worked))


def _shown(found: "Run", *, as_json: bool) -> None:
    from packhorse.console.output import tell_json, terminal
    from packhorse.console.replaying.render import run_json, run_sheet

    if as_json:
        tell_json(run_json(found))
    else:
        terminal().print(run_sheet(found))
