"""`packhorse explain`: in words, where a message or a key stands, why, what comes next and what a person can do."""

from typing import TYPE_CHECKING, Annotated
from uuid import UUID

import typer

from packhorse.console import options
from packhorse.schemas import flags

if TYPE_CHECKING:
    from packhorse.console.service import Service
    from packhorse.console.truth.explanation import Explanation

app = typer.Typer(pretty_exceptions_enable=False, rich_markup_mode="rich")

UNKNOWN = 6
"""Exit code: the id, or the group's topic, is not known here."""


@app.command()
def explain(
    message_id: Annotated[UUID | None, typer.Argument(metavar="[ID]", help="The message's id.")] = None,
    group: Annotated[str | None, typer.Option("--group", help="Of a key: the consumer group.")] = None,
    topic: Annotated[str | None, typer.Option("--topic", help="Of a key: its source topic.")] = None,
    key: Annotated[str | None, typer.Option("--key", help="The key, as text, instead of an id.")] = None,
    key_hex: options.KeyHex = None,
    key_hash: Annotated[
        str | None, typer.Option("--key-hash", help="The key as the tables name it, instead of --key.")
    ] = None,
    search: Annotated[
        bool,
        typer.Option("--search/--no-search", help="Look into the topic where no delivery is known."),
    ] = True,
    as_json: flags.Json = False,
    database_url: flags.Url = None,
    database_schema: flags.Schema = None,
    kafka_bootstrap_servers: flags.Broker = None,
    namespace: flags.Namespace = None,
) -> None:
    """
    Say in words where one message stands and why, what it waits for, what comes next and when, and what you can do.

    Commands are printed ready to be typed. Times are those of this machine's zone, and UTC. With --group, --topic and --key the
    question is about a key: whether it is parked or paused, behind which head, and how many messages wait. No key is shown.

    Exit code 0 when the id (or the group's topic) is known in this database, 6 when it is not.

    [bold]Example[/]
      packhorse explain 019b76da-a800-7000-8000-000000000000
      packhorse explain --group figures --topic airline.aircraft --key N14228
    """
    from packhorse.console.compose import service_of
    from packhorse.console.output import tell_json, terminal
    from packhorse.console.truth.render import explanation_json, explanation_sheet

    asked = _checked(message_id, group, topic, options.key_of(key, key_hex), key_hash)
    settings = options.settings_of(
        database_url, database_schema, broker=kafka_bootstrap_servers, namespace=namespace
    )
    with service_of(settings) as service:
        found = _explained(service, message_id, asked, search=search)
    if as_json:
        tell_json(explanation_json(found))
    else:
        terminal().print(explanation_sheet(found))
    if not found.known:
        raise typer.Exit(UNKNOWN)


def _explained(
    service: "Service", message_id: UUID | None, asked: tuple[str, str, str] | None, *, search: bool
) -> "Explanation":
    from packhorse.core.clock import SYSTEM_CLOCK

    if message_id is not None:
        return service.truth.explain(message_id, search=search, local=SYSTEM_CLOCK.local)
    assert asked is not None
    return service.truth.explain_key(*asked, local=SYSTEM_CLOCK.local)


def _checked(
    message_id: UUID | None, group: str | None, topic: str | None, key: bytes | None, key_hash: str | None
) -> tuple[str, str, str] | None:
    """Return group, topic and hash of the key that is asked about; None: an id is."""
    from packhorse.core.errors import UsageError
    from packhorse.processor.record import key_hash as hash_of

    if message_id is not None:
        if (group, topic, key, key_hash) != (None, None, None, None):
            raise UsageError("an id and a key are two questions: give an ID, or --group, --topic and --key")
        return None
    hashed = key_hash if key is None else hash_of(key)
    if group is None or topic is None or hashed is None or (key is not None and key_hash is not None):
        raise UsageError("give an ID, or --group, --topic and one of --key and --key-hash")
    return group, topic, hashed
