"""`packhorse relay verify`."""

from typing import Annotated

import typer

from packhorse.schemas.flags import Broker, Json, Namespace, Schema, Url


def verify(
    since: Annotated[
        str | None,
        typer.Option(
            "--since",
            metavar="TIME",
            help="From when, ISO 8601, UTC if it names no zone; without it: the last save before the server changed.",
        ),
    ] = None,
    until: Annotated[
        str | None, typer.Option("--until", metavar="TIME", help="Up to when; without it: now.")
    ] = None,
    topic: Annotated[
        list[str] | None, typer.Option("--topic", help="A topic; may be repeated. Without it: all.")
    ] = None,
    listed: Annotated[
        int, typer.Option("--list", min=0, max=1_000_000, help="Ids to list of each kind.")
    ] = 20,
    database_url: Url = None,
    database_schema: Schema = None,
    kafka_bootstrap_servers: Broker = None,
    namespace: Namespace = None,
    as_json: Json = False,
) -> None:
    """
    Compare the outbox with its topics: messages that were published and are gone from the database, rows that count as published and
    are missing on their topic; exit 1 when there are any.

    Reads only, but for a temporary table of ids. What retention has taken on either side is counted apart.

    [bold]Example[/]: packhorse relay verify --since 2026-05-04T10:00Z
    """
    import json

    from packhorse.core.clock import SYSTEM_CLOCK
    from packhorse.core.text import inert
    from packhorse.relay.settings import VerifySettings
    from packhorse.relay.verify.compare import compare, default_since
    from packhorse.relay.verify.kafka import KafkaTopics
    from packhorse.relay.verify.model import Question
    from packhorse.relay.verify.postgres import PostgresLedger
    from packhorse.relay.verify.times import Told, time_from

    settings = VerifySettings.load(
        {
            "database_url": database_url,
            "database_schema": database_schema,
            "kafka_bootstrap_servers": kafka_bootstrap_servers,
            "namespace": namespace,
        }
    )
    password = settings.kafka_sasl_password
    with (
        PostgresLedger(settings.database_url.get_secret_value(), settings.database_schema) as ledger,
        KafkaTopics(
            settings.kafka_bootstrap_servers,
            properties=settings.kafka_properties,
            sasl_password=None if password is None else password.get_secret_value(),
            clock=SYSTEM_CLOCK,
        ) as topics,
    ):
        question = Question(
            since=default_since(ledger.start()) if since is None else time_from(since, flag="--since"),
            until=None if until is None else time_from(until, flag="--until"),
            namespace=settings.namespace,
            topics=tuple(topic or ()),
            listed=listed,
        )
        report = compare(question, ledger, topics, progress=Told(SYSTEM_CLOCK.monotonic))
    if as_json:
        typer.echo(json.dumps(report.as_dict()))
    else:
        for line in report.lines():
            typer.echo(inert(line))
    if not report.agrees:
        raise typer.Exit(1)
