"""The pages as an ASGI application, behind their gate."""

from collections.abc import Callable
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from starlette.exceptions import HTTPException

from packhorse.console.acting.person import Person
from packhorse.console.api.hosts import Hosts
from packhorse.console.api.problem import Refused, of_status
from packhorse.console.pages.assets import PREFIX, asset_at
from packhorse.console.pages.doorkeeper import Doorkeeper
from packhorse.console.pages.fastapi import (
    doors,
    edits,
    failures,
    freezing,
    groups,
    job_acts,
    jobs,
    keys,
    messages,
    overview,
    pauses,
    people,
    quarantine,
    quarantined,
    redrives,
    relay,
    replays,
    search,
    sent,
)
from packhorse.console.pages.fastapi.answers import Desk, trouble, trouble_of
from packhorse.console.pages.fastapi.gate import PagesGate
from packhorse.console.service import Service
from packhorse.console.sharing import Shared
from packhorse.console.top.flowing import FRESH, Flow
from packhorse.core.clock import SYSTEM_CLOCK
from packhorse.core.errors import PackhorseError

ROOMS = (
    doors,
    overview,
    jobs,
    job_acts,
    quarantine,
    failures,
    freezing,
    quarantined,
    edits,
    redrives,
    replays,
    people,
    messages,
    search,
    keys,
    pauses,
    groups,
    relay,
    sent,
)
"""Where the routes are."""


def pages(
    services: Callable[[Person], Service], keeper: Doorkeeper, flow: Flow, *, hosts: Hosts
) -> PagesGate:
    """
    Return what answers requests for pages.

    Args:
        services: Makes the service of a person.
        keeper: Knows who is signed in.
        flow: Keeps the looks at the whole that open pages share.
        hosts: By which names requests may ask for us.
    """
    app = FastAPI(openapi_url=None, docs_url=None, redoc_url=None, redirect_slashes=False)
    app.state.services = services
    app.state.keeper = keeper
    app.state.flow = flow
    app.state.job_counts = Shared(SYSTEM_CLOCK, fresh=FRESH)
    app.add_api_route(f"{PREFIX}/{{path:path}}", _asset)
    for room in ROOMS:
        app.include_router(room.router)
    for kind in (PackhorseError, Refused, Exception):
        app.add_exception_handler(kind, _refused)
    app.add_exception_handler(RequestValidationError, _no_page)
    app.add_exception_handler(HTTPException, _no_page)
    return PagesGate(app, keeper, hosts=hosts)


async def _asset(request: Request) -> Response:
    found = asset_at(request.url.path)
    if found is None:
        return Response(status_code=404, media_type="text/plain")
    headers = {"Cache-Control": "public, max-age=31536000, immutable"}
    return Response(found.body, media_type=found.media_type, headers=headers)


async def _refused(request: Request, error: Exception) -> Response:
    state = request.state
    return trouble_of(
        error, _desk(request), back=getattr(state, "back", None), once=getattr(state, "once", None)
    )


async def _no_page(request: Request, error: Any) -> Response:
    """Answer for an address that no page has, or that names something in a form that nothing has."""
    status = getattr(error, "status_code", 404)
    said = (
        "there is no such page" if status == 404 else str(getattr(error, "detail", "there is no such page"))
    )
    return trouble(of_status(status, said), _desk(request))


def _desk(request: Request) -> Desk | None:
    return getattr(request.state, "desk", None)
