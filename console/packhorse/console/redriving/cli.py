"""`packhorse redrive`: send a frozen set of quarantined messages back, in stages, on the record."""

from typing import Annotated

import typer

from packhorse.console import options
from packhorse.console.redriving.preview_cli import preview
from packhorse.console.redriving.tallying import Member
from packhorse.schemas import flags

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    help="Send a frozen set of quarantined messages back to their handlers, in stages, on the record.",
)

RedriveId = Annotated[int, typer.Argument(metavar="ID", help="The redrive, as its preview printed it.")]
Detach = Annotated[
    bool, typer.Option("--detach", help="Do not work on it here: a running `packhorse console` does.")
]


app.command()(preview)


@app.command()
def run(
    redrive_id: RedriveId,
    why: options.Why,
    yes: options.Yes = False,
    detach: Detach = False,
    actor: options.ClaimedActor = None,
    as_json: flags.Json = False,
    database_url: flags.Url = None,
    database_schema: flags.Schema = None,
) -> None:
    """
    Confirm a preview and redrive exactly its set: once, though two people press.

    First 1 message, then 5, 20, 100 and so on, each stage proved by outcomes before the next; it halts by itself when
    failures come back. Three things are told apart: asked (the order stands in the database), sent (the broker has the
    copy), proved (there is an outcome). Progress goes to stderr. Ctrl-C leaves the run to whoever resumes it; so does a kill.
    Where a console takes the run first, this waits for its end.
    Exit code 0: all proved good; 1: halted, or some failed again or were left; 5: somebody paused, ended or took it over;
    130: left by Ctrl-C. --json needs --yes.

    [bold]Example[/]
      packhorse redrive run 17 --why "fixed in 1.4.2"
    """
    from packhorse.console.redriving.foreground import Request, run_set

    request = Request(redrive_id=redrive_id, why=why, yes=yes, detach=detach, claimed=actor, as_json=as_json)
    raise typer.Exit(run_set(request, options.settings_of(database_url, database_schema)))


@app.command()
def resume(
    redrive_id: RedriveId,
    why: Annotated[
        str, typer.Option("--why", metavar="TEXT", help="The reason, where it was paused or halted.")
    ] = "",
    detach: Detach = False,
    actor: options.ClaimedActor = None,
    as_json: flags.Json = False,
    database_url: flags.Url = None,
    database_schema: flags.Schema = None,
) -> None:
    """
    Go on with a redrive that is paused or halted, or whose runner was stopped or killed; from any machine.

    After a halt the stages begin small again. Exit codes are those of `run`.

    [bold]Example[/]
      packhorse redrive resume 17 --why "the database has its index now"
    """
    from packhorse.console.redriving.foreground import Request, resume_set

    request = Request(redrive_id=redrive_id, why=why, yes=True, detach=detach, claimed=actor, as_json=as_json)
    raise typer.Exit(resume_set(request, options.settings_of(database_url, database_schema)))


@app.command()
def pause(
    redrive_id: RedriveId,
    why: options.Why,
    actor: options.ClaimedActor = None,
    as_json: flags.Json = False,
    database_url: flags.Url = None,
    database_schema: flags.Schema = None,
) -> None:
    """
    Ask for no more members of a running redrive; what was asked for goes on.

    [bold]Example[/]
      packhorse redrive pause 17 --why "the database is busy"
    """
    from packhorse.console.compose import service_of

    with service_of(options.settings_of(database_url, database_schema), claimed=actor) as service:
        service.redrives.pause(redrive_id, why=why)
        _show(service.redrives.find(redrive_id), as_json=as_json)


@app.command()
def abort(
    redrive_id: RedriveId,
    why: options.Why,
    actor: options.ClaimedActor = None,
    as_json: flags.Json = False,
    database_url: flags.Url = None,
    database_schema: flags.Schema = None,
) -> None:
    """
    End a redrive for good, or throw a preview away; what was asked for goes on, the rest stays in quarantine.

    [bold]Example[/]
      packhorse redrive abort 17 --why "the fix is no fix"
    """
    from packhorse.console.compose import service_of

    with service_of(options.settings_of(database_url, database_schema), claimed=actor) as service:
        service.redrives.abort(redrive_id, why=why)
        _show(service.redrives.find(redrive_id), as_json=as_json)


@app.command()
def status(
    redrive_id: RedriveId,
    as_json: flags.Json = False,
    database_url: flags.Url = None,
    database_schema: flags.Schema = None,
) -> None:
    """
    Say how far a redrive is: how many are asked for, sent, proved, failed again, moved, left.

    [bold]Example[/]
      packhorse redrive status 17
    """
    from packhorse.console.compose import service_of

    with service_of(options.settings_of(database_url, database_schema)) as service:
        _show(service.redrives.find(redrive_id), as_json=as_json)


@app.command("list")
def list_redrives(
    limit: Annotated[int, typer.Option("--limit", metavar="N", help="At most N, up to 1000.")] = 50,
    before: Annotated[int | None, typer.Option("--before", metavar="ID", help="Older than this one.")] = None,
    as_json: flags.Json = False,
    database_url: flags.Url = None,
    database_schema: flags.Schema = None,
) -> None:
    """
    List redrives of sets, the newest first.

    [bold]Example[/]
      packhorse redrive list
    """
    from packhorse.console.compose import service_of
    from packhorse.console.output import tell, tell_json, terminal
    from packhorse.console.redriving.render import redrive_json, redrives_table

    with service_of(options.settings_of(database_url, database_schema)) as service:
        rows = service.redrives.page(before=before, limit=limit)
    if as_json:
        tell_json({"redrives": [redrive_json(row) for row in rows]})
    elif rows:
        terminal().print(redrives_table(rows))
    else:
        tell("no redrive of a set")


@app.command()
def members(
    redrive_id: RedriveId,
    state: Annotated[Member | None, typer.Option("--state", help="Only those in this state.")] = None,
    limit: options.Limit = 50,
    after: Annotated[int, typer.Option("--after", metavar="NR", help="Behind this number.")] = 0,
    as_json: flags.Json = False,
    database_url: flags.Url = None,
    database_schema: flags.Schema = None,
) -> None:
    """
    List the members of a set, in the order in which they are asked for, each with how it stands and why.

    [bold]Example[/]
      packhorse redrive members 17 --state moved
    """
    from packhorse.console.compose import service_of
    from packhorse.console.output import tell, tell_json, terminal
    from packhorse.console.redriving.render import members_table

    with service_of(options.settings_of(database_url, database_schema)) as service:
        rows = service.redrives.members(redrive_id, state=state, after=after, limit=limit)
    following = rows[-1].ordinal if len(rows) == limit else None
    if as_json:
        tell_json({"members": list(rows), "next": following})
        return
    if rows:
        terminal().print(members_table(rows))
    else:
        tell("no member" + ("" if state is None else f" is {state.value}"))
    if following is not None:
        tell(f"more: add --after {following}")


def _show(found: tuple[object, object], *, as_json: bool) -> None:
    from packhorse.console.output import tell_json, terminal
    from packhorse.console.redriving.records import Progress, RedriveRow
    from packhorse.console.redriving.render import redrive_json, redrive_sheet

    row, progress = found
    assert isinstance(row, RedriveRow)
    assert isinstance(progress, Progress)
    if as_json:
        tell_json(redrive_json(row, progress))
    else:
        terminal().print(redrive_sheet(row, progress))
