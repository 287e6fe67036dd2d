"""`packhorse job show | list`: find jobs, and look at one."""

from typing import TYPE_CHECKING, Annotated
from uuid import UUID

import typer

from packhorse.console import options
from packhorse.console.paging import MOST_LOOKED, gathered
from packhorse.core.jobs import JobState
from packhorse.schemas import flags

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import timedelta

    from packhorse.console.jobs.model import Counts, Filter, Page


_LONG = "5m"
"""What --stuck calls long."""
JobId = Annotated[UUID, typer.Argument(metavar="ID", help="The job's id, which is its message's too.")]
ShowNames = Annotated[
    bool,
    typer.Option(
        "--show-key", help="Show the names that the application gave, which may say who somebody is."
    ),
]


def show(
    job_id: JobId,
    *,
    with_input: Annotated[
        bool,
        typer.Option("--input", help="Decode the input through the registry; personal fields are masked."),
    ] = False,
    unmask: Annotated[
        bool,
        typer.Option(
            "--unmask",
            help="Show input, result, steps' results and answers as they are, on the record; needs --why.",
        ),
    ] = False,
    why: Annotated[
        str | None, typer.Option("--why", metavar="TEXT", help="Why it must be seen, for the record.")
    ] = None,
    actor: options.ClaimedActor = None,
    show_key: ShowNames = False,
    as_json: flags.Json = False,
    database_url: flags.Url = None,
    database_schema: flags.Schema = None,
    registry_url: flags.Registry = None,
) -> None:
    """
    Show one job: how it stands and since when, what it waits for, progress, lease, history, steps, outside effects, error.

    "accepted" is on record and not begun; "running" says whether its lease is kept. Fields of the input that their schema marks
    personal are masked. Nothing marks parts of a result, of a step's or of an answer, so their sizes alone are shown; --unmask
    shows all of it to who has the right to, once that is on record. Exit code 6: there is no such job.

    [bold]Example[/]
      packhorse job show 019b76da-a800-7000-8000-000000000000 --input
      packhorse job show 019b76da-a800-7000-8000-000000000000 --unmask --why "the customer asks, ticket 17"
    """
    from packhorse.console.compose import service_of
    from packhorse.console.jobs.render import shown_json, shown_sheet
    from packhorse.console.output import tell_json, terminal
    from packhorse.core.clock import SYSTEM_CLOCK
    from packhorse.core.errors import UsageError

    if unmask != (why is not None):
        raise UsageError("--unmask and --why TEXT go together: what is shown, and why, is on the record")
    settings = options.settings_of(database_url, database_schema, registry=registry_url)
    with service_of(settings, claimed=actor) as service:
        if why is not None:
            found = service.jobs.unmask(job_id, why=why, local=SYSTEM_CLOCK.local)
        else:
            found = service.jobs.show(job_id, local=SYSTEM_CLOCK.local, with_input=with_input)
    if as_json:
        tell_json(shown_json(found, show_key=show_key or unmask))
    else:
        terminal().print(shown_sheet(found, show_key=show_key or unmask))


