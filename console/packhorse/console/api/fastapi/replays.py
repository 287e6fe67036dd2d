"""Routes: replays of ranges of topics, and offsets of groups."""

from typing import Annotated, Any

from fastapi import APIRouter, Path, Query

from packhorse.console.api.fastapi.answers import JsonAnswer
from packhorse.console.api.fastapi.joints import Asking, needs
from packhorse.console.api.models.failures import WhyBody
from packhorse.console.api.models.replays import (
    OffsetsAnswer,
    OffsetsAsked,
    PlanAnswer,
    PlanBody,
    ReplayAnswer,
    ReplaysAnswer,
    ReplaysAsked,
    ResetAnswer,
    ResetBody,
    ResetPreviewAnswer,
    ResetPreviewBody,
    ResumeReplayBody,
)
from packhorse.console.offsets.render import move_json, standing_json
from packhorse.console.offsets.service import Preview
from packhorse.console.replaying.render import plan_json, run_json
from packhorse.core.rights import Right
from packhorse.processor.offsets.resetting import Reset

router = APIRouter(tags=["replays"])
RunId = Annotated[int, Path(ge=1, le=2**63 - 1, description="The replay's number.")]


@router.get("/replays", response_model=ReplaysAnswer, openapi_extra=needs(Right.SEE))
def replays(service: Asking, asked: Annotated[ReplaysAsked, Query()]) -> JsonAnswer:
    """List replays, the latest first."""
    found = service.replays.list(group=asked.group, topic=asked.topic, limit=asked.limit)
    return JsonAnswer({"replays": [run_json(one) for one in found]})


@router.post("/replays", response_model=PlanAnswer, openapi_extra=needs(Right.ACT))
def replay_plan(service: Asking, body: PlanBody) -> JsonAnswer:
    """
    Fix a range of a topic, read it once, and say what a replay of it would do; nothing is done.

    The answer comes once all of the range has been read, which takes a second for every 20,000 records or so. The plan is good
    for an hour.
    """
    service.people.me().check(Right.ACT, doing="plan a replay")  # before a broker is asked for its records
    return JsonAnswer(plan_json(service.replays.plan(body.wanted(), tell=_unheard, dry=body.dry)))


@router.get("/replays/{replay}", response_model=ReplayAnswer, openapi_extra=needs(Right.SEE))
def replay(service: Asking, replay: RunId) -> JsonAnswer:
    """Show how far a replay is."""
    return JsonAnswer(run_json(service.replays.show(replay)))


@router.post("/replays/{replay}/run", response_model=ReplayAnswer, openapi_extra=needs(Right.ACT))
def replay_run(service: Asking, replay: RunId, body: WhyBody) -> JsonAnswer:
    """Let a plan run, exactly as it was planned, once, on the record; the background runner of a console works on it."""
    return JsonAnswer(run_json(service.replays.confirm(replay, why=body.why)))


@router.post("/replays/{replay}/pause", response_model=ReplayAnswer, openapi_extra=needs(Right.ACT))
def replay_pause(service: Asking, replay: RunId, body: WhyBody) -> JsonAnswer:
    """Hand over nothing more for now. Live messages of keys that it holds go on waiting; a stop lets go of them."""
    return JsonAnswer(run_json(service.replays.pause(replay, why=body.why)))


@router.post("/replays/{replay}/resume", response_model=ReplayAnswer, openapi_extra=needs(Right.ACT))
def replay_resume(service: Asking, replay: RunId, body: ResumeReplayBody) -> JsonAnswer:
    """Go on with a replay that is paused or halted."""
    found = service.replays.resume(replay, why=body.why, most_failures=body.most_failures)
    return JsonAnswer(run_json(found))


@router.post("/replays/{replay}/stop", response_model=ReplayAnswer, openapi_extra=needs(Right.ACT))
def replay_stop(service: Asking, replay: RunId, body: WhyBody) -> JsonAnswer:
    """End a replay for good. What was handed over stays with the group; live messages of the keys that it held go on."""
    return JsonAnswer(run_json(service.replays.stop(replay, why=body.why)))


@router.get("/offsets", response_model=OffsetsAnswer, openapi_extra=needs(Right.SEE))
def offsets(service: Asking, asked: Annotated[OffsetsAsked, Query()]) -> JsonAnswer:
    """Show, for each partition, the watermark in the database, what the coordinator holds, and what the topic holds."""
    rows = service.offsets.show(asked.group, asked.topic)
    return JsonAnswer(
        {"group": asked.group, "topic": asked.topic, "partitions": [standing_json(one) for one in rows]}
    )


@router.post("/offsets/preview", response_model=ResetPreviewAnswer, openapi_extra=needs(Right.SEE))
def offsets_preview(service: Asking, body: ResetPreviewBody) -> JsonAnswer:
    """Say what a reset of a stopped group would set; its `order` goes into the act. Changes nothing."""
    wanted = Reset(to=body.to, partition=body.partition)
    return JsonAnswer({"order": _order(service.offsets.preview(body.group, body.topic, wanted))})


@router.post("/offsets/reset", response_model=ResetAnswer, openapi_extra=needs(Right.ADMINISTER))
def offsets_reset(service: Asking, body: ResetBody) -> JsonAnswer:
    """Set watermarks and committed offsets of a stopped group: exactly what was previewed, on the record."""
    order = body.order
    moves = [(one.partition, one.watermark, one.committed, one.to) for one in order.partitions]
    preview = service.offsets.previewed(order.group, order.topic, moves)
    by = service.offsets.reset(preview, why=body.why)
    return JsonAnswer({"by": by, **_order(preview)})


def _order(preview: Preview) -> dict[str, Any]:
    return {
        "group": preview.group,
        "topic": preview.topic,
        "partitions": [move_json(move) for move in preview.moves],
    }


def _unheard(text: str) -> None:
    del text
