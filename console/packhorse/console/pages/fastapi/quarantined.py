"""Pages: one message in quarantine, and acts on it: exactly what was previewed, once, on the record."""

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Request
from fastapi.responses import Response
from pydantic import BeforeValidator

from packhorse.console.api.models.base import Count, Moment, Name, Why
from packhorse.console.pages.deciding import offer_of, restore_offer, unmask_offer
from packhorse.console.pages.fastapi.answers import Desk, onward, page
from packhorse.console.pages.fastapi.joints import Asked, Asking, At, Form, Query, come_back, read
from packhorse.console.pages.resting import resting_at, whole_way
from packhorse.console.quarantine.redrive import DISCARD, REDRIVE, Order
from packhorse.console.quarantine.restoring.deciding import RestoreOrder
from packhorse.console.quarantine.service import Shown
from packhorse.console.service import Service
from packhorse.core.errors import OwnershipLost

router = APIRouter(prefix="/quarantine/{message_id:uuid}")


class Which(Asked):
    """Which of several messages of the id is meant."""

    group: Name | None = None
    topic: Name | None = None


class Looked(Which):
    """The same, and whether its key is shown."""

    show_key: bool = False


class Named(Asked):
    """Exactly one message of the id."""

    group: Name
    topic: Name


class Ordered(Asked):
    """What a preview gives back to the act, besides what its address names, and the reason."""

    attempt: Count
    redrives: Count
    quarantined_at: Moment
    why: Why


class Restored(Ordered):
    """The same of a restoring; `out_of_order` is ticked by whoever knows what that means."""

    discarded_at: Moment | None = None
    ordered: bool
    out_of_order: Annotated[bool, BeforeValidator(lambda value: value == "yes")] = False


class Unmasked(Asked):
    """Why somebody has to see what the schema marks personal."""

    why: Why


@router.get("")
def message(service: Asking, desk: At, query: Query, message_id: UUID) -> Response:
    """Show one message: why it stopped, what it holds, masked, what stands around it, and who has acted."""
    asked = read(Looked, query)
    shown = service.quarantine.show(message_id, group=asked.group, topic=asked.topic, payload=True)
    return _page(desk, shown, show_key=asked.show_key)


@router.get("/unmask")
def offer_to_unmask(desk: At, query: Query, message_id: UUID) -> Response:
    """Say what it means to see a message with nothing masked."""
    which = read(Which, query)
    offer = unmask_offer(message_id, which.group, which.topic, may=desk.may_see_personal)
    return page("act.html", desk, room="/quarantine", offer=offer)


@router.post("/unmask")
def unmask(
    service: Asking, desk: At, query: Query, form: Form, request: Request, message_id: UUID
) -> Response:
    """Show one message as it is, once that is on record; the answer to this form is the only place where it stands."""
    which = read(Which, query)
    come_back(request, resting_at(message_id, which.group, which.topic))
    shown = service.quarantine.unmask(
        message_id, group=which.group, topic=which.topic, why=read(Unmasked, form).why
    )
    return _page(desk, shown, show_key=True)


@router.get("/redrive")
def offer_to_redrive(service: Asking, desk: At, query: Query, request: Request, message_id: UUID) -> Response:
    """Say what a redrive of the message does."""
    return _offered(service, desk, query, request, message_id, REDRIVE)


@router.get("/discard")
def offer_to_discard(service: Asking, desk: At, query: Query, request: Request, message_id: UUID) -> Response:
    """Say what a discard of the message does."""
    return _offered(service, desk, query, request, message_id, DISCARD)


@router.post("/redrive")
def redrive(service: Asking, query: Query, form: Form, request: Request, message_id: UUID) -> Response:
    """Ask for the redrive that was previewed; the page that it leads to tells when it is sent, and when proved."""
    order, why = _ordered(query, form, request, message_id)
    service.quarantine.redrive(order, why=why)
    return onward(whole_way(order.id, order.group, order.topic))


@router.post("/discard")
def discard(service: Asking, query: Query, form: Form, request: Request, message_id: UUID) -> Response:
    """Give up the message that was previewed."""
    order, why = _ordered(query, form, request, message_id)
    service.quarantine.discard(order, why=why)
    return onward(whole_way(order.id, order.group, order.topic))


@router.get("/restore")
def offer_to_restore(service: Asking, desk: At, query: Query, request: Request, message_id: UUID) -> Response:
    """Say what it means to take a discarded message back, and which later messages of its key have run."""
    which = read(Which, query)
    come_back(request, resting_at(message_id, which.group, which.topic))
    preview = service.restoring.preview(message_id, group=which.group, topic=which.topic)
    return page(
        "quarantine-restore.html",
        desk,
        room="/quarantine",
        offer=restore_offer(preview, may=desk.may_act),
        preview=preview,
    )


@router.post("/restore")
def restore(service: Asking, query: Query, form: Form, request: Request, message_id: UUID) -> Response:
    """Take back the message that was previewed, unless it or its key has moved since."""
    named, given = read(Named, query), read(Restored, form)
    come_back(request, resting_at(message_id, named.group, named.topic))
    order = RestoreOrder(
        id=message_id,
        **named.model_dump(),
        **given.model_dump(exclude={"why", "out_of_order"}),
    )
    preview = service.restoring.preview(message_id, group=named.group, topic=named.topic)
    if preview.order != order:
        raise OwnershipLost(
            f"message {message_id} of group {named.group} has moved since the preview; nothing was done, preview it again"
        )
    service.restoring.restore(preview, why=given.why, out_of_order=given.out_of_order)
    return onward(whole_way(message_id, named.group, named.topic))


def ordered(named: Named, given: Ordered, message_id: UUID) -> Order:
    """Return the order that a preview's form gives back."""
    return Order(id=message_id, **named.model_dump(), **given.model_dump(include=_OF_PREVIEW))


_OF_PREVIEW = {"attempt", "redrives", "quarantined_at"}


def _ordered(
    query: dict[str, str], form: dict[str, str], request: Request, message_id: UUID
) -> tuple[Order, str]:
    named = read(Named, query)
    come_back(request, resting_at(message_id, named.group, named.topic))
    given = read(Ordered, form)
    return ordered(named, given, message_id), given.why


def _offered(
    service: Service, desk: Desk, query: dict[str, str], request: Request, message_id: UUID, act: str
) -> Response:
    which = read(Which, query)
    come_back(request, resting_at(message_id, which.group, which.topic))
    preview = service.quarantine.preview(message_id, group=which.group, topic=which.topic, act=act)
    return page("act.html", desk, room="/quarantine", offer=offer_of(preview, may=desk.may_act))


def _page(desk: Desk, shown: Shown, *, show_key: bool) -> Response:
    message = shown.message
    return page(
        "quarantine-message.html",
        desk,
        room="/quarantine",
        shown=shown,
        show_key=show_key,
        way=whole_way(message.id, message.group, message.topic),
    )
