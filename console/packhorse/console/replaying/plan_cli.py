"""`packhorse replay plan`: fix a range, and say what a replay of it would do."""

from typing import Annotated

import typer

from packhorse.console import options
from packhorse.schemas import flags

_RANGE = "Range"
_FILTER = "Filter"


def plan(
    group: Annotated[str, typer.Option("--group", metavar="NAME", help="Whose handlers.")],
    topic: Annotated[str, typer.Option("--topic", metavar="NAME", help="The source topic.")],
    *,
    partition: Annotated[
        list[int] | None,
        typer.Option(
            "--partition", metavar="N", help="This partition; may be repeated.", rich_help_panel=_RANGE
        ),
    ] = None,
    from_offset: Annotated[
        int | None,
        typer.Option(
            "--from-offset",
            metavar="N",
            help="From this offset of the one partition.",
            rich_help_panel=_RANGE,
        ),
    ] = None,
    to_offset: Annotated[
        int | None,
        typer.Option("--to-offset", metavar="N", help="To before this offset.", rich_help_panel=_RANGE),
    ] = None,
    since: Annotated[
        str | None,
        typer.Option(
            "--since", metavar="TIME", help="From this time, e.g. 2026-11-30T10:00Z.", rich_help_panel=_RANGE
        ),
    ] = None,
    until: Annotated[
        str | None,
        typer.Option(
            "--until",
            metavar="TIME",
            help="To before this time; else to the present.",
            rich_help_panel=_RANGE,
        ),
    ] = None,
    message_type: Annotated[
        list[str] | None,
        typer.Option(
            "--type", metavar="NAME", help="Of this type; may be repeated.", rich_help_panel=_FILTER
        ),
    ] = None,
    key: Annotated[
        list[str] | None,
        typer.Option("--key", metavar="KEY", help="Of this key; may be repeated.", rich_help_panel=_FILTER),
    ] = None,
    leave_out_key: Annotated[
        list[str] | None,
        typer.Option(
            "--leave-out-key",
            metavar="KEY",
            help="Not of this key; may be repeated.",
            rich_help_panel=_FILTER,
        ),
    ] = None,
    again: Annotated[
        bool, typer.Option("--again", help="Also do again what is done, under new ids.")
    ] = False,
    with_discarded: Annotated[
        bool, typer.Option("--with-discarded", help="With --again: also what a person has discarded.")
    ] = False,
    beyond: Annotated[
        bool,
        typer.Option(
            "--beyond",
            help="With --again: also of keys that have newer messages done. Needs an admin to run.",
        ),
    ] = False,
    handler: Annotated[
        str | None,
        typer.Option(
            "--handler", metavar="NAME", help="To this handler for replays, instead of the usual ones."
        ),
    ] = None,
    rate: Annotated[float, typer.Option("--rate", metavar="N", help="Messages a second.")] = 500.0,
    most_failures: Annotated[
        int, typer.Option("--most-failures", metavar="N", help="Halt when more fail.")
    ] = 10,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Only decode and count, as fast as it can be read; nothing is kept."),
    ] = False,
    as_json: flags.Json = False,
    database_url: flags.Url = None,
    database_schema: flags.Schema = None,
    kafka_bootstrap_servers: flags.Broker = None,
    registry_url: flags.Registry = None,
) -> None:
    """
    Fix a range of a topic, read it once, and say what a replay of it would do; nothing is done.

    The inbox decides what is repeated: what is done is a duplicate, what was never done is handed over. The plan is good for an
    hour; `packhorse replay run` does exactly it, once. A replay ends at the group's watermark: what is above it, the group does
    itself. With --again what is done is done once more: every effect happens again, and what handlers emit leaves again. What a
    person discarded is left out and counted, unless --with-discarded is said; what an edited copy took the place of, and what was
    purged, is always left out.

    [bold]Example[/]
      packhorse replay plan --group figures --topic airline.flight --since 2026-11-30T10:00Z --until 2026-11-30T11:00Z
      packhorse replay plan --group figures --topic airline.flight --partition 0 --from-offset 0 --dry-run
    """
    from packhorse.console.compose import service_of
    from packhorse.console.output import tell, tell_json, terminal
    from packhorse.console.replaying.render import plan_json, plan_sheet
    from packhorse.console.replaying.wanted import Wanted
    from packhorse.console.running.working import progress_told
    from packhorse.core.clock import SYSTEM_CLOCK
    from packhorse.core.moments import span_from

    begin, end = span_from(since, until, now=SYSTEM_CLOCK.now())
    wanted = Wanted(
        group=group,
        topic=topic,
        partitions=tuple(partition or ()),
        from_offset=from_offset,
        to_offset=to_offset,
        since=begin,
        until=end,
        types=tuple(message_type or ()),
        keys=tuple(key or ()),
        left_out=tuple(leave_out_key or ()),
        again=again,
        with_discarded=with_discarded,
        beyond=beyond,
        handler=handler,
        rate=rate,
        most_failures=most_failures,
    )
    settings = options.settings_of(
        database_url, database_schema, broker=kafka_bootstrap_servers, registry=registry_url
    )
    with service_of(settings) as service, progress_told() as progress:
        found = service.replays.plan(wanted, tell=progress, dry=dry_run)
    if as_json:
        tell_json(plan_json(found))
        return
    terminal().print(plan_sheet(found))
    if found.run is not None:
        tell(f'packhorse replay run {found.run} --why "…" does it; the plan is good for an hour')
