"""`packhorse quarantine edit`: send an edited copy, which takes a message's place."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from packhorse.console import options
from packhorse.schemas import flags
from packhorse.schemas.asking import check_answerable, confirmed

if TYPE_CHECKING:
    from packhorse.console.redriving.editing import Edit


def edit(
    *,
    message_id: options.MessageId,
    payload: Annotated[
        Path, typer.Option("--payload", metavar="FILE", help="The whole edited payload, as JSON.")
    ],
    why: options.Why,
    group: options.Group = None,
    topic: options.Topic = None,
    yes: options.Yes = False,
    actor: options.ClaimedActor = None,
    as_json: flags.Json = False,
    database_url: flags.Url = None,
    database_schema: flags.Schema = None,
    registry_url: flags.Registry = None,
) -> None:
    """
    Send an edited copy of one quarantined message, on the record: a new message that names its parent and takes its place.

    The file holds the whole payload as `quarantine show --payload` prints it: times in ISO 8601, bytes in base64, decimals as
    text. Masked personal fields are refused; `quarantine show --unmask` shows them to who may see them. It is encoded by the schema
    that the parent was written with. The parent is discarded and keeps its bytes; what waits behind it runs after the copy. A
    tombstone, or a message that can't be decoded, can't be edited. It needs a right of its own; --json needs --yes.

    [bold]Example[/]
      packhorse quarantine edit 019b76da-a800-7000-8000-000000000000 --payload fixed.json --why "the amount had a comma"
    """
    from packhorse.console.compose import service_of
    from packhorse.console.output import tell, tell_json
    from packhorse.core.acts import checked_why

    check_answerable(as_json=as_json, yes=yes, act="send")
    checked_why(why)
    settings = options.settings_of(database_url, database_schema, registry=registry_url)
    value = _read(payload)
    with service_of(settings, claimed=actor) as service:
        found = service.edits.preview(message_id, value, group=group, topic=topic)
        if not as_json:
            _show(found)
            tell(f"on the record as {service.people.actor()}: {why.strip()}")
        if not yes:
            confirmed("send it?")
        at = service.edits.send(found, why=why)
    if as_json:
        told = {"id": found.id, "parent": message_id, "group": found.parent.group, "fields": found.changed}
        tell_json(told | {"recorded_at": at, "warnings": found.warnings})
    else:
        tell(f"message {found.id} stands in its place; packhorse status {found.id} tells how it goes")


def _show(found: "Edit") -> None:
    from packhorse.console.output import tell

    tell(f"message {found.id} takes the place of {found.parent.id} in group {found.parent.group}")
    tell(f"fields that differ: {', '.join(found.changed)}")
    for text in found.warnings:
        tell(f"  {text}")


def _read(path: Path) -> object:
    import json

    from packhorse.core.errors import UsageError

    try:
        found: object = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"--payload {path}: {error.strerror}") from None
    except ValueError:
        raise UsageError(
            f"--payload {path} holds no JSON; take what `packhorse quarantine show --payload --json` prints"
        ) from None
    return found
