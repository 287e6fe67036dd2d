"""`packhorse relay adopt`."""

from typing import Annotated

import typer

from packhorse.relay.orders import options
from packhorse.schemas.asking import confirmed
from packhorse.schemas.flags import Json, Schema, Url


def adopt(
    why: Annotated[
        str | None, typer.Option("--why", help="Why; kept in the audit. No personal data.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Count what would be done, and do nothing.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do it without asking.")] = False,
    actor: options.ActorName = None,
    database_url: Url = None,
    database_schema: Schema = None,
    as_json: Json = False,
) -> None:
    """
    Take on the outbox of another database server: a dump loaded elsewhere, a logical copy. Run it with every relay stopped, as the
    owner of the tables; a token's holder needs the right to administer.

    What is published stays so, everything else is published when the relay starts: rows get transaction ids of this server where
    theirs mean something else here, and the horizon begins anew. One transaction, on the record; writers of the outbox wait for it.

    [bold]Example[/]: packhorse relay adopt --dry-run
    """
    import json

    from packhorse.core.text import inert
    from packhorse.relay.identity.adoption import Adoption
    from packhorse.relay.identity.postgres import adopt as carry_out
    from packhorse.relay.settings import StatusSettings

    settings = StatusSettings.load({"database_url": database_url, "database_schema": database_schema})
    person = options.person_of(actor)
    url, schema = settings.database_url.get_secret_value(), settings.database_schema

    def show(found: Adoption | None) -> None:
        if as_json:
            typer.echo(
                json.dumps({"needed": False} if found is None else {"needed": True, **found.as_dict()})
            )
            return
        if found is None:
            typer.echo("nothing to adopt: the relay can go on from the position as it is")
            return
        for name, text in found.lines():
            typer.echo(f"{name:<10} {inert(text)}")

    if dry_run or not yes:
        found = carry_out(url, schema, person=person, dry_run=True)
        if dry_run or found is None:
            show(found)
            return
        if not as_json:
            show(found)
        confirmed("Adopt it? Writers of the outbox wait meanwhile.", err=True)
    show(carry_out(url, schema, person=person, why=why))
