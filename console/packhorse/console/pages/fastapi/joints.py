"""What routes of pages are made with: who sits there, their service, the form that they sent, and the query of the page."""

from typing import Annotated, TypeVar

from fastapi import Depends, Request
from pydantic import BaseModel, ConfigDict, ValidationError

from packhorse.console.api.problem import Refused, of_status
from packhorse.console.pages.fastapi.answers import Desk
from packhorse.console.pages.forms import given
from packhorse.console.service import Service
from packhorse.core.errors import AlreadyDone

Model = TypeVar("Model", bound=BaseModel)


class Asked(BaseModel):
    """Be the base of what a page's address or form may say: no other names, since a mistyped filter would let everything pass."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)


async def _desk_of(request: Request) -> Desk:
    found: Desk = request.state.desk
    return found


async def _service_of(request: Request) -> Service:
    found: Service = request.app.state.services(request.state.person)
    return found


def _form_of(request: Request) -> dict[str, str]:
    """
    Return the fields of the form.

    Raises:
        AlreadyDone: It was sent before, and has acted. The act itself looks again, in its transaction: this look comes before
            what a repeated form would be told about things that its own act has moved.
    """
    once = getattr(request.state, "once", None)
    if once is not None:
        service: Service = request.app.state.services(request.state.person)
        if service.audit.done_by(once):
            raise AlreadyDone("the form was sent before, and what it asks for was done then")
    found: dict[str, str] = request.state.form
    return found


async def _query_of(request: Request) -> dict[str, str]:
    return joined(request)


def joined(request: Request, *several: str) -> dict[str, str]:
    """
    Return what the page's address says behind the question mark; each of *several* may be there more than once, joined by commas.

    Raises:
        Refused: Another name is there twice.
    """
    fields: dict[str, str] = {}
    for name, value in request.query_params.multi_items():
        if name not in fields:
            fields[name] = value
        elif name in several:
            fields[name] = f"{fields[name]},{value}"
        else:
            raise Refused(of_status(422, "the address names a parameter twice"))
    return given(fields)


At = Annotated[Desk, Depends(_desk_of)]
"""Who sits at the page."""
Asking = Annotated[Service, Depends(_service_of)]
"""The service of whoever is signed in."""
Form = Annotated[dict[str, str], Depends(_form_of)]
"""The fields of the form that was sent; the gate has checked that it is ours."""
Query = Annotated[dict[str, str], Depends(_query_of)]
"""What the page's address says behind the question mark, without what was left empty."""


def come_back(request: Request, path: str) -> str:
    """Let the page of whatever goes wrong from here on lead to *path*, where how things stand can be seen; return *path*."""
    request.state.back = path
    return path


def read(model: type[Model], fields: dict[str, str]) -> Model:
    """
    Return *fields* as a *model*.

    Raises:
        Refused: They are not as it asks; what was given is not repeated, for it may be a secret.
    """
    try:
        return model.model_validate(fields)
    except ValidationError as error:
        wrong = tuple((".".join(map(str, item["loc"])), item["msg"]) for item in error.errors()[:20])
        raise Refused(
            of_status(422, "what was given is not as the page asks; nothing was done", errors=wrong)
        ) from None
