"""Routes: groups of quarantined messages, and what people know of them."""

from typing import Annotated

from fastapi import APIRouter, Path, Query

from packhorse.console.api.fastapi.answers import JsonAnswer
from packhorse.console.api.fastapi.joints import Asking, behind, needs
from packhorse.console.api.models.failures import (
    AcknowledgedAnswer,
    FailuresAnswer,
    FailuresAsked,
    FailureShownAnswer,
    NoteBody,
    NotedAnswer,
    UnacknowledgedAnswer,
    WhyBody,
)
from packhorse.console.quarantine.groups.model import group_position_from
from packhorse.console.quarantine.groups.render import group_shown_json, groups_json
from packhorse.core.rights import Right

router = APIRouter(prefix="/failures", tags=["quarantine"])
Print = Annotated[
    str, Path(pattern="^[0-9a-f]{8,32}$", description="The group's name, or its first eight digits or more.")
]


@router.get("", response_model=FailuresAnswer, openapi_extra=needs(Right.SEE))
def failures(service: Asking, asked: Annotated[FailuresAsked, Query()]) -> JsonAnswer:
    """Say what stops: exact counts by what messages have in common, the largest group first."""
    after = behind(asked.after, group_position_from)
    return JsonAnswer(
        groups_json(service.groups.page(asked.filter(), by=asked.by, after=after, limit=asked.limit))
    )


@router.get("/{failure}", response_model=FailureShownAnswer, openapi_extra=needs(Right.SEE))
def failure(service: Asking, failure: Print) -> JsonAnswer:
    """Show one group of failures: counts by day and tenant, the share that failed for good, newest messages, notes."""
    return JsonAnswer(group_shown_json(service.groups.show(failure)))


@router.post("/{failure}/note", response_model=NotedAnswer, openapi_extra=needs(Right.ACT))
def failure_note(service: Asking, failure: Print, body: NoteBody) -> JsonAnswer:
    """Write a note about a group of failures, on the record."""
    found, at = service.groups.note(failure, body.text)
    return JsonAnswer({"failure": found, "noted_at": at})


@router.post("/{failure}/acknowledge", response_model=AcknowledgedAnswer, openapi_extra=needs(Right.ACT))
def failure_acknowledge(service: Asking, failure: Print, body: WhyBody) -> JsonAnswer:
    """Acknowledge a group of failures, on the record: its contact is told no more."""
    found, at = service.groups.acknowledge(failure, why=body.why)
    return JsonAnswer({"failure": found, "acknowledged_at": at})


@router.post("/{failure}/unacknowledge", response_model=UnacknowledgedAnswer, openapi_extra=needs(Right.ACT))
def failure_unacknowledge(service: Asking, failure: Print, body: WhyBody) -> JsonAnswer:
    """Take the acknowledgement of a group of failures back, on the record."""
    found, at = service.groups.unacknowledge(failure, why=body.why)
    return JsonAnswer({"failure": found, "unacknowledged_at": at})
