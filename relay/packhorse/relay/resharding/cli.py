"""`packhorse relay shards`: show the shards, change their number."""

from typing import TYPE_CHECKING, Annotated

import typer

from packhorse.relay.orders import options
from packhorse.schemas.flags import Json, Schema, Url

if TYPE_CHECKING:
    from packhorse.core.person import Person
    from packhorse.relay.resharding.model import Standing
    from packhorse.relay.resharding.postgres import PostgresResharding

PAUSE = 0.2
TIME_IS_UP = 7


def shards(
    number: Annotated[
        int | None,
        typer.Argument(metavar="[N]", help="How many shards there shall be; without it: show them."),
    ] = None,
    abort: Annotated[bool, typer.Option("--abort", help="Take back a change that is on its way.")] = False,
    why: options.Why = None,
    yes: options.Yes = False,
    wait: Annotated[
        float, typer.Option("--wait", min=0, metavar="SECONDS", help="Wait so long for the owners.")
    ] = 300,
    actor: options.ActorName = None,
    database_url: Url = None,
    database_schema: Schema = None,
    as_json: Json = False,
) -> None:
    """
    Show the shards and their owners, or change how many there are.

    Rows are dealt to shards by their key's hash; each shard has one owner at a time, and several relay processes share them
    evenly. One shard carries some 100,000 rows a second: more of them pay when its one core is the limit.

    A change waits until every owner has finished what it has in work, so new rows wait meanwhile; it needs the role that owns
    the tables, the right to administer, and a running relay where work was left.
    Ctrl-C leaves the order standing: the same command goes on with it, --abort takes it back. Exit code 7: the time was up.

    [bold]Example[/]
      packhorse relay shards
      packhorse relay shards 4 --why "one core is full"
    """
    from packhorse.core.acts import checked_why
    from packhorse.core.errors import UsageError
    from packhorse.relay.resharding.postgres import PostgresResharding
    from packhorse.relay.settings import StatusSettings

    if abort and number is not None:
        raise UsageError("--abort takes no number")
    settings = StatusSettings.load({"database_url": database_url, "database_schema": database_schema})
    reason = None if why is None else checked_why(why)
    table = PostgresResharding(settings.database_url.get_secret_value(), settings.database_schema)
    try:
        person = options.person_of(actor)
        if abort:
            done = table.abort(person=person, why=reason)
            typer.echo("the change is taken back" if done else "no change was on its way")
        elif number is None:
            _show(table.standing(), as_json=as_json)
        else:
            options.checked(as_json=as_json, yes=yes)
            standing = table.standing()
            if len(standing) != number or any(shard.finish for shard in standing):
                options.confirmed(
                    f"Change from {len(standing)} to {number} shards? New rows wait meanwhile.", yes=yes
                )
            try:
                _change(table, number, person=person, why=reason, wait=wait)
            except KeyboardInterrupt:
                typer.echo(
                    "no longer waiting; `packhorse relay shards` shows whether the order stands: then new rows wait for it",
                    err=True,
                )
                raise
            _show(table.standing(), as_json=as_json)
    finally:
        table.close()


def _change(
    table: "PostgresResharding", number: int, *, person: "Person", why: str | None, wait: float
) -> None:
    """Take step after step until the number is there; tell what is waited for, once each."""
    import threading

    from packhorse.core.clock import SYSTEM_CLOCK
    from packhorse.relay.resharding.model import Step, waits_for

    until, told, pause = SYSTEM_CLOCK.monotonic() + wait, "", threading.Event()
    while True:
        step, standing = table.advance(number, person=person, why=why)
        if step is Step.DONE:
            return
        if step is Step.SWITCH:
            typer.echo(f"from now on there are {number} shards", err=True)
            return
        if step is Step.WAIT and (text := waits_for(standing)) != told:
            typer.echo(f"waiting {text}", err=True)
            told = text
        if SYSTEM_CLOCK.monotonic() > until:
            typer.echo(
                "the time is up; the order stands, and new rows wait for it: run it again, or take it back with --abort",
                err=True,
            )
            raise typer.Exit(TIME_IS_UP)
        pause.wait(PAUSE)


def _show(standing: "list[Standing]", *, as_json: bool) -> None:
    import json

    from packhorse.core.text import inert

    if as_json:
        rows = [
            {"shard": s.shard, "owner": s.owner, "finish": s.finish, "wanted": s.wanted} for s in standing
        ]
        typer.echo(json.dumps({"shards": rows}))
        return
    for shard in standing:
        more = f"  changing to {shard.wanted} shards" if shard.finish else ""
        typer.echo(inert(f"{shard.shard:>3}  {shard.owner or 'nobody'}{more}"))
