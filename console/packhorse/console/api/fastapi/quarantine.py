"""Routes: the quarantine, and acts on one message."""

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Query

from packhorse.console.api.fastapi.answers import JsonAnswer
from packhorse.console.api.fastapi.joints import Asking, behind, checked_order, needs
from packhorse.console.api.models.quarantine import (
    ActBody,
    DiscardAnswer,
    EditAnswer,
    EditBody,
    EditPreviewAnswer,
    EditPreviewBody,
    PageAnswer,
    PageAsked,
    PreviewAnswer,
    PreviewBody,
    RedriveAnswer,
    ShowAsked,
    ShownAnswer,
    UnmaskBody,
)
from packhorse.console.quarantine.page_render import page_json
from packhorse.console.quarantine.pages import position_from
from packhorse.console.render import preview_json, shown_json
from packhorse.core.errors import OwnershipLost
from packhorse.core.rights import Right

router = APIRouter(prefix="/quarantine", tags=["quarantine"])


@router.get("", response_model=PageAnswer, openapi_extra=needs(Right.SEE))
def quarantine_list(service: Asking, asked: Annotated[PageAsked, Query()]) -> JsonAnswer:
    """List what is in quarantine, the newest first, in pages."""
    after = behind(asked.after, position_from)
    page = service.quarantine.page(asked.filter(), after=after, limit=asked.limit)
    return JsonAnswer(page_json(page, show_key=asked.show_key))


@router.get("/{message_id}", response_model=ShownAnswer, openapi_extra=needs(Right.SEE))
def quarantine_show(service: Asking, message_id: UUID, asked: Annotated[ShowAsked, Query()]) -> JsonAnswer:
    """Show one message in quarantine: where it came from, headers, attempts, reason, and who acted."""
    shown = service.quarantine.show(message_id, group=asked.group, topic=asked.topic, payload=asked.payload)
    return JsonAnswer(shown_json(shown, show_key=asked.show_key))


@router.post("/{message_id}/unmask", response_model=ShownAnswer, openapi_extra=needs(Right.PERSONAL))
def quarantine_unmask(service: Asking, message_id: UUID, body: UnmaskBody) -> JsonAnswer:
    """Show one message with payload and headers as they are; that is on record before anything of it is decoded."""
    shown = service.quarantine.unmask(message_id, group=body.group, topic=body.topic, why=body.why)
    return JsonAnswer(shown_json(shown, show_key=body.show_key))


@router.post("/{message_id}/preview", response_model=PreviewAnswer, openapi_extra=needs(Right.SEE))
def quarantine_preview(service: Asking, message_id: UUID, body: PreviewBody) -> JsonAnswer:
    """Say what a redrive or a discard of one message would do; its `order` goes into the act. Changes nothing."""
    preview = service.quarantine.preview(message_id, group=body.group, topic=body.topic, act=body.act)
    return JsonAnswer(preview_json(preview))


@router.post("/{message_id}/redrive", response_model=RedriveAnswer, openapi_extra=needs(Right.ACT))
def quarantine_redrive(service: Asking, message_id: UUID, body: ActBody) -> JsonAnswer:
    """
    Send one quarantined message back to its handler: exactly what was previewed, once, on the record.

    The answer says that the redrive is asked for, which is not yet sent and not yet proved by an outcome.
    """
    order = checked_order(body.order.order(), message_id)
    actor = service.people.actor()
    at = service.quarantine.redrive(order, why=body.why)
    return JsonAnswer({"state": "asked", "asked_at": at, "actor": actor})


@router.post("/{message_id}/discard", response_model=DiscardAnswer, openapi_extra=needs(Right.ACT))
def quarantine_discard(service: Asking, message_id: UUID, body: ActBody) -> JsonAnswer:
    """Give up one quarantined message: exactly what was previewed, once, on the record; its bytes stay for a while."""
    order = checked_order(body.order.order(), message_id)
    actor = service.people.actor()
    at = service.quarantine.discard(order, why=body.why)
    return JsonAnswer({"state": "discarded", "discarded_at": at, "actor": actor})


@router.post("/{message_id}/edit/preview", response_model=EditPreviewAnswer, openapi_extra=needs(Right.EDIT))
def quarantine_edit_preview(service: Asking, message_id: UUID, body: EditPreviewBody) -> JsonAnswer:
    """Say which fields an edited copy would change; its `order` goes into the act. Changes nothing."""
    edit = service.edits.preview(message_id, body.payload, group=body.group, topic=body.topic)
    return JsonAnswer({"order": edit.parent.order, "fields": edit.changed, "warnings": edit.warnings})


@router.post("/{message_id}/edit", response_model=EditAnswer, openapi_extra=needs(Right.EDIT))
def quarantine_edit(service: Asking, message_id: UUID, body: EditBody) -> JsonAnswer:
    """Send an edited copy, on the record: a new message that names its parent and takes its place. The parent is discarded."""
    order = checked_order(body.order.order(), message_id)
    edit = service.edits.preview(message_id, body.payload, group=order.group, topic=order.topic)
    if edit.parent.order != order:
        raise OwnershipLost(
            f"message {message_id} has moved since the preview; nothing was done, preview it again"
        )
    at = service.edits.send(edit, why=body.why)
    return JsonAnswer(
        {
            "id": edit.id,
            "parent": message_id,
            "group": order.group,
            "fields": edit.changed,
            "recorded_at": at,
            "warnings": edit.warnings,
        }
    )
