"""`packhorse job retention`: remove what is due of jobs that have ended, say how long what is kept."""

import json
from typing import TYPE_CHECKING, Annotated

import typer

from packhorse.schemas.flags import Json, Schema, Url

if TYPE_CHECKING:
    from packhorse.processor.jobs.keeping.model import JobRules, Turn
    from packhorse.processor.jobs.keeping.postgres import JobTables
    from packhorse.processor.settings import InboxSettings

app = typer.Typer(pretty_exceptions_enable=False, rich_markup_mode="rich")
retention = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    help="Keep the tables of jobs small: what has ended goes once its time is over.",
)
app.add_typer(retention, name="retention")

Days = Annotated[
    int | None,
    typer.Option(
        "--job-days",
        min=0,
        help="Days that jobs live after their end, where their type declares nothing; 0: for ever. [dim]PACKHORSE_PROCESSOR_JOB_DAYS[/]",
    ),
]
ResultDays = Annotated[
    int | None,
    typer.Option(
        "--job-result-days",
        min=0,
        help="Days that input, result and answers live; 0: as long as the job. [dim]PACKHORSE_PROCESSOR_JOB_RESULT_DAYS[/]",
    ),
]


@app.callback()
def root() -> None:
    """See and act on jobs."""


@retention.command()
def run(
    job_days: Days = None,
    job_result_days: ResultDays = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say how much would go, and change nothing.")
    ] = False,
    database_url: Url = None,
    database_schema: Schema = None,
    as_json: Json = False,
) -> None:
    """
    Do what is due now: remove jobs whose time is over, with their history, and before that what they hold.

    Never removed are jobs that have not ended (accepted, running, retrying, quarantined, uncertain), and discarded ones that can
    still be had back. What went is on the record, by type. Running processors do all this by themselves; both at once are safe.

    [bold]Example[/]: packhorse job retention run --dry-run
    """
    import threading

    from packhorse.core.clock import SYSTEM_CLOCK
    from packhorse.processor.jobs.keeping.retention import JobRetention
    from packhorse.processor.keeping.keeper import own_name

    settings, tables = _set_up(database_url, database_schema, job_days, job_result_days)
    retention = JobRetention(tables, settings.job_rules, every=settings.job_every, by=own_name())
    turn = retention.run(threading.Event().wait, SYSTEM_CLOCK.monotonic, act=not dry_run)
    if turn is None:
        typer.echo(json.dumps({"elsewhere": True}) if as_json else "another process works on it just now")
    elif as_json:
        typer.echo(json.dumps({**turn.as_dict(), "dry_run": dry_run}))
    else:
        _print(turn, dry=dry_run)


@retention.command()
def status(database_url: Url = None, database_schema: Schema = None, as_json: Json = False) -> None:
    """
    Say when jobs were last gone through, what went then, and how long jobs of each type are kept.

    [bold]Example[/]: packhorse job retention status --json
    """
    from packhorse.core.text import inert

    settings, tables = _set_up(database_url, database_schema, None, None)
    try:
        last = tables.last()
    finally:
        tables.close()
    rules = settings.job_rules
    if as_json:
        told = {
            "at": last.at.isoformat() if last.at else None,
            "by": last.by,
            **{name: last.detail.get(name, {}) for name in ("jobs", "results")},
            "keep": rules.keep,
            "keep_result": rules.keep_result,
            "types": {
                each.type: {"keep": _finite(each.keep, rules.keep), "keep_result": _finite(each.keep_result, rules.keep_result)}
                for each in last.types
            },
        }  # fmt: skip
        typer.echo(json.dumps(told))
        return
    typer.echo(f"last turn   {f'{last.at:%Y-%m-%d %H:%M:%S %Z} by {last.by}' if last.at else 'never'}")
    for what in ("jobs", "results"):
        for name, count in dict(last.detail.get(what, {})).items():
            typer.echo(f"{'removed' if what == 'jobs' else 'emptied':<10}  {count} of {inert(name)}")
    typer.echo(f"kept        {_kept(rules, None, None)}, where a type declares nothing")
    for each in last.types:
        typer.echo(f"kept        {_kept(rules, each.keep, each.keep_result)}  type {inert(each.type)}")


def _finite(seconds: float | None, default: float | None) -> float | None:
    import math

    found = default if seconds is None else seconds
    return None if found is None or math.isinf(found) else found


def _kept(rules: "JobRules", keep: float | None, keep_result: float | None) -> str:
    row, result = _finite(keep, rules.keep), _finite(keep_result, rules.keep_result)
    return f"{_span(row)}, results {'as long' if result is None else _span(result)}"


def _span(seconds: float | None) -> str:
    return "for ever" if seconds is None else f"{seconds / 86_400:g} d"


def _print(turn: "Turn", *, dry: bool) -> None:
    from packhorse.core.text import inert

    done = ("would go", "would lose what they hold") if dry else ("removed", "emptied")
    for word, counts in zip(done, (turn.jobs, turn.results), strict=True):
        for name, count in sorted(counts.items()):
            typer.echo(f"{word}: {count} of {inert(name)}")
    typer.echo(f"jobs        {turn.seen} looked at")


def _set_up(
    url: str | None, schema: str | None, days: int | None, result_days: int | None
) -> "tuple[InboxSettings, JobTables]":
    from packhorse.processor.jobs.keeping.postgres import JobTables
    from packhorse.processor.settings import InboxSettings

    settings = InboxSettings.load(
        {
            "database_url": url,
            "database_schema": schema,
            "job_days": days,
            "job_result_days": result_days,
        }
    )
    return settings, JobTables(settings.database_url.get_secret_value(), settings.database_schema)
