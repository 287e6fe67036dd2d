"""`packhorse processor`: run an application's handlers, say how they stand."""

from typing import TYPE_CHECKING, Annotated

import typer

from packhorse.processor.inbox.cli import app as retention
from packhorse.schemas.flags import Broker, Registry, Schema, Url

if TYPE_CHECKING:
    from packhorse.processor.settings import OverviewSettings

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    help="Carry messages from their topics to results.",
)
app.add_typer(retention, name="retention")

Target = Annotated[
    str, typer.Argument(metavar="MODULE:APP", help="Where the Processor is, e.g. figures.app:app.")
]
Concurrency = Annotated[
    int | None,
    typer.Option(
        "--concurrency",
        help="Threads of each process, each with a database connection. [dim]PACKHORSE_PROCESSOR_CONCURRENCY[/]",
    ),
]
Processes = Annotated[
    int | None,
    typer.Option(
        "--processes",
        help="Processes, each a member of the group. [dim]PACKHORSE_PROCESSOR_PROCESSES[/]",
    ),
]


@app.command()
def run(
    target: Target,
    more: Annotated[
        list[str] | None,
        typer.Argument(metavar="[MODULE:APP]...", help="More of them, each a group, in the same process."),
    ] = None,
    database_url: Url = None,
    database_schema: Schema = None,
    kafka_bootstrap_servers: Broker = None,
    registry_url: Registry = None,
    concurrency: Concurrency = None,
    processes: Processes = None,
) -> None:
    """
    Run the handlers of a Processor until SIGTERM or Ctrl-C; a second one leaves at once, without a commit.

    Run as many as there are partitions: the group shares them out. With --processes N one command runs N of them and starts
    again those that end; handlers that compute gain cores by it. Several processors named here share one process; each is a
    group of its own, with threads and connections of its own.

    [bold]Example[/]: packhorse processor run figures.app:app --concurrency 8 --processes 2
    """
    from packhorse.core.errors import UsageError
    from packhorse.processor.daemon import run as run_daemon
    from packhorse.processor.loading import load
    from packhorse.processor.processes import run_processes
    from packhorse.processor.settings import ProcessorSettings
    from packhorse.producer.otel_sdk import telemetry_from

    settings = ProcessorSettings.load(
        {
            "database_url": database_url,
            "database_schema": database_schema,
            "kafka_bootstrap_servers": kafka_bootstrap_servers,
            "registry_url": registry_url,
            "concurrency": concurrency,
            "processes": processes,
        }
    )
    processor, others = load(target), [load(one) for one in more or ()]
    groups = [one.group for one in (processor, *others)]
    if len(set(groups)) < len(groups):
        raise UsageError(
            f"two of these processors are of one group ({', '.join(groups)}); run them as two processes"
        )
    if settings.processes > 1:
        if others:
            raise UsageError("--processes takes one processor; start one command for each")
        raise typer.Exit(run_processes(processor, settings))
    with telemetry_from(service=f"packhorse-processor-{processor.group}") as telemetry:
        run_daemon(processor, settings, *others, telemetry=telemetry)


@app.command()
def status(
    group: Annotated[
        str | None, typer.Option("--group", help="The consumer group; without it, a line for each.")
    ] = None,
    database_url: Url = None,
    database_schema: Schema = None,
    kafka_bootstrap_servers: Broker = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """
    Say how far a group is in each partition, what lags, and what waits for a retry or a person; without a group, name all.

    [bold]Example[/]: packhorse processor status --group figures
    """
    import json

    from packhorse.processor.settings import OverviewSettings, StatusSettings
    from packhorse.processor.status import read_status

    given = {"database_url": database_url, "database_schema": database_schema}
    if group is None:
        _tell_all(OverviewSettings.load(given), as_json=as_json)
        return
    settings = StatusSettings.load({**given, "kafka_bootstrap_servers": kafka_bootstrap_servers})
    found = read_status(settings, group)
    if as_json:
        typer.echo(json.dumps(found.as_dict()))
        return
    for line in found.lines():
        typer.echo(line)


def _tell_all(settings: "OverviewSettings", *, as_json: bool) -> None:
    import json

    from packhorse.processor.watching.overview import read_overview

    found = read_overview(settings)
    if as_json:
        typer.echo(json.dumps({"groups": [line._asdict() for line in found]}))
        return
    for line in found:
        typer.echo(line.told)
    typer.echo(
        "more of one: packhorse processor status --group NAME" if found else "no group has worked here"
    )
