"""
What stands before every page: headers on every answer, a name of ours, somebody who is signed in, and forms that were sent by a page of ours.

An act needs all of: a session whose cookie we have signed, a form with the mark of that session, and a browser that says that it
comes from our own page. What its person may do is checked later, in the transaction of the act.
"""

from dataclasses import replace
from typing import Any
from urllib.parse import quote, urlsplit
from uuid import UUID

from fastapi.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.requests import cookie_parser

from packhorse.console.api.fastapi.bodies import (
    MAX_BODY,
    App,
    Message,
    Receive,
    Replayed,
    Scope,
    Send,
    body_of,
)
from packhorse.console.api.fastapi.gate import tell
from packhorse.console.api.hosts import Hosts
from packhorse.console.api.problem import Refused, of_status
from packhorse.console.pages.assets import PREFIX
from packhorse.console.pages.cookies import cookie_for
from packhorse.console.pages.doorkeeper import Doorkeeper
from packhorse.console.pages.fastapi.answers import Desk, no_rights, onward, trouble, trouble_of
from packhorse.console.pages.forms import MARK, form_of, number_in
from packhorse.console.pages.origins import is_ours, path_on_here
from packhorse.core.clock import SYSTEM_CLOCK, Clock
from packhorse.core.errors import Forbidden, NotSignedIn, UsageError

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; font-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
"""Nothing from elsewhere, nothing inline: what somebody plants in a message can't run, whatever a template forgets."""
_HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"content-security-policy", POLICY.encode()),
    (b"x-frame-options", b"DENY"),
    # With no-referrer browsers would say `Origin: null` of our own forms; without TLS that is all they say.
    (b"referrer-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=(), payment=(), usb=()"),
)
SIGN_IN = "/sign-in"
LIVE = "x-live"
"""Header of requests that a page makes by itself, to show what is true now: they keep no session alive."""
FORM = "x-form"
"""Header of forms that a page's script sends, so that what was written stays where it is until there is an answer."""
ONWARD = b"x-onward"
"""Header of the answer to those: where the browser goes on, for a script can't see where it is sent."""
_FORMS_OF_NOBODY = frozenset({SIGN_IN, f"{SIGN_IN}/link"})
MOVED = "the page was made before you signed in anew, or for somebody else; nothing was done: load it again, and do it there"


class _NoRights(Exception):
    """Somebody is there whom the proxy signs in under a name that has no rights here."""

    def __init__(self, name: str) -> None:
        super().__init__("no rights")
        self.name = name


