"""Pages: freeze the set that filters mean, so that exactly it can be redriven; its own page confirms it and shows how far it is."""

from collections.abc import Mapping
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import Response

from packhorse.console.api.models.redrives import RedrivePreviewBody
from packhorse.console.pages.fastapi.answers import onward, page
from packhorse.console.pages.fastapi.joints import Asking, At, Form, Query, come_back, read
from packhorse.console.pages.forms import PICKED
from packhorse.console.pages.freezing import FILTERS, picked_from, set_from
from packhorse.console.pages.origins import path_on_here
from packhorse.console.pages.resting import address
from packhorse.console.redriving.wanted import (
    DEFAULT_CAP,
    DEFAULT_LIMIT,
    DEFAULT_RATE,
    DEFAULT_STAGES,
    MOST_MEMBERS,
)
from packhorse.core.clock import SYSTEM_CLOCK
from packhorse.core.rights import Right

router = APIRouter(prefix="/quarantine/redrive")
LONGEST_ADDRESS = 4_000
"""Characters of the address that leads back to the form as it was filled in; of a longer one only the page is kept."""


@router.get("")
def choose(desk: At, query: Query) -> Response:
    """Offer the form: which messages, and how they are redriven."""
    desk.standing.check(Right.SEE, doing="look")
    read(RedrivePreviewBody, set_from(query, SYSTEM_CLOCK.now()))
    return page(
        "quarantine-redrive.html",
        desk,
        room="/quarantine",
        query=query,
        is_narrow=any(name in query for name in FILTERS),
        cap=DEFAULT_CAP,
        limit=DEFAULT_LIMIT,
        rate=f"{DEFAULT_RATE:g}",
        stages=", ".join(map(str, DEFAULT_STAGES)),
        most=MOST_MEMBERS,
    )


@router.post("")
def freeze(service: Asking, form: Form, request: Request) -> Response:
    """Freeze the set; nothing is redriven before somebody confirms it by its number."""
    come_back(request, _filled_in(form))
    body = read(RedrivePreviewBody, set_from(form, SYSTEM_CLOCK.now()))
    frozen = service.redrives.preview(body.wanted(), body.how(), everything=body.everything)
    return onward(f"/redrives/{frozen.redrive.id}")


@router.post("/picked")
def freeze_picked(service: Asking, form: Form, request: Request) -> Response:
    """Freeze exactly the messages that were ticked in a list; the page of the set shows them, and only there it is confirmed."""
    come_back(request, path_on_here(form.get("back")))
    asked: dict[str, Any] = {PICKED: picked_from(form.get(PICKED, ""))}
    body = read(RedrivePreviewBody, asked)
    frozen = service.redrives.preview(body.wanted(), body.how())
    return onward(f"/redrives/{frozen.redrive.id}")


def _filled_in(form: Mapping[str, str]) -> str:
    found = address("/quarantine/redrive", **form)
    return found if len(found) <= LONGEST_ADDRESS else "/quarantine/redrive"
