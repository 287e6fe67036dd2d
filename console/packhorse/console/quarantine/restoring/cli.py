"""`packhorse quarantine restore`: take discarded messages back, while their bytes are kept."""

from collections.abc import Callable
from typing import Annotated, Any
from uuid import UUID

import typer

from packhorse.console import options
from packhorse.console.service import Service
from packhorse.core.errors import PackhorseError
from packhorse.schemas import flags
from packhorse.schemas.asking import check_answerable, confirmed, typed

FAILED = 1
"""Exit code: of several messages one was not acted on, or more."""
MessageIds = Annotated[list[UUID], typer.Argument(metavar="ID...", help="The messages' ids.")]


def restore(
    message_ids: MessageIds,
    *,
    why: options.Why,
    group: options.Group = None,
    topic: options.Topic = None,
    out_of_order: Annotated[
        bool,
        typer.Option("--out-of-order", help="Also where later messages of its key have run, or may have."),
    ] = False,
    yes: options.Yes = False,
    actor: options.ClaimedActor = None,
    as_json: flags.Json = False,
    database_url: flags.Url = None,
    database_schema: flags.Schema = None,
    kafka_bootstrap_servers: flags.Broker = None,
) -> None:
    """
    Take discarded messages back into quarantine, on the record: preview, confirm, then exactly that, once.

    It can be done as long as the bytes are kept: PACKHORSE_PROCESSOR_DISCARDED_DAYS, 90 days as a rule. Where order
    binds the message, what has run of its key since is listed from the topic, and its key waits behind it again; a message that
    takes effect out of order needs the words typed, or --out-of-order. Each message stands for itself: what is refused for one
    keeps nothing from the others.

    [bold]Example[/]
      packhorse quarantine restore 019b76da-a800-7000-8000-000000000000 --why "it was needed after all"
    """
    from packhorse.console.compose import service_of

    check_answerable(as_json=as_json, yes=yes, act="restore")
    settings = options.settings_of(database_url, database_schema, broker=kafka_bootstrap_servers)
    with service_of(settings, claimed=actor) as service:

        def one(message_id: UUID) -> dict[str, Any]:
            return _restored(
                service, message_id, (group, topic), why, asks=not yes, told=not as_json, known=out_of_order
            )

        each_alone(message_ids, one, as_json=as_json)


def each_alone(message_ids: list[UUID], act: Callable[[UUID], dict[str, Any]], *, as_json: bool) -> None:
    """
    Do *act* for each of *message_ids* by itself and tell what came of it; exit with FAILED when one of several was refused.

    Of one alone the error is raised as it is, with the exit code of its own.
    """
    from packhorse.console.output import tell, tell_json

    if len(message_ids) == 1:
        answer = act(message_ids[0])
        if as_json:
            tell_json(answer)
        return
    results: list[dict[str, Any]] = []
    for message_id in dict.fromkeys(message_ids):
        try:
            results.append({"id": message_id, "done": True} | act(message_id))
        except PackhorseError as error:
            results.append({"id": message_id, "done": False, "error": str(error)})
            if not as_json:
                tell(f"not done: {error}", err=True)
    if as_json:
        tell_json({"results": results})
    if not all(result["done"] for result in results):
        raise typer.Exit(FAILED)


def _restored(
    service: Service,
    message_id: UUID,
    place: tuple[str | None, str | None],
    why: str,
    *,
    asks: bool,
    told: bool,
    known: bool,
) -> dict[str, Any]:
    from packhorse.console.output import at, tell, terminal
    from packhorse.console.quarantine.restoring.deciding import WORDS, check_confirmed
    from packhorse.console.quarantine.restoring.render import restore_json, restore_sheet

    preview = service.restoring.preview(message_id, group=place[0], topic=place[1])
    if told:
        terminal().print(restore_sheet(preview))
    if preview.out_of_order and asks and not known:
        known = typed(WORDS, f'type "{WORDS}" to restore it all the same')
    elif asks:
        confirmed("restore it?")
    check_confirmed(preview, out_of_order=known)
    done = service.restoring.restore(preview, why=why, out_of_order=known)
    if told:
        tell(f"restored at {at(done)}; it waits in quarantine: redrive it, or discard it again")
    return {"restored_at": done, "actor": service.people.actor()} | restore_json(preview)
