"""Routes: discarded messages that are taken back, and what is kept of a person, erased."""

from uuid import UUID

from fastapi import APIRouter

from packhorse.console.api.fastapi.answers import JsonAnswer
from packhorse.console.api.fastapi.joints import Asking, checked_order, needs
from packhorse.console.api.models.restoring import (
    PurgeAnswer,
    PurgeBody,
    RestoreAnswer,
    RestoreBody,
    RestorePreviewAnswer,
    RestorePreviewBody,
    SubjectBody,
)
from packhorse.console.purging.render import report_json
from packhorse.console.quarantine.restoring.render import restore_json
from packhorse.core.errors import OwnershipLost
from packhorse.core.rights import Right

router = APIRouter()


@router.post(
    "/quarantine/{message_id}/restore/preview",
    tags=["quarantine"],
    response_model=RestorePreviewAnswer,
    openapi_extra=needs(Right.SEE),
)
def quarantine_restore_preview(service: Asking, message_id: UUID, body: RestorePreviewBody) -> JsonAnswer:
    """Say what restoring a discarded message would do, and which later messages of its key have run. Changes nothing."""
    return JsonAnswer(restore_json(service.restoring.preview(message_id, group=body.group, topic=body.topic)))


@router.post(
    "/quarantine/{message_id}/restore",
    tags=["quarantine"],
    response_model=RestoreAnswer,
    openapi_extra=needs(Right.ACT),
)
def quarantine_restore(service: Asking, message_id: UUID, body: RestoreBody) -> JsonAnswer:
    """Take a discarded message back into quarantine: exactly what was previewed, once, on the record."""
    order = checked_order(body.order.order(), message_id)
    preview = service.restoring.preview(message_id, group=order.group, topic=order.topic)
    if preview.order != order:
        raise OwnershipLost(
            f"message {message_id} of group {order.group} has moved since the preview; nothing was done, preview it again"
        )
    actor = service.people.actor()
    at = service.restoring.restore(preview, why=body.why, out_of_order=body.out_of_order)
    return JsonAnswer({"state": "restored", "restored_at": at, "actor": actor})


@router.post(
    "/purge/preview", tags=["purge"], response_model=PurgeAnswer, openapi_extra=needs(Right.ADMINISTER)
)
def purge_preview(service: Asking, body: SubjectBody) -> JsonAnswer:
    """Count what there is of a person, table by table, and name topics that may hold more. Changes nothing."""
    return JsonAnswer(report_json(service.purging.preview(body.wanted())))


@router.post("/purge", tags=["purge"], response_model=PurgeAnswer, openapi_extra=needs(Right.ADMINISTER))
def purge(service: Asking, body: PurgeBody) -> JsonAnswer:
    """
    Erase what the tables keep of a person, on the record without a name. It can't be undone; broken off, ask again.

    Erasers that applications declare are not run here, since that takes their code: `packhorse purge --app` runs them too.
    """
    return JsonAnswer(report_json(service.purging.purge(body.wanted(), why=body.why)))
