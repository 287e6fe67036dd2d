"""Carry a redrive through at a terminal: preview, confirm, act, and tell facts as they come in."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from packhorse.console.compose import service_of
from packhorse.console.facts import Outcome
from packhorse.console.output import at, tell, tell_json, terminal
from packhorse.console.quarantine.redrive import DISCARD, Order, Preview
from packhorse.console.render import preview_json, preview_sheet, redrive_line
from packhorse.console.service import Service
from packhorse.console.settings import ConsoleSettings
from packhorse.console.truth.groups import GroupStatus, Redrive
from packhorse.core.acts import checked_why
from packhorse.core.clock import SYSTEM_CLOCK, Clock
from packhorse.schemas.asking import check_answerable, confirmed

OK, FAILED_AGAIN, UNPROVED = 0, 1, 7
_POLL_SECONDS = 0.2
Heard = Callable[[Redrive, str], None]
"""Takes a step of a redrive once it is a fact, and how the message stands then."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What the person asked for on the command line."""

    message_id: UUID
    why: str
    group: str | None
    topic: str | None
    yes: bool
    wait: float
    claimed: str | None
    as_json: bool


def run_redrive(request: Request, settings: ConsoleSettings) -> int:
    """
    Do what *request* asks and return the exit code.

    Raises:
        UnknownId: The message is not in quarantine.
        UsageError: It is there more than once; --why is empty; --json without --yes.
        OwnershipLost: Somebody has acted already, or since the preview.
    """
    with service_for_act(
        settings,
        why=request.why,
        yes=request.yes,
        claimed=request.claimed,
        as_json=request.as_json,
        act="redrive",
    ) as service:
        preview = service.quarantine.preview(request.message_id, group=request.group, topic=request.topic)
        actor = service.people.actor()
        if not request.as_json:
            tell_preview(preview, actor, why=request.why)
        if not request.yes:
            confirmed("redrive it?")
        asked_at = service.quarantine.redrive(preview.order, why=request.why)
        heard = _ignored if request.as_json else _told
        heard(Redrive.ASKED, f"at {at(asked_at)}")
        last = follow(service, preview.order, seconds=request.wait, heard=heard)
    if request.as_json:
        inbox = last.inbox
        answer = {
            "asked_at": asked_at,
            "actor": actor,
            "redrive": last.redrive,
            "standing": last.standing,
        }
        tell_json(answer | preview_json(preview) | {"outcome": inbox and inbox.outcome})
    elif not request.wait:
        tell(f"packhorse status {request.message_id} tells how it went")
    return _code(last, waited=request.wait > 0)


@contextmanager
def service_for_act(
    settings: ConsoleSettings, *, why: str, yes: bool, claimed: str | None, as_json: bool, act: str
) -> Iterator[Service]:
    """
    Hand out the service once what was typed for *act* is checked.

    Raises:
        UsageError: --why is empty; --json without --yes.
    """
    check_answerable(as_json=as_json, yes=yes, act=act)
    checked_why(why)
    with service_of(settings, claimed=claimed) as service:
        yield service


def tell_preview(preview: Preview, actor: str, *, why: str) -> None:
    """Print what an act on one message would do, and who will stand on the record with it."""
    terminal().print(preview_sheet(preview, show_key=False))
    tell("")
    tell(f"on the record as {actor}: {why.strip()}")


def discard_one(
    service: Service,
    message_id: UUID,
    place: tuple[str | None, str | None],
    *,
    why: str,
    asks: bool,
    told: bool,
) -> dict[str, Any]:
    """
    Give up one message and return what came of it; nothing is waited for.

    Raises:
        UnknownId, UsageError, OwnershipLost: As `run_redrive`.
    """
    preview = service.quarantine.preview(message_id, group=place[0], topic=place[1], act=DISCARD)
    actor = service.people.actor()
    if told:
        tell_preview(preview, actor, why=why)
    if asks:
        confirmed("discard it?")
    done = service.quarantine.discard(preview.order, why=why)
    if told:
        tell(
            f"discarded at {at(done)}; what waits behind it, if anything does, goes on when a processor of the group runs"
        )
    return {"discarded_at": done, "actor": actor} | preview_json(preview)


def follow(
    service: Service, order: Order, *, seconds: float, heard: Heard, clock: Clock = SYSTEM_CLOCK
) -> GroupStatus:
    """Return how the message stands once its redrive is proved, or after *seconds*; each step is *heard* once it is a fact."""
    deadline, told = clock.monotonic() + seconds, Redrive.ASKED
    pause = threading.Event()
    while True:
        now = service.truth.of_group(order.id, group=order.group, topic=order.topic)
        if now.redrive is not told:
            told = now.redrive
            heard(told, now.standing)
        if told is Redrive.PROVED or clock.monotonic() >= deadline:
            return now
        pause.wait(_POLL_SECONDS)


def _told(step: Redrive, standing: str) -> None:
    tell(f"{redrive_line(step)}: {standing}")


def _ignored(step: Redrive, standing: str) -> None:
    del step, standing


def _code(last: GroupStatus, *, waited: bool) -> int:
    if not waited:
        return OK
    if last.redrive is not Redrive.PROVED:
        return UNPROVED
    good = last.inbox is not None and last.inbox.outcome in {Outcome.DONE, Outcome.SKIPPED}
    return OK if good else FAILED_AGAIN
