"""Routes: how everything flows, pauses, and explanations of keys."""

from datetime import timedelta
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
from packhorse.console.top.facts import Look
from packhorse.console.top.render import as_json
from packhorse.console.truth.moments import utc
from packhorse.console.truth.render import explanation_json
from packhorse.core.errors import UsageError
from packhorse.core.rights import Right
from packhorse.processor.record import key_hash as hash_of

router = APIRouter(tags=["flow"])


class Glances:
    """Keep the last look at the whole, so that the next one has something to draw rates from."""

    def __init__(self) -> None:
        self._last: Look | None = None

    def before(self, now: Look) -> Look | None:
        """Return an earlier look that is neither too old nor too near, and keep *now* for the next."""
        last = self._last
        if last is not None and timedelta() <= now.at - last.at < timedelta(seconds=1):
            return None
        self._last = now
        return last if last is not None and now.at - last.at <= timedelta(seconds=30) else None


@router.get("/top", response_model=TopAnswer, openapi_extra=needs(Right.SEE))
def top(service: Asking, request: Request) -> JsonAnswer:
    """Say how everything flows: lag, oldest age, failing groups, pauses, relays, runs, and what is wrong."""
    look = service.top.look()
    glances: Glances = request.app.state.glances
    return JsonAnswer(as_json(service.top.view(look, glances.before(look))))


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
