"""`packhorse retention`: do what is due now, say what is overdue."""

import json
from typing import TYPE_CHECKING, Annotated

import typer

from packhorse.schemas.flags import Json, Schema, Url

if TYPE_CHECKING:
    from packhorse.relay.retention.model import Outcome, Overdue, Report
    from packhorse.relay.retention.postgres import PostgresPartitions
    from packhorse.relay.settings import RetentionSettings

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    help="Make day partitions of the outbox ahead, and remove old ones once they are published.",
)

KeepDays = Annotated[
    int | None,
    typer.Option(
        "--keep-days",
        min=0,
        help="Days that published rows are kept beside today; 0: for ever. [dim]PACKHORSE_RELAY_RETENTION_DAYS[/]",
    ),
]


@app.command()
def run(
    keep_days: KeepDays = None,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Look at everything, say what would be done, and change nothing."),
    ] = False,
    database_url: Url = None,
    database_schema: Schema = None,
    as_json: Json = False,
) -> None:
    """
    Do what is due now; exit 1 when a partition stays that somebody should look at.

    Makes the missing day partitions, empties those whose days are over and whose rows are all published, and drops empty
    ones. A row that is not published, or that a hold still has to publish, is never removed. No writer waits for more than
    50 ms; what can't have its lock in that time gives way and is tried again at the next run. A running relay does all this by
    itself every few minutes; both at once are safe.

    [bold]Example[/]: packhorse retention run --dry-run --keep-days 7
    """
    from packhorse.core.text import inert
    from packhorse.relay.owner import owner_name
    from packhorse.relay.retention.shell import run_once
    from packhorse.relay.retention.tell import told

    def tell(outcome: "Outcome") -> None:
        if not as_json:
            typer.echo(f"{outcome.step.name:<16} {inert(told(outcome))}")

    settings, partitions = _set_up(database_url, database_schema, keep_days)
    try:
        report = run_once(partitions, settings.rules, by=owner_name(), act=not dry_run, tell=tell)
    finally:
        partitions.close()
    if as_json:
        typer.echo(json.dumps(_as_dict(report, dry_run=dry_run)))
    elif not report.outcomes:
        typer.echo("nothing is due")
    if report.overdue:
        raise typer.Exit(1)


@app.command()
def status(database_url: Url = None, database_schema: Schema = None, as_json: Json = False) -> None:
    """
    Say when retention ran last and which partitions stay past their time, and why; exit 1 when there are any.

    [bold]Example[/]: packhorse retention status --json
    """
    _, partitions = _set_up(database_url, database_schema, None)
    try:
        last = partitions.last()
    finally:
        partitions.close()
    if as_json:
        at = last.ran_at.isoformat() if last.ran_at else None
        overdue = [each.as_dict() for each in last.overdue]
        typer.echo(
            json.dumps({"ran_at": at, "ran_by": last.ran_by, "keep_days": last.keep_days, "overdue": overdue})
        )
    else:
        kept = "all days" if last.keep_days is None else f"today and {last.keep_days} days before it"
        ran = (
            f"{last.ran_at:%Y-%m-%d %H:%M:%S %Z} by {last.ran_by}, keeping {kept}" if last.ran_at else "never"
        )
        typer.echo(f"last run   {ran}")
        _print_overdue(last.overdue)
    if last.overdue:
        raise typer.Exit(1)


def _print_overdue(overdue: "tuple[Overdue, ...]") -> None:
    from packhorse.core.text import inert

    for each in overdue:
        typer.echo(f"overdue    {each.name}: {inert(each.told)}")
    if not overdue:
        typer.echo("overdue    none")


def _set_up(
    url: str | None, schema: str | None, keep_days: int | None
) -> "tuple[RetentionSettings, PostgresPartitions]":
    from packhorse.relay.retention.postgres import PostgresPartitions
    from packhorse.relay.settings import RetentionSettings

    settings = RetentionSettings.load(
        {"database_url": url, "database_schema": schema, "retention_days": keep_days}
    )
    return settings, PostgresPartitions(settings.database_url.get_secret_value(), settings.database_schema)


def _as_dict(report: "Report", *, dry_run: bool) -> dict[str, object]:
    from packhorse.relay.retention.tell import told

    steps = [
        {
            "partition": outcome.step.name,
            "act": type(outcome.step).__name__.lower(),
            "outcome": outcome.code.value,
            "text": told(outcome),
        }
        for outcome in report.outcomes
    ]
    return {"dry_run": dry_run, "steps": steps, "overdue": [each.as_dict() for each in report.overdue]}
