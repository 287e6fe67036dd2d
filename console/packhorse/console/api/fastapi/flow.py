"""Routes: how everything flows, pauses, and explanations of keys."""

from typing import Annotated

from fastapi import APIRouter, Query, Request

from packhorse.console.api.fastapi.answers import JsonAnswer
from packhorse.console.api.fastapi.joints import Asking, needs
from packhorse.console.api.models.flow import (
    ExplanationAnswer,
    KeyExplanationAsked,
    PauseBody,
    PausedAnswer,
    PausesAnswer,
    PausesAsked,
    ResumeBody,
    ResumedAnswer,
    TopAnswer,
)
from packhorse.console.pausing.render import named, paused_json, resumed_json
from packhorse.console.top.flowing import Flow
from packhorse.console.top.render import as_json
from packhorse.console.truth.moments import utc
from packhorse.console.truth.render import explanation_json
from packhorse.core.errors import UsageError
from packhorse.core.rights import Right, Standing
from packhorse.processor.record import key_hash as hash_of

router = APIRouter(tags=["flow"])


@router.get("/top", response_model=TopAnswer, openapi_extra=needs(Right.SEE))
def top(service: Asking, request: Request) -> JsonAnswer:
    """Say how everything flows: lag, oldest age, failing groups, pauses, relays, runs, and what is wrong."""
    standing: Standing = request.state.standing
    standing.check(Right.SEE, doing="see what flows")
    flow: Flow = request.app.state.flow
    return JsonAnswer(as_json(flow.view(service.top)))


@router.get("/keys/explanation", response_model=ExplanationAnswer, openapi_extra=needs(Right.SEE))
def key_explanation(service: Asking, asked: Annotated[KeyExplanationAsked, Query()]) -> JsonAnswer:
    """Say in words how a group stands with a key: parked or paused, behind which head, what comes next, what a person can do."""
    if (asked.key is None) == (asked.key_hash is None):
        raise UsageError("give one of key and key_hash")
    hashed = asked.key_hash if asked.key is None else hash_of(asked.key.encode())
    assert hashed is not None
    return JsonAnswer(
        explanation_json(service.truth.explain_key(asked.group, asked.topic, hashed, local=utc))
    )


@router.get("/pauses", response_model=PausesAnswer, openapi_extra=needs(Right.SEE))
def pauses(service: Asking, asked: Annotated[PausesAsked, Query()]) -> JsonAnswer:
    """List what is paused, in one group or in all, by whom, since when and why."""
    if asked.group is None:
        found = service.pausing.everywhere()
    else:
        found = {asked.group: service.pausing.paused(asked.group)}
    return JsonAnswer({"groups": [paused_json(group, one) for group, one in found.items()]})


@router.post("/pauses/pause", response_model=PausedAnswer, openapi_extra=needs(Right.ACT))
def pause(service: Asking, body: PauseBody) -> JsonAnswer:
    """Pause a group, a topic, a partition or a key: what runs ends, nothing new begins, until somebody resumes it."""
    scope = body.scope()
    done = service.pausing.pause(body.group, scope, why=body.why, anyway=body.anyway)
    return JsonAnswer(
        {"group": body.group, "scope": named(scope, body.group), "paused": True, "was_paused": not done}
    )


@router.post("/pauses/resume", response_model=ResumedAnswer, openapi_extra=needs(Right.ACT))
def resume(service: Asking, body: ResumeBody) -> JsonAnswer:
    """Let what was paused go on; name it as it was paused."""
    scope = body.scope()
    return JsonAnswer(
        resumed_json(body.group, scope, service.pausing.resume(body.group, scope, why=body.why))
    )
