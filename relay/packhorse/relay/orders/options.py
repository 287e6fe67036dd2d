"""What the commands of orders share: flags, the connection, how they ask, tell and follow."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from packhorse.core.text import inert
from packhorse.schemas import asking

if TYPE_CHECKING:
    from packhorse.core.person import Person
    from packhorse.relay.orders.model import HoldView
    from packhorse.relay.orders.postgres import PostgresOrders

Rate = Annotated[
    int | None,
    typer.Option("--rate", min=1, max=10_000_000, metavar="N", help="At most N rows a second."),
]
Why = Annotated[
    str | None, typer.Option("--why", metavar="TEXT", help="The reason, for the record. No personal data.")
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for a confirmation.")]
Wait = Annotated[
    float,
    typer.Option("--wait", min=0, metavar="SECONDS", help="Follow it so long, until it ended or failed again."),
]  # fmt: skip
ActorName = Annotated[
    str | None, typer.Option("--actor", metavar="NAME", help="On whose behalf; recorded as claimed.")
]


@contextmanager
def orders_of(url: str | None, schema: str | None, *, counting: bool = False) -> "Iterator[PostgresOrders]":
    """Connect to the database that settings and flags name; *counting*: its answers may take minutes."""
    from packhorse.relay.orders.postgres import PostgresOrders
    from packhorse.relay.orders.republishing import COUNTING
    from packhorse.relay.settings import StatusSettings

    settings = StatusSettings.load({"database_url": url, "database_schema": schema})
    database, name = settings.database_url.get_secret_value(), settings.database_schema
    with PostgresOrders(database, name, reach=COUNTING if counting else None) as orders:
        yield orders


def person_of(claimed: str | None) -> "Person":
    """Return who orders: the holder of the console's token if one is set, else the database's role."""
    from packhorse.core.person import this_process
    from packhorse.relay.settings import OrderSettings

    token = OrderSettings.load({}).token
    return this_process(claimed=claimed, token=None if token is None else token.get_secret_value())


def checked(*, as_json: bool, yes: bool) -> None:
    """
    Refuse to ask where nobody answers.

    Raises:
        UsageError: --json without --yes.
    """
    asking.check_answerable(as_json=as_json, yes=yes, act="order")


def confirmed(question: str, *, yes: bool) -> None:
    """Ask, unless *yes*; a no ends the command with nothing done."""
    if not yes:
        asking.confirmed(question, err=True)


def tell(lines: Iterable[tuple[str, str]]) -> None:
    """Print pairs of a name and a text."""
    for name, text in lines:
        typer.echo(f"{name:<10} {inert(text)}")


def followed(orders: "PostgresOrders", views: "Sequence[HoldView]", *, wait: float, as_json: bool) -> int:
    """Say that the order stands and how to follow it, or follow it for *wait* seconds; return the exit code."""
    from packhorse.relay.orders.follow import OK, follow

    def heard(text: str) -> None:
        if not as_json:
            typer.echo(inert(text))

    if not wait:
        heard("ordered; `packhorse relay holds` tells how it went")
        return OK
    return follow(views, orders.named, seconds=wait, heard=heard)