class PagesGate:
    """
    Let requests through to *inner* of whoever is signed in.

    Args:
        keeper: Knows who is.
        hosts: By which names requests may ask for us, for pages and files alike.
        clock: For how long an answer took.
    """

    def __init__(self, inner: App, keeper: Doorkeeper, *, hosts: Hosts, clock: Clock = SYSTEM_CLOCK) -> None:
        self._inner = inner
        self._keeper = keeper
        self._hosts = hosts
        self._clock = clock

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, and tell the log of an act or a refusal."""
        began = self._clock.monotonic()
        answer = _Answer(
            send,
            is_asset=scope["path"].startswith(f"{PREFIX}/"),
            is_scripted=FORM in Headers(scope=scope),
        )
        await self._answer(scope, receive, answer)
        if not answer.is_asset:
            tell(scope, answer.status, self._clock.monotonic() - began)

    async def _answer(self, scope: Scope, receive: Receive, answer: "_Answer") -> None:
        headers = Headers(scope=scope)
        desk: Desk | None = None
        try:
            self._hosts.check(scope["headers"])
            if not answer.is_asset:
                desk = await self._seated(scope, headers, answer)
            if desk is None and not answer.is_asset and scope["path"] not in _FORMS_OF_NOBODY:
                await _to_the_door(scope, headers)(scope, receive, answer)
                return
            if scope["method"] not in {"GET", "HEAD"}:
                receive = await self._checked(scope, headers, receive, desk)
            await self._inner(scope, receive, answer)
        except _NoRights as who:
            await no_rights(who.name)(scope, receive, answer)
        except Exception as error:  # noqa: BLE001 the last resort of a server: no request may end without an answer
            if not answer.status:
                once: UUID | None = scope.get("state", {}).get("once")
                onto = _page_of(scope, headers)
                await trouble_of(error, desk, once=once, onto=onto)(scope, receive, answer)

    async def _seated(self, scope: Scope, headers: Headers, answer: "_Answer") -> Desk | None:
        """
        Return who sits at the page; None: nobody is signed in, or not any more.

        Raises:
            _NoRights: The proxy signs somebody in who may do nothing here.
            NotSignedIn: The token of the session is not known any more.
        """
        keeper = self._keeper
        cookie = cookie_for(scope.get("scheme", ""), headers.get("host", ""))
        scope.setdefault("state", {})["cookie"] = cookie
        session = keeper.session_of(
            cookie_parser(headers.get("cookie", "")).get(cookie.name),
            headers.getlist(keeper.ways.user_header) if keeper.ways.user_header else [],
            peer=scope.get("state", {}).get("peer", ""),
            is_live=LIVE in headers,
        )
        if session is None:
            return None
        try:
            standing = await run_in_threadpool(keeper.standing, session.now)
        except NotSignedIn:
            answer.cookie = cookie.gone()
            raise
        except Forbidden:
            scope.setdefault("state", {})["name"] = session.now.who
            raise _NoRights(session.now.who) from None
        answer.cookie = session.cookie and cookie.keeping(session.cookie)
        person = keeper.person(session.now)
        desk = Desk(
            session=session.now,
            standing=standing,
            who=person.actor(standing),
            mark=keeper.mark(session.now),
            path=_address_of(scope),
            number=keeper.number,
        )
        scope.setdefault("state", {}).update(desk=desk, person=person, name=standing.name)
        return desk

    async def _checked(self, scope: Scope, headers: Headers, receive: Receive, desk: Desk | None) -> Receive:
        """
        Return what gives the body again, once the request is found to be a form of ours.

        Raises:
            Refused: It comes from elsewhere, or from a page of another session.
        """
        if not is_ours(headers):
            raise Refused(
                of_status(
                    403,
                    "the form does not come from a page of this console, or the browser does not say so; nothing was done",
                )
            )
        body = await body_of(receive, MAX_BODY)
        try:
            fields = form_of(body, headers.get("content-type", ""))
            once = number_in(fields)
        except UsageError as error:
            raise Refused(of_status(422, str(error))) from None
        mark = fields.pop(MARK, "")
        if desk is not None and not self._keeper.is_mark(mark, desk.session):
            raise Refused(of_status(403, MOVED))
        state = scope.setdefault("state", {})
        state["form"] = fields
        if desk is not None and once is not None:
            state.update(once=once, person=replace(state["person"], once=once))
        return Replayed(body, receive)


def _to_the_door(scope: Scope, headers: Headers) -> Any:
    """Return the way to the page that signs in; an act that came too late is told that it was not done."""
    if LIVE in headers or scope["method"] not in {"GET", "HEAD"}:
        return trouble(
            of_status(401, "you are signed out, or were signed in for too long; nothing was done"),
            None,
            onto=_page_of(scope, headers),
        )
    path = _address_of(scope)
    return onward(SIGN_IN if path == "/" else f"{SIGN_IN}?next={quote(path, safe='')}")


def _page_of(scope: Scope, headers: Headers) -> str:
    """Return where whoever signs in goes on: this page, or that on which the form stood that was sent."""
    if scope["method"] in {"GET", "HEAD"}:
        return _address_of(scope)
    came = urlsplit(headers.get("referer", ""))
    if came.netloc != headers.get("host"):
        return "/"
    return path_on_here(came.path + (f"?{came.query}" if came.query else ""))


def _address_of(scope: Scope) -> str:
    query = scope["query_string"].decode("latin-1")
    return quote(scope["path"], safe="/") + (f"?{query}" if query else "")


class _Answer:
    """Sends an answer with the headers that all have, and the cookie that the gate sets; `status` is 0 until it has begun."""

    def __init__(self, send: Send, *, is_asset: bool, is_scripted: bool) -> None:
        self._send = send
        self.is_asset = is_asset
        self._is_scripted = is_scripted
        self.status = 0
        self.cookie: str | None = None

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            headers = [*message.get("headers", ()), *_HEADERS]
            names = {name for name, _ in headers}
            if b"cache-control" not in names:
                headers.append((b"cache-control", b"no-store"))
            if self.cookie is not None and b"set-cookie" not in names:
                headers.append((b"set-cookie", self.cookie.encode("latin-1")))
            message = {**message, "headers": headers}
            if self._is_scripted and self.status == 303:
                renamed = [(ONWARD if name == b"location" else name, value) for name, value in headers]
                message |= {"status": 200, "headers": renamed}
        await self._send(message)
