"""`packhorse relay republish`."""

from typing import Annotated

import typer

from packhorse.relay.orders import options
from packhorse.schemas.flags import Json, Namespace, Schema, Url


def republish(
    *,
    first: Annotated[
        str,
        typer.Option("--from", metavar="SEQ|TIME", help="First row: a seq, or a time with its zone."),
    ],
    last: Annotated[
        str | None,
        typer.Option("--to", metavar="SEQ|TIME", help="Last row; without it up to where the relay is."),
    ] = None,
    topic: Annotated[
        str | None, typer.Option("--topic", metavar="NAME", help="The topic; needs the namespace.")
    ] = None,
    aggregatetype: Annotated[
        str | None, typer.Option("--aggregatetype", metavar="NAME", help="Or the rows' aggregate type.")
    ] = None,
    rate: options.Rate = None,
    why: options.Why = None,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run", help="Count what would be sent, and do nothing; exit 1 when something is in the way."
        ),
    ] = False,
    yes: options.Yes = False,
    wait: options.Wait = 0,
    actor: options.ActorName = None,
    database_url: Url = None,
    database_schema: Schema = None,
    namespace: Namespace = None,
    as_json: Json = False,
) -> None:
    """
    Send a range of the outbox again to its topic, in order; for a topic that was lost or rebuilt.

    The topic's new rows wait until it is through, all other topics flow. Consumers with an inbox drop what they know.
    For a lost topic: stop every relay, make the topic anew (`packhorse topics apply`), order this, start the relays. Then
    what arrives first stands in order. The order is carried out by the relay's owner; discarded rows stay out.

    [bold]Example[/]
      packhorse relay republish --topic airline.aircraft --from 2026-01-02T00:00:00Z --dry-run
      packhorse relay republish --aggregatetype aircraft --from 4711 --to 9000 --why "topic lost" --rate 2000 --wait 600
    """
    import json

    from packhorse.core.acts import checked_why
    from packhorse.relay.orders.republish import Wanted, checked, edge_from

    options.checked(as_json=as_json, yes=yes or dry_run)
    reason = None if why is None else checked_why(why)
    wanted = Wanted(
        aggregatetype=_aggregatetype(topic, aggregatetype, database_url, database_schema, namespace),
        first=edge_from(first, "--from"),
        last=None if last is None else edge_from(last, "--to"),
        rate=rate,
    )
    with options.orders_of(database_url, database_schema, counting=True) as orders:
        found = orders.found(wanted)
        if dry_run and as_json:
            typer.echo(json.dumps(found.as_dict()))
        elif not as_json:
            options.tell(found.lines())
        if dry_run:
            for obstacle in found.obstacles():
                options.tell([("but", obstacle)] if not as_json else [])
            raise typer.Exit(1 if found.obstacles() else 0)
        checked(found)
        options.confirmed("Send it again?", yes=yes)
        person = options.person_of(actor)
        ids = orders.republish(found, person=person, why=reason)
        code = options.followed(orders, orders.named(ids), wait=wait, as_json=as_json)
        if as_json:
            last_seen = [view.as_dict() for view in orders.named(ids)]
            typer.echo(json.dumps({**found.as_dict(), "holds": last_seen}))
        raise typer.Exit(code)


def _aggregatetype(
    topic: str | None, aggregatetype: str | None, url: str | None, schema: str | None, namespace: str | None
) -> str:
    from packhorse.core.errors import UsageError
    from packhorse.relay.orders.republish import aggregatetype_of
    from packhorse.relay.settings import TopicSettings

    if (topic is None) == (aggregatetype is None):
        raise UsageError("give one of --topic and --aggregatetype")
    if aggregatetype is not None:
        return aggregatetype
    assert topic is not None
    settings = TopicSettings.load({"database_url": url, "database_schema": schema, "namespace": namespace})
    return aggregatetype_of(topic, settings.namespace)