def list_jobs(
    *,
    states: Annotated[
        list[JobState] | None, typer.Option("--state", help="In this state; may be given more than once.")
    ] = None,
    job_type: Annotated[str | None, typer.Option("--type", metavar="NAME", help="Of this type.")] = None,
    tenant: options.Tenant = None,
    topic: Annotated[
        str | None,
        typer.Option("--topic", "--queue", metavar="NAME", help="Of this topic, which is its queue."),
    ] = None,
    since: Annotated[
        str | None,
        typer.Option("--since", metavar="TIME", help="Accepted then or later: a time, UTC, or `2h` ago."),
    ] = None,
    until: Annotated[
        str | None,
        typer.Option("--until", metavar="TIME", help="Accepted before then: a time, UTC, or `2h` ago."),
    ] = None,
    text: Annotated[
        str | None,
        typer.Option("--text", metavar="TEXT", help="Whose error holds this, in capitals or not."),
    ] = None,
    stuck: Annotated[
        bool,
        typer.Option("--stuck", help="Accepted for long, running with its lease over, or uncertain."),
    ] = False,
    longer_than: Annotated[
        str | None,
        typer.Option(
            "--longer-than",
            metavar="DURATION",
            help=f"What --stuck calls long, such as 90s, 5m, 2h; {_LONG} unless you say so.",
        ),
    ] = None,
    counts: Annotated[
        bool, typer.Option("--counts", help="Count all jobs by state and type instead.")
    ] = False,
    limit: options.Limit = 50,
    after: options.After = None,
    most_looked: Annotated[
        int, typer.Option("--most-looked", min=1, metavar="N", help="Look at no more than N jobs for a page.")
    ] = MOST_LOOKED,
    show_key: ShowNames = False,
    as_json: flags.Json = False,
    database_url: flags.Url = None,
    database_schema: flags.Schema = None,
) -> None:
    """
    List jobs, the newest first, in pages; or count them.

    States other than succeeded are found by an index. For all else the newest jobs are looked through, 20,000 at a time, until
    the page is full, --most-looked were, or Ctrl-C; how far that is stands on standard error. The text is looked for in recorded
    errors, never in inputs or results. --counts says which of its numbers are not exact.

    [bold]Example[/]
      packhorse job list --state quarantined --type reports.ReportRequest
      packhorse job list --stuck --longer-than 10m --json
      packhorse job list --counts
    """
    from packhorse.console.compose import service_of
    from packhorse.console.jobs.model import Filter, position_from
    from packhorse.core.clock import SYSTEM_CLOCK
    from packhorse.core.moments import span_from

    settings = options.settings_of(database_url, database_schema)
    _check_stuck(stuck, longer_than)
    begin, end = span_from(since, until, now=SYSTEM_CLOCK.now())
    wanted = Filter(
        states=frozenset(states or ()),
        type=job_type,
        tenant=tenant,
        topic=topic,
        since=begin,
        until=end,
        text=text,
        stuck=_long(longer_than or _LONG) if stuck else None,
    )
    if counts:
        _check_alone(wanted, after)
        with service_of(settings) as service:
            _tell_counts(service.jobs.counts(), as_json=as_json)
        return
    position = None if after is None else position_from(after)
    with service_of(settings) as service:
        page = _found(service.jobs.search(wanted, after=position, limit=limit, most_looked=most_looked))
    _tell_page(page, narrow=wanted != Filter() or after is not None, as_json=as_json, show_key=show_key)


def _long(text: str) -> "timedelta":
    from datetime import timedelta

    from packhorse.processor.durations import seconds_of

    return timedelta(seconds=seconds_of(text, what="--longer-than"))


def _check_stuck(stuck: bool, longer_than: str | None) -> None:
    from packhorse.core.errors import UsageError

    if longer_than is not None and not stuck:
        raise UsageError("--longer-than says what --stuck calls long; add --stuck, or leave it out")


def _check_alone(wanted: "Filter", after: str | None) -> None:
    from packhorse.console.jobs.model import Filter
    from packhorse.core.errors import UsageError

    if wanted != Filter() or after is not None:
        raise UsageError("--counts counts all jobs and takes no filter; leave the others out, or --counts")


def _tell_counts(counts: "Counts", *, as_json: bool) -> None:
    from packhorse.console.jobs.render import counts_table
    from packhorse.console.output import tell, tell_json, terminal

    if as_json:
        tell_json(counts)
    elif counts.counts:
        terminal().print(counts_table(counts))
    else:
        tell("no jobs")


def _found(parts: "Iterator[Page]") -> "Page":
    """Return the page that *parts* make up, telling how far they looked; Ctrl-C ends the look and keeps what was found."""
    from packhorse.console.jobs.model import joined
    from packhorse.console.output import tell

    def ended(page: "Page") -> None:
        tell(f"{len(page.jobs)} found, looked back to job {page.looked_to}", err=True)

    return gathered(parts, joined, ended)


def _tell_page(page: "Page", *, narrow: bool, as_json: bool, show_key: bool) -> None:
    from packhorse.console.jobs.render import page_json, page_table
    from packhorse.console.output import tell, tell_json, terminal

    if as_json:
        tell_json(page_json(page, show_key=show_key))
        return
    if page.jobs:
        terminal().print(page_table(page))
    elif page.looked_to is None:
        tell("no jobs fit" if narrow else "no jobs")
    if page.looked_to is not None:
        tell(f"looked back to job {page.looked_to} and no further; there may be more")
    if page.next is not None:
        tell(f"more: add --after {page.next.token()}")
