"""The application: routes under /api/v1 behind the gate, and health beside them."""

from collections.abc import Callable
from functools import cache
from importlib.metadata import version
from typing import Any

from fastapi import FastAPI, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException

from packhorse.console.acting.person import Person
from packhorse.console.api.fastapi import (
    failures,
    flow,
    jobs,
    messages,
    people,
    quarantine,
    redrives,
    replays,
    restoring,
)
from packhorse.console.api.fastapi.answers import JsonAnswer, refusal, refusal_of
from packhorse.console.api.fastapi.document import documented, methods_of
from packhorse.console.api.fastapi.gate import Gate
from packhorse.console.api.hosts import Hosts
from packhorse.console.api.problem import Refused, of_status
from packhorse.console.api.signing import SignIns
from packhorse.console.service import Service
from packhorse.console.top.flowing import Flow
from packhorse.core.clock import SYSTEM_CLOCK, Clock
from packhorse.core.errors import PackhorseError
from packhorse.core.rights import Standing

PREFIX = "/api/v1"
_ABOUT = """\
See where any message stands, and act on the record: what was previewed is what is done, once.

Every request brings a token, and what its holder may do is checked in the transaction of the act. Times are in UTC. Keys are
shown only where they are asked for, personal fields are masked. What goes wrong is one `Problem`, whose `code` is for programs.
"""


def application(
    services: Callable[[Person], Service],
    standing: Callable[[Person], Standing],
    *,
    hosts: Hosts,
    looks: Flow,
    ready: Callable[[], bool],
    clock: Clock = SYSTEM_CLOCK,
    sign_ins: SignIns | None = None,
) -> Gate:
    """
    Return what answers requests.

    Args:
        services: Makes the service of a person.
        standing: Says what a person may do now.
        hosts: By which names requests may ask for us.
        looks: Keeps the looks at the whole that all who ask share.
        ready: Whether requests can be answered now; blocks.
        clock: For the bound on refused tokens, and for how long a request took.
        sign_ins: That bound.
    """
    app = FastAPI(
        title="Packhorse console",
        summary="Operators' acts and answers.",
        description=_ABOUT,
        version=version("packhorse"),
        openapi_url=f"{PREFIX}/openapi.json",
        docs_url=None,  # pages that load scripts from elsewhere
        redoc_url=None,
        redirect_slashes=False,
        generate_unique_id_function=_operation_id,
    )
    app.state.services = services
    app.state.flow = looks
    for room in (messages, jobs, quarantine, restoring, failures, redrives, replays, flow, people):
        app.include_router(room.router, prefix=PREFIX)
    _health(app, ready)
    _problems(app)
    document = cache(lambda: documented(app))
    app.openapi = document  # type: ignore[method-assign]  # the library's own way
    return Gate(app, document, standing, hosts=hosts, clock=clock, sign_ins=sign_ins or SignIns())


def _operation_id(route: APIRoute) -> str:
    return route.name


def _health(app: FastAPI, ready: Callable[[], bool]) -> None:
    async def live() -> Response:
        return JsonAnswer({"ok": True})

    async def is_ready() -> Response:
        well = await run_in_threadpool(ready)
        return JsonAnswer({"ok": well}, status_code=200 if well else 503)

    app.add_api_route("/health/live", live, include_in_schema=False)
    app.add_api_route("/health/ready", is_ready, include_in_schema=False)


def _problems(app: FastAPI) -> None:
    for kind in (PackhorseError, Refused, Exception):
        app.add_exception_handler(kind, _refused)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _no_route)


async def _refused(request: Request, error: Exception) -> Response:
    del request
    return refusal_of(error)


async def _invalid(request: Request, error: Any) -> Response:
    """Name what is wrong and where; what was given is not repeated, for it may be a secret."""
    del request
    wrong = tuple((".".join(map(str, item["loc"])), item["msg"]) for item in error.errors()[:20])
    return refusal(of_status(422, "the request is not as the document asks; nothing was done", errors=wrong))


async def _no_route(request: Request, error: Any) -> Response:
    headers = dict(error.headers or {})
    if error.status_code == 405 and (allowed := methods_of(request.app.openapi(), request.url.path)):
        headers["Allow"] = ", ".join(allowed)  # the framework names those of one route alone
    return refusal(of_status(error.status_code, str(error.detail), headers=headers))
