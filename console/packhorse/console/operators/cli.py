"""`packhorse operators`: who may see, act and administer."""

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from packhorse.console import options
from packhorse.schemas import flags

if TYPE_CHECKING:
    from packhorse.console.operators.model import Change, Kind, Wanted

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    help="Say who may see, act and administer; each change is on the record.",
)


class RoleChoice(StrEnum):
    """What somebody is to be."""

    VIEWER = "viewer"
    OPERATOR = "operator"
    ADMIN = "admin"


Name = Annotated[str, typer.Argument(metavar="NAME", help="Who: 1 to 63 printable characters.")]
RoleOf = Annotated[
    RoleChoice,
    typer.Option(
        "--role", help="viewer: looks; operator: acts too; admin: says who may, purges, resets offsets."
    ),
]
Personal = Annotated[
    bool, typer.Option("--personal", help="May also see fields that their schema marks personal.")
]
Edit = Annotated[bool, typer.Option("--edit", help="May also send an edited copy of a quarantined message.")]
Expires = Annotated[
    str | None,
    typer.Option("--expires", metavar="DURATION", help="For so long, e.g. 12h or 90d; without it for good."),
]
OfUser = Annotated[
    bool,
    typer.Option(
        "--user",
        help="Somebody whom a trusted proxy signs in under just that name, and not a role of the database.",
    ),
]
Why = Annotated[
    str | None, typer.Option("--why", metavar="TEXT", help="The reason, for the record. No personal data.")
]


@app.command("list")
def list_operators(
    as_json: flags.Json = False, database_url: flags.Url = None, database_schema: flags.Schema = None
) -> None:
    """
    List who has which rights. Whoever owns the tables may do all, and is not in the list.

    [bold]Example[/]: packhorse operators list
    """
    from packhorse.console.compose import service_of
    from packhorse.console.operators.render import operator_json, operators_table
    from packhorse.console.output import tell, tell_json, terminal

    with service_of(options.settings_of(database_url, database_schema)) as service:
        found = service.operators.list()
    if as_json:
        tell_json({"operators": [operator_json(one) for one in found]})
    elif found:
        terminal().print(operators_table(found))
    else:
        tell("nobody has rights but whoever owns the tables")


@app.command()
def add(
    name: Name,
    role: RoleOf,
    of_user: OfUser = False,
    personal: Personal = False,
    edit: Edit = False,
    expires: Expires = None,
    why: Why = None,
    actor: options.ClaimedActor = None,
    as_json: flags.Json = False,
    database_url: flags.Url = None,
    database_schema: flags.Schema = None,
) -> None:
    """
    Give rights to a role of the database and its members, or to a user; for a name that has rights, these take the place of all of them.

    The role needs grants of the database too: `packhorse migrate sql --grants operator=NAME` prints them. A user needs none: a trusted
    proxy in front of the console signs them in, and the name is the one that it vouches for, to the letter.

    [bold]Example[/]
      packhorse operators add oncall --role operator
      packhorse operators add ann@example.org --user --role viewer
      packhorse operators add anna --role admin --personal --expires 90d --why "audit of January"
    """
    from packhorse.console.compose import service_of
    from packhorse.console.operators.model import Kind

    kind: Kind = Kind.USER if of_user else Kind.ROLE
    wanted = _wanted(kind, name, role, expires, personal=personal, edit=edit)
    with service_of(options.settings_of(database_url, database_schema), claimed=actor) as service:
        change = service.operators.add(wanted, why=why)
    _tell(change, as_json=as_json)
    if not change.may_connect:
        typer.echo(
            f"but the database refuses {name} what acts need: `packhorse migrate sql --grants {role.value}=ROLE` prints the "
            "grants",
            err=True,
        )


@app.command()
def token(
    name: Name,
    role: RoleOf,
    personal: Personal = False,
    edit: Edit = False,
    expires: Expires = None,
    renew: Annotated[
        bool,
        typer.Option("--renew", help="Instead of the token that the name has, which is void at once."),
    ] = False,
    why: Why = None,
    actor: options.ClaimedActor = None,
    as_json: flags.Json = False,
    database_url: flags.Url = None,
    database_schema: flags.Schema = None,
) -> None:
    """
    Make a token for somebody without a role of the database, and print it: once, alone on standard output.

    Only its hash is kept: a token that is lost is made anew with --renew. Its holder sets PACKHORSE_CONSOLE_TOKEN_FILE, or sends it
    to the API as a bearer token.

    [bold]Example[/]: packhorse operators token ci --role viewer --expires 90d > token
    """
    from packhorse.console.compose import service_of
    from packhorse.console.operators.model import Kind
    from packhorse.console.operators.render import change_json, change_line
    from packhorse.console.output import tell_json
    from packhorse.core.text import inert

    wanted = _wanted(Kind.TOKEN, name, role, expires, personal=personal, edit=edit)
    with service_of(options.settings_of(database_url, database_schema), claimed=actor) as service:
        made = service.operators.token(wanted, renew=renew, why=why)
    if as_json:
        tell_json({"token": made.token, **change_json(made.change)})
        return
    typer.echo(made.token)
    typer.echo(inert(change_line(made.change)) + "; this is the only time that it is shown", err=True)


@app.command()
def remove(
    name: Name,
    of_token: Annotated[
        bool, typer.Option("--token", help="The holder of a token, and not a role of the database.")
    ] = False,
    of_user: OfUser = False,
    why: Why = None,
    actor: options.ClaimedActor = None,
    as_json: flags.Json = False,
    database_url: flags.Url = None,
    database_schema: flags.Schema = None,
) -> None:
    """
    Take all rights away, from the next act on.

    [bold]Example[/]
      packhorse operators remove anna --why "left the team"
      packhorse operators remove ci --token
      packhorse operators remove ann@example.org --user
    """
    from packhorse.console.compose import service_of
    from packhorse.console.operators.model import Kind
    from packhorse.core.errors import UsageError

    if of_token and of_user:
        raise UsageError("--token and --user name different people; give one of them")
    kind: Kind = Kind.TOKEN if of_token else Kind.USER if of_user else Kind.ROLE
    with service_of(options.settings_of(database_url, database_schema), claimed=actor) as service:
        change = service.operators.remove(kind, name, why=why)
    _tell(change, as_json=as_json)


@app.command()
def me(
    as_json: flags.Json = False, database_url: flags.Url = None, database_schema: flags.Schema = None
) -> None:
    """
    Say who you are to this installation, what you may do, and by what: your role, one it is a member of, a token, or ownership.

    [bold]Example[/]: packhorse operators me
    """
    from packhorse.console.compose import service_of
    from packhorse.console.operators.render import me_json, me_sheet
    from packhorse.console.output import tell_json, terminal

    with service_of(options.settings_of(database_url, database_schema)) as service:
        found = service.operators.me()
    if as_json:
        tell_json(me_json(found))
    else:
        terminal().print(me_sheet(found))


def _wanted(
    kind: "Kind", name: str, role: RoleChoice, expires: str | None, *, personal: bool, edit: bool
) -> "Wanted":
    from packhorse.console.operators.model import Wanted
    from packhorse.core.rights import Role
    from packhorse.processor.durations import seconds_of

    lasts = None if expires is None else seconds_of(expires, what="--expires")
    return Wanted(kind=kind, name=name, role=Role(role.value), personal=personal, edit=edit, lasts=lasts)


def _tell(change: "Change", *, as_json: bool) -> None:
    from packhorse.console.operators.render import change_json, change_line
    from packhorse.console.output import tell, tell_json

    if as_json:
        tell_json(change_json(change))
    else:
        tell(change_line(change))
