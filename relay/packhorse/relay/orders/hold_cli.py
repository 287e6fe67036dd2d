"""`packhorse relay holds` and `packhorse relay hold`: what the relay leaves out, and orders about it."""

from typing import TYPE_CHECKING, Annotated
from uuid import UUID

import typer

from packhorse.relay.orders import options
from packhorse.schemas.flags import Json, Schema, Url

if TYPE_CHECKING:
    from packhorse.relay.orders.model import HoldView
    from packhorse.relay.orders.postgres import PostgresOrders

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    help="Show one hold, release holds, give up a row.",
)
HoldId = Annotated[int, typer.Argument(metavar="ID", help="The hold's number.")]


def holds(
    ended: Annotated[bool, typer.Option("--all", help="Those that are over, too.")] = False,
    database_url: Url = None,
    database_schema: Schema = None,
    as_json: Json = False,
) -> None:
    """
    List what the relay leaves out for now, why, and what comes next; exit 1 when one waits for a person.

    [bold]Example[/]
      packhorse relay holds
      packhorse relay holds --json | jq '.holds[] | select(.waits_for_a_person) | .id'
    """
    import json

    from packhorse.core.text import inert

    with options.orders_of(database_url, database_schema) as orders:
        found = orders.holds(ended=ended)
    if as_json:
        typer.echo(json.dumps({"holds": [view.as_dict() for view in found]}))
    elif not found:
        typer.echo("nothing is held")
    else:
        for view in found:
            typer.echo(inert(_line(view)))
    if any(view.waits_for_a_person for view in found):
        raise typer.Exit(1)


def _line(view: "HoldView") -> str:
    from packhorse.relay.orders.model import at

    fault = view.hold.fault
    row = "" if fault.id is None else f", row {fault.id}"
    return f"{view.id:>6}  {view.standing:<15}  {view.scope}{row}  since {at(view.made_at)}: {fault.code}: {fault.reason}"


@app.command()
def show(
    hold: HoldId,
    database_url: Url = None,
    database_schema: Schema = None,
    as_json: Json = False,
) -> None:
    """
    Show one hold: what waits in it, since when and why, and what happens next.

    [bold]Example[/]: packhorse relay hold show 12
    """
    import json

    with options.orders_of(database_url, database_schema) as orders:
        (view,) = orders.named([hold])
        waiting = None if view.state == "ended" else orders.waiting(view)
    if as_json:
        typer.echo(json.dumps({**view.as_dict(), "waiting": None if waiting is None else waiting.as_dict()}))
        return
    lines = view.lines()
    if waiting is not None:
        lines[-1:-1] = waiting.lines()
    options.tell(lines)


@app.command()
def release(
    ids: Annotated[list[int], typer.Argument(metavar="ID...", help="The holds' numbers.")],
    rate: options.Rate = None,
    why: options.Why = None,
    yes: options.Yes = False,
    wait: options.Wait = 0,
    actor: options.ActorName = None,
    database_url: Url = None,
    database_schema: Schema = None,
    as_json: Json = False,
) -> None:
    """
    Order that what is held goes on its way, in order, without overtaking: all of these holds, or none.

    Mend the reason first. The relay's owner begins within seconds; whoever was second is told. With --wait, exit code 1 says
    that it failed again, 7 that the time was up. --json needs --yes.

    [bold]Example[/]
      packhorse relay hold release 12 --why "limit of the topic raised" --wait 60
      packhorse relay hold release 12 13 14 --rate 500 --yes
    """
    from packhorse.core.acts import checked_why
    from packhorse.relay.orders.model import unreleasable

    options.checked(as_json=as_json, yes=yes)
    reason = None if why is None else checked_why(why)
    with options.orders_of(database_url, database_schema) as orders:
        views = orders.named(ids)
        for view in views:
            if (refusal := unreleasable(view, None)) is not None:
                raise orders.explained(view) or refusal
        if not as_json:
            for view in views:
                options.tell([*view.lines(), ("waiting", str(orders.waiting(view)))])
        options.confirmed("Release?", yes=yes)
        person = options.person_of(actor)
        ordered = orders.release(views, person=person, why=reason, rate=rate)
        raise typer.Exit(_followed(orders, views, ordered, wait=wait, as_json=as_json))


@app.command()
def discard(
    hold: HoldId,
    row: Annotated[UUID, typer.Option("--row", metavar="MESSAGE_ID", help="The row to give up, by its id.")],
    why: Annotated[str, typer.Option("--why", metavar="TEXT", help="The reason, for the record.")],
    yes: options.Yes = False,
    wait: options.Wait = 0,
    actor: options.ActorName = None,
    database_url: Url = None,
    database_schema: Schema = None,
    as_json: Json = False,
) -> None:
    """
    Give up one row by name, on the record, and release the hold without it: the row is never published.

    The row stays in the outbox until its day is removed, and `packhorse status` says who gave it up. Exit codes as of
    `release`.

    [bold]Example[/]
      packhorse relay hold discard 12 --row 019b76da-a800-7000-8000-000000000000 --why "a test that went live"
    """
    from packhorse.core.acts import checked_why
    from packhorse.relay.orders.model import at, unreleasable

    options.checked(as_json=as_json, yes=yes)
    reason = checked_why(why)
    with options.orders_of(database_url, database_schema) as orders:
        (view,) = orders.named([hold])
        if (refusal := unreleasable(view, None)) is not None:
            raise orders.explained(view) or refusal
        found = orders.row(view, str(row))
        if not as_json:
            options.tell(
                [
                    *view.lines(),
                    (
                        "discard",
                        f"row {found.id}, seq {found.seq}, {found.type}, written {at(found.created_at)}",
                    ),
                    ("then", "it is never published; the hold is released without it, what stands behind it leaves in order"),
                ]
            )  # fmt: skip
        options.confirmed("Give up this row?", yes=yes)
        person = options.person_of(actor)
        ordered = orders.discard(view, found.id, person=person, why=reason)
        raise typer.Exit(_followed(orders, [view], [ordered], wait=wait, as_json=as_json))


def _followed(
    orders: "PostgresOrders",
    views: "list[HoldView]",
    ordered: "list[HoldView]",
    *,
    wait: float,
    as_json: bool,
) -> int:
    import json

    code = options.followed(orders, views, wait=wait, as_json=as_json)
    if as_json:
        last = orders.named([view.id for view in ordered])
        typer.echo(json.dumps({"holds": [view.as_dict() for view in last]}))
    return code
