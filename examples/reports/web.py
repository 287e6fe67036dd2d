"""The application that people see: a form, a page for each report, and the same over JSON under /jobs."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeAlias
from urllib.parse import parse_qs
from uuid import UUID

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from examples.reports.desk import Desk
from examples.reports.people import COOKIE, PEOPLE
from examples.reports.render import page
from packhorse.core.errors import InvalidMessage, RequestKeyConflict
from packhorse.producer.jobs.web import Caller

_MOST_FORM = 10_000
_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; "
        "base-uri 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cache-Control": "no-store",
}
"""Of our own pages: even if a text got out of its place, nothing would run."""
Answer: TypeAlias = Callable[[Request, Caller], Awaitable[Response]]


def application(database_url: str, *, late_after: float = 10.0) -> Starlette:
    """Return the application; a report that takes longer than *late_after* seconds is called late."""
    desk = Desk(database_url, late_after=late_after)
    pages = Pages(desk)

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        del app
        async with desk.open():
            yield

    return Starlette(
        routes=[
            Route("/sign-in", pages.sign_in, methods=["GET"]),
            Route("/sign-in", pages.signed_in, methods=["POST"]),
            Route("/", pages.signed(pages.front), methods=["GET"]),
            Route("/", pages.signed(pages.ask), methods=["POST"]),
            Route("/reports/{id:uuid}.csv", pages.signed(pages.csv), methods=["GET"]),
            Route("/reports/{id:uuid}", pages.signed(pages.report), methods=["GET"]),
            Route("/reports/{id:uuid}/cancel", pages.signed(pages.cancel), methods=["POST"]),
            Mount("/jobs", app=desk.api),
            Mount("/static", app=StaticFiles(directory=Path(__file__).parent / "static")),
        ],
        lifespan=lifespan,
    )


class Pages:
    """From requests to the desk, and from what it says to answers."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    def signed(self, answer: Answer) -> Callable[[Request], Awaitable[Response]]:
        """Return *answer* for those who are signed in; others are sent to the door."""

        async def checked(request: Request) -> Response:
            caller = self._desk.sessions.of(request.headers.get("cookie"))
            if caller is None:
                return RedirectResponse("/sign-in", 303)
            return FOREIGN if _is_foreign(request) else await answer(request, caller)

        return checked

    async def sign_in(self, request: Request) -> Response:
        """Ask who it is."""
        del request
        return _html(page("sign-in", title="Who are you?"))

    async def signed_in(self, request: Request) -> Response:
        """Begin a session."""
        person = (await _form(request)).get("person", "")
        if person not in PEOPLE or _is_foreign(request):
            return RedirectResponse("/sign-in", 303)
        answer = RedirectResponse("/", 303)
        answer.set_cookie(COOKIE, self._desk.sessions.begin(person), httponly=True, samesite="lax")
        return answer

    async def front(self, request: Request, caller: Caller) -> Response:
        """Show the form and the person's reports."""
        del request
        return _html(await self._desk.front(caller))

    async def ask(self, request: Request, caller: Caller) -> Response:
        """Ask for a report, and show how it stands: it is accepted, and not done."""
        try:
            job_id = await self._desk.ask(caller, await _form(request))
        except RequestKeyConflict:
            return _html(await self._desk.front(caller, SENT_BEFORE), 422)
        except InvalidMessage as error:
            return _html(await self._desk.front(caller, str(error)), 422)
        return RedirectResponse(f"/reports/{job_id}", 303)

    async def report(self, request: Request, caller: Caller) -> Response:
        """Show how a report stands."""
        shown = await self._desk.standing(caller, _id(request))
        return NOT_HERE if shown is None else _html(shown)

    async def cancel(self, request: Request, caller: Caller) -> Response:
        """Cancel a report, and show what that came to."""
        there = await self._desk.cancel(caller, _id(request))
        return RedirectResponse(f"/reports/{_id(request)}", 303) if there else NOT_HERE

    async def csv(self, request: Request, caller: Caller) -> Response:
        """Send a report that is ready."""
        text = await self._desk.csv(caller, _id(request))
        if text is None:
            return NOT_HERE
        name = f'attachment; filename="report-{_id(request)}.csv"'
        return Response(text, media_type="text/csv", headers={**_HEADERS, "Content-Disposition": name})


SENT_BEFORE = "this form was sent before with something else in it; here is a fresh one, for one more report"
NOT_HERE = PlainTextResponse("There is no such report, or it is not yours, or it is not ready.\n", 404)
FOREIGN = PlainTextResponse("This form was sent by another site.\n", 403)


def _html(text: str, status: int = 200) -> Response:
    return HTMLResponse(text, status, headers=_HEADERS)


def _id(request: Request) -> UUID:
    found: UUID = request.path_params["id"]
    return found


def _is_foreign(request: Request) -> bool:
    """Return whether the page of another site has made the browser send this; browsers say so by themselves."""
    said = request.headers.get("sec-fetch-site", "none")
    return request.method == "POST" and said not in {"same-origin", "none"}


async def _form(request: Request) -> dict[str, str]:
    """Return the fields of a form; one that is too large, or no text, has none."""
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > _MOST_FORM:
            return {}
    try:
        return {name: values[0] for name, values in parse_qs(body.decode("ascii"), errors="strict").items()}
    except (UnicodeDecodeError, ValueError):
        return {}
