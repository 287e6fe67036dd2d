"""Flags that commands of several parts share: the systems underneath, and how to print."""

from typing import Annotated

import typer

_SETTINGS = "Settings"

Url = Annotated[
    str | None,
    typer.Option(
        "--database-url",
        metavar="URL",
        help="Where the database is, without a password. [dim]PACKHORSE_DATABASE_URL[/]",
        rich_help_panel=_SETTINGS,
    ),
]
Schema = Annotated[
    str | None,
    typer.Option(
        "--database-schema",
        metavar="NAME",
        help="Database schema of the tables. [dim]PACKHORSE_DATABASE_SCHEMA[/]",
        rich_help_panel=_SETTINGS,
    ),
]
Broker = Annotated[
    str | None,
    typer.Option(
        "--kafka-bootstrap-servers",
        metavar="HOST:PORT",
        help="Where the broker is. [dim]PACKHORSE_KAFKA_BOOTSTRAP_SERVERS[/]",
        rich_help_panel=_SETTINGS,
    ),
]
Registry = Annotated[
    str | None,
    typer.Option(
        "--registry-url",
        metavar="URL",
        help="Where the schema registry is. [dim]PACKHORSE_REGISTRY_URL[/]",
        rich_help_panel=_SETTINGS,
    ),
]
Namespace = Annotated[
    str | None,
    typer.Option(
        "--namespace",
        metavar="NAME",
        help="First part of the topics' names. [dim]PACKHORSE_NAMESPACE[/]",
        rich_help_panel=_SETTINGS,
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
