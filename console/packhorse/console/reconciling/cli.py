"""`packhorse reconcile`: find what does not add up about jobs."""

from typing import Annotated

import typer

from packhorse.console import options
from packhorse.schemas import flags

app = typer.Typer(pretty_exceptions_enable=False, rich_markup_mode="rich")


@app.command()
def reconcile(
    *,
    repair: Annotated[
        bool, typer.Option("--repair", help="Put right what is safe to put right; needs --why.")
    ] = False,
    why: Annotated[
        str | None, typer.Option("--why", metavar="TEXT", help="The reason, for the record.")
    ] = None,
    unpublished_after: Annotated[
        float,
        typer.Option(
            "--unpublished-after", min=0, metavar="SECONDS", help="How long a message may wait for the relay."
        ),
    ] = 300.0,
    actor: options.ClaimedActor = None,
    as_json: flags.Json = False,
    database_url: flags.Url = None,
    database_schema: flags.Schema = None,
) -> None:
    """
    Find jobs that do not add up with their messages, results and effects; say what each means, and repair what is safe.

    Found are: success without the fact that the message is done, a message that is over while its job waits, runs whose lease is over, outside
    effects without answer, messages that are never published or lost, jobs that are due and not sent, a state that is not what quarantine says,
    stale names, and rows without a job. Repaired are the last three alone, on the record, with the right to administer. It reads all jobs, in
    portions that hold nobody up. Exit code 1 says that something is left for a person.

    [bold]Example[/]
      packhorse reconcile
      packhorse reconcile --repair --why "restored from the dump of Monday" --json
    """
    from packhorse.console.compose import service_of
    from packhorse.console.output import tell, tell_json
    from packhorse.console.reconciling.render import report_json, report_lines
    from packhorse.core.errors import UsageError

    if repair and why is None:
        raise UsageError("--why is missing: a repair is on the record with its reason")
    with service_of(options.settings_of(database_url, database_schema), claimed=actor) as service:
        report = service.reconciling.look(unpublished_after=unpublished_after)
        if why is not None and repair:
            service.reconciling.repair(report, why=why)
    if as_json:
        tell_json(report_json(report))
    else:
        for line in report_lines(report, repaired=repair):
            tell(line)
    raise typer.Exit(0 if report.is_well else 1)
