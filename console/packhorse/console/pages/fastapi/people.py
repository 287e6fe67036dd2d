"""Pages: what people did, and who may do what."""

from typing import Annotated, Literal

from fastapi import APIRouter, Request
from fastapi.responses import Response
from pydantic import Field

from packhorse.console.api.fastapi.joints import behind
from packhorse.console.api.models.base import Cursor, Name, Why
from packhorse.console.api.models.people import RemoveBody, WhoName
from packhorse.console.audit.pages import Filter, position_from
from packhorse.console.operators.model import Kind, Wanted
from packhorse.console.pages.fastapi.answers import onward, page
from packhorse.console.pages.fastapi.joints import Asked, Asking, At, Form, Query, come_back, read
from packhorse.console.pages.offers import Offer
from packhorse.core.clock import SYSTEM_CLOCK
from packhorse.core.moments import span_from
from packhorse.core.rights import Right, Role
from packhorse.processor.durations import seconds_of

router = APIRouter()
LIMIT = 100


class AuditAsked(Asked):
    """Which acts; what is not given lets all pass."""

    actor: Name | None = None
    act: Name | None = None
    group: Name | None = None
    since: Annotated[str, Field(max_length=100)] | None = None
    until: Annotated[str, Field(max_length=100)] | None = None
    after: Cursor | None = None

    def filter(self) -> Filter:
        """Return what the service is asked for. Raises UsageError."""
        since, until = span_from(self.since, self.until, now=SYSTEM_CLOCK.now())
        return Filter(actor=self.actor, act=self.act, group=self.group, since=since, until=until)


@router.get("/audit")
def audit(service: Asking, desk: At, query: Query) -> Response:
    """List what people did, the newest first."""
    asked = read(AuditAsked, query)
    found = service.audit.page(asked.filter(), after=behind(asked.after, position_from), limit=LIMIT)
    return page(
        "audit.html",
        desk,
        room="/audit",
        found=found,
        asked={name: value for name, value in query.items() if name != "after"},
    )


@router.get("/people")
def people(service: Asking, desk: At) -> Response:
    """List who may do what, and say who one is."""
    return page(
        "people.html",
        desk,
        room="",
        operators=service.operators.list(),
        me=service.operators.me(),
        roles=tuple(Role),
    )


class GiveForm(Asked):
    """
    What somebody is to have.

    Attributes:
        kind: By what they are known; tokens are made on the command line, where nobody else sees them.
        expires: For so long, as 90d; None: for good.
    """

    kind: Literal["user", "role"]
    name: WhoName
    role: Role
    personal: bool = False
    edit: bool = False
    expires: Annotated[str, Field(max_length=40)] | None = None
    why: Why


@router.post("/people/give")
def give(service: Asking, request: Request, form: Form) -> Response:
    """Give rights instead of all that the name had, on the record."""
    path = come_back(request, "/people")
    asked = read(GiveForm, form)
    lasts = None if asked.expires is None else seconds_of(asked.expires, what="how long it lasts")
    wanted = Wanted(
        kind=Kind(asked.kind),
        name=asked.name,
        role=asked.role,
        personal=asked.personal,
        edit=asked.edit,
        lasts=lasts,
    )
    service.operators.add(wanted, why=asked.why)
    return onward(path)


class RemoveAsked(Asked):
    """Whose rights."""

    kind: Kind
    name: WhoName


@router.get("/people/remove")
def remove_preview(desk: At, query: Query) -> Response:
    """Say what taking somebody's rights away does."""
    asked = read(RemoveAsked, query)
    return page("act.html", desk, offer=_removal(asked, may=desk.may_administer))


@router.post("/people/remove")
def remove(service: Asking, request: Request, form: Form) -> Response:
    """Take all rights away, from the next act on."""
    path = come_back(request, "/people")
    asked = read(RemoveBody, form)
    service.operators.remove(asked.kind, asked.name, why=asked.why)
    return onward(path)


def _removal(asked: RemoveAsked, *, may: bool) -> Offer:
    return Offer(
        title=f"Take all rights of {asked.name} away",
        happens=(
            f"From the next request on {asked.kind} {asked.name} may do nothing here, whatever is open in a browser.",
            "What they did stays on the record.",
        ),
        action="/people/remove",
        hidden={"kind": asked.kind.value, "name": asked.name},
        button=f"Take the rights of {asked.name} away",
        back="/people",
        may=may,
        needs=Right.ADMINISTER.value,
        is_danger=True,
    )
