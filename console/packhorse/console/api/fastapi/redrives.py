"""Routes: redrives of frozen sets."""

from typing import Annotated

from fastapi import APIRouter, Path, Query

from packhorse.console.api.fastapi.answers import JsonAnswer
from packhorse.console.api.fastapi.joints import Asking, needs
from packhorse.console.api.models.failures import WhyBody
from packhorse.console.api.models.redrives import (
    FrozenAnswer,
    MembersAnswer,
    MembersAsked,
    RedrivePreviewBody,
    RedriveProgressAnswer,
    RedrivesAnswer,
    RedrivesAsked,
)
from packhorse.console.redriving.render import frozen_json, redrive_json
from packhorse.core.rights import Right

router = APIRouter(prefix="/redrives", tags=["redrives"])
RedriveId = Annotated[int, Path(ge=1, le=2**53, description="The redrive's number, as its preview named it.")]


@router.get("", response_model=RedrivesAnswer, openapi_extra=needs(Right.SEE))
def redrives(service: Asking, asked: Annotated[RedrivesAsked, Query()]) -> JsonAnswer:
    """List redrives of sets, the newest first."""
    rows = service.redrives.page(before=asked.before, limit=asked.limit)
    return JsonAnswer({"redrives": [redrive_json(row) for row in rows]})


@router.post("", response_model=FrozenAnswer, openapi_extra=needs(Right.ACT))
def redrives_preview(service: Asking, body: RedrivePreviewBody) -> JsonAnswer:
    """
    Freeze the set that the filters mean now, and show what speaks for or against redriving it. Nothing is redriven.

    The ids and attempts are kept in the database for an hour: what is confirmed by the `id` is exactly what was previewed.
    """
    return JsonAnswer(
        frozen_json(service.redrives.preview(body.wanted(), body.how(), everything=body.everything))
    )


@router.get("/{redrive}", response_model=RedriveProgressAnswer, openapi_extra=needs(Right.SEE))
def redrive(service: Asking, redrive: RedriveId) -> JsonAnswer:
    """Show how far a redrive is: asked, sent and proved by an outcome are three different things."""
    return _shown(service, redrive)


@router.get("/{redrive}/members", response_model=MembersAnswer, openapi_extra=needs(Right.SEE))
def redrive_members(
    service: Asking, redrive: RedriveId, asked: Annotated[MembersAsked, Query()]
) -> JsonAnswer:
    """List the members of a set, in the order in which they are asked for, each with how it stands and why."""
    rows = service.redrives.members(redrive, state=asked.state, after=asked.after, limit=asked.limit)
    following = rows[-1].ordinal if len(rows) == asked.limit else None
    return JsonAnswer({"members": list(rows), "next": following})


@router.post("/{redrive}/run", response_model=RedriveProgressAnswer, openapi_extra=needs(Right.ACT))
def redrive_run(service: Asking, redrive: RedriveId, body: WhyBody) -> JsonAnswer:
    """Confirm a preview: exactly its set is redriven, once, in stages; the background runner of a console works on it."""
    service.redrives.confirm(redrive, why=body.why)
    return _shown(service, redrive)


@router.post("/{redrive}/pause", response_model=RedriveProgressAnswer, openapi_extra=needs(Right.ACT))
def redrive_pause(service: Asking, redrive: RedriveId, body: WhyBody) -> JsonAnswer:
    """Ask for no more members until it is resumed; what was asked for goes on."""
    service.redrives.pause(redrive, why=body.why)
    return _shown(service, redrive)


@router.post("/{redrive}/resume", response_model=RedriveProgressAnswer, openapi_extra=needs(Right.ACT))
def redrive_resume(service: Asking, redrive: RedriveId, body: WhyBody) -> JsonAnswer:
    """Go on with a redrive that is paused or halted; after a halt the stages begin small again."""
    service.redrives.resume(redrive, why=body.why)
    return _shown(service, redrive)


@router.post("/{redrive}/abort", response_model=RedriveProgressAnswer, openapi_extra=needs(Right.ACT))
def redrive_abort(service: Asking, redrive: RedriveId, body: WhyBody) -> JsonAnswer:
    """End a redrive for good, or throw a preview away; what was asked for goes on, the rest stays in quarantine."""
    service.redrives.abort(redrive, why=body.why)
    return _shown(service, redrive)


def _shown(service: Asking, redrive: int) -> JsonAnswer:
    row, progress = service.redrives.find(redrive)
    return JsonAnswer(redrive_json(row, progress))
