"""Routes: who may do what, and what people did."""

from typing import Annotated

from fastapi import APIRouter, Query

from packhorse.console.api.fastapi.answers import JsonAnswer
from packhorse.console.api.fastapi.joints import Asking, behind, needs
from packhorse.console.api.models.people import (
    AuditAnswer,
    AuditAsked,
    ChangeAnswer,
    GiveBody,
    MeAnswer,
    OperatorsAnswer,
    RemoveBody,
    TokenAnswer,
    TokenBody,
)
from packhorse.console.audit.pages import position_from
from packhorse.console.audit.render import page_json
from packhorse.console.operators.model import Kind
from packhorse.console.operators.render import change_json, me_json, operator_json
from packhorse.core.rights import Right

router = APIRouter(tags=["people"])


@router.get("/me", response_model=MeAnswer, openapi_extra=needs(Right.SEE))
def me(service: Asking) -> JsonAnswer:
    """Say who you are to this installation, what you may do, and by what."""
    return JsonAnswer(me_json(service.operators.me()))


@router.get("/operators", response_model=OperatorsAnswer, openapi_extra=needs(Right.SEE))
def operators_list(service: Asking) -> JsonAnswer:
    """List who has which rights."""
    return JsonAnswer({"operators": [operator_json(one) for one in service.operators.list()]})


@router.post("/operators/roles", response_model=ChangeAnswer, openapi_extra=needs(Right.ADMINISTER))
def operators_add(service: Asking, body: GiveBody) -> JsonAnswer:
    """Give rights to a role of the database and its members, instead of all that it had. The role needs grants of the database too."""
    return JsonAnswer(change_json(service.operators.add(body.wanted(Kind.ROLE), why=body.why)))


@router.post("/operators/users", response_model=ChangeAnswer, openapi_extra=needs(Right.ADMINISTER))
def operators_user(service: Asking, body: GiveBody) -> JsonAnswer:
    """Give rights to a user, instead of all that they had: to whom a trusted proxy signs in under just that name."""
    return JsonAnswer(change_json(service.operators.add(body.wanted(Kind.USER), why=body.why)))


@router.post("/operators/tokens", response_model=TokenAnswer, openapi_extra=needs(Right.ADMINISTER))
def operators_token(service: Asking, body: TokenBody) -> JsonAnswer:
    """Make a token for somebody, and show it: once. Only its hash is kept; a token that is lost is made anew with `renew`."""
    made = service.operators.token(body.wanted(Kind.TOKEN), renew=body.renew, why=body.why)
    return JsonAnswer({"token": made.token, **change_json(made.change)})


@router.post("/operators/remove", response_model=ChangeAnswer, openapi_extra=needs(Right.ADMINISTER))
def operators_remove(service: Asking, body: RemoveBody) -> JsonAnswer:
    """Take all rights of somebody away, from the next act on."""
    return JsonAnswer(change_json(service.operators.remove(body.kind, body.name, why=body.why)))


@router.get("/audit", response_model=AuditAnswer, openapi_extra=needs(Right.SEE))
def audit(service: Asking, asked: Annotated[AuditAsked, Query()]) -> JsonAnswer:
    """List what people did, the newest first, in pages."""
    page = service.audit.page(asked.filter(), after=behind(asked.after, position_from), limit=asked.limit)
    return JsonAnswer(page_json(page))
