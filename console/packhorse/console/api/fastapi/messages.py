"""Routes: where one message stands."""

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Query

from packhorse.console.api.fastapi.answers import JsonAnswer
from packhorse.console.api.fastapi.joints import Asking, needs
from packhorse.console.api.models.flow import ExplanationAnswer, ExplanationAsked
from packhorse.console.api.models.messages import StatusAnswer, StatusAsked
from packhorse.console.render import status_json
from packhorse.console.truth.moments import utc
from packhorse.console.truth.render import explanation_json
from packhorse.core.rights import Right

router = APIRouter(prefix="/messages", tags=["messages"])


@router.get("/{message_id}", response_model=StatusAnswer, openapi_extra=needs(Right.SEE))
def message_status(service: Asking, message_id: UUID, asked: Annotated[StatusAsked, Query()]) -> JsonAnswer:
    """
    Say where one message stands: recorded, published, delivered, with what result, why it stopped and who acted.

    An id that this database does not know is an answer too: `known` is false.
    """
    status = service.truth.status(message_id, search=asked.search)
    return JsonAnswer(status_json(status, show_key=asked.show_key))


@router.get("/{message_id}/explanation", response_model=ExplanationAnswer, openapi_extra=needs(Right.SEE))
def message_explanation(
    service: Asking, message_id: UUID, asked: Annotated[ExplanationAsked, Query()]
) -> JsonAnswer:
    """Say in words where one message stands and why, what it waits for, what comes next and when, and what a person can do."""
    return JsonAnswer(explanation_json(service.truth.explain(message_id, search=asked.search, local=utc)))
