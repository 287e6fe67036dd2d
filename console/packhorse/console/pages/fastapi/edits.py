"""Pages: an edited copy of a message in quarantine, from the text of its payload over a preview to the act."""

from typing import Annotated, Literal
from uuid import UUID

from fastapi import APIRouter, Request
from fastapi.responses import Response
from pydantic import Field

from packhorse.console.api.fastapi.answers import problem_or_log
from packhorse.console.api.problem import Problem
from packhorse.console.pages.deciding import hidden_of
from packhorse.console.pages.editing import MOST, editable, edited_from, visible
from packhorse.console.pages.fastapi.answers import Desk, onward, page
from packhorse.console.pages.fastapi.joints import Asked, Asking, At, Form, Query, come_back, read
from packhorse.console.pages.fastapi.quarantined import Named, Ordered, Which, ordered
from packhorse.console.pages.resting import resting_at, whole_way
from packhorse.console.service import Service
from packhorse.core.errors import OwnershipLost, PackhorseError, UsageError

router = APIRouter(prefix="/quarantine/{message_id:uuid}/edit")
Payload = Annotated[str, Field(max_length=MOST * 4)]


class Written(Asked):
    """What somebody has written, and what is to be done with it: look at what it changes, or write on."""

    step: Literal["preview", "again"]
    payload: Payload


class Sent(Ordered):
    """The copy that was previewed, and the reason."""

    step: Literal["send"]
    payload: Payload


@router.get("")
def write(service: Asking, desk: At, query: Query, request: Request, message_id: UUID) -> Response:
    """Offer the payload as a text that can be changed."""
    which = read(Which, query)
    come_back(request, resting_at(message_id, which.group, which.topic))
    shown = service.quarantine.show(message_id, group=which.group, topic=which.topic, payload=True)
    named = Named(group=shown.message.group, topic=shown.message.topic)
    text = None if shown.payload is None else editable(shown.payload)
    if text is not None and len(text) > MOST:
        said: str | None = (
            f"the payload is longer than the {MOST} characters that a page lets one edit; on a command line: "
            f"packhorse quarantine edit {message_id} --payload FILE"
        )
        text = None
    else:
        said = shown.payload_said
    return _writing(desk, message_id, named, text, said=said)


@router.post("")
def go_on(
    service: Asking, desk: At, query: Query, form: Form, request: Request, message_id: UUID
) -> Response:
    """Show what the edited copy changes, let somebody write on, or send exactly what was shown."""
    named = read(Named, query)
    come_back(request, resting_at(message_id, named.group, named.topic))
    if form.get("step") == "send":
        return _send(service, named, read(Sent, form), message_id)
    written = read(Written, form)
    text = visible(written.payload)
    if written.step == "again":
        return _writing(desk, message_id, named, text)
    try:
        if len(text) > MOST:
            raise UsageError(f"the payload has {len(text)} characters; a page lets one edit {MOST} at most")
        edit = service.edits.preview(message_id, edited_from(text), group=named.group, topic=named.topic)
    except PackhorseError as error:
        # With what was written: nobody writes it twice because of a comma.
        return _writing(desk, message_id, named, text, problem=problem_or_log(error))
    return page(
        "quarantine-edit-preview.html",
        desk,
        room="/quarantine",
        edit=edit,
        text=text,
        hidden=hidden_of(edit.parent.order),
        action=resting_at(message_id, named.group, named.topic, "edit"),
        back=resting_at(message_id, named.group, named.topic),
    )


def _send(service: Service, named: Named, sent: Sent, message_id: UUID) -> Response:
    edit = service.edits.preview(message_id, edited_from(sent.payload), group=named.group, topic=named.topic)
    if edit.parent.order != ordered(named, sent, message_id):
        raise OwnershipLost(
            f"message {message_id} has moved since the preview; nothing was done, preview it again"
        )
    service.edits.send(edit, why=sent.why)
    return onward(whole_way(edit.id))


def _writing(
    desk: Desk,
    message_id: UUID,
    named: Named,
    text: str | None,
    *,
    said: str | None = None,
    problem: Problem | None = None,
) -> Response:
    return page(
        "quarantine-edit.html",
        desk,
        status=200 if problem is None else problem.status,
        room="/quarantine",
        message_id=str(message_id),
        named=named,
        text=text,
        said=said,
        problem=problem,
        action=resting_at(message_id, named.group, named.topic, "edit"),
        unmask=resting_at(message_id, named.group, named.topic, "unmask"),
        back=resting_at(message_id, named.group, named.topic),
    )
