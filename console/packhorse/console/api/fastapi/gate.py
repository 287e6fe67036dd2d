"""
What stands before every route: headers on every answer, a name of ours, a token that is known, and a bound on every body.

Nothing of a request but its path, its Host and its Authorization header is looked at before the token is known; its rights are checked
later, in the transaction of what it asks for.
"""

from collections.abc import Callable
from typing import Any

from fastapi.concurrency import run_in_threadpool

from packhorse.console.acting.person import Person, hash_of
from packhorse.console.api.fastapi.answers import refusal_of
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
from packhorse.console.api.hosts import Hosts
from packhorse.console.api.problem import Refused, too_many
from packhorse.console.api.signing import SignIns, token_in
from packhorse.core import logs
from packhorse.core.clock import Clock
from packhorse.core.errors import NotSignedIn
from packhorse.core.rights import Standing

MAX_EDIT = 4 << 20
"""The same, of an edited payload: as JSON it may take several times the bytes that a message may have."""
_EDITS = ("/edit", "/edit/preview")
OPEN = frozenset({"/health/live", "/health/ready"})
"""Paths that need no token and tell no facts."""
_HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"cache-control", b"no-store"),
    (
        b"content-security-policy",
        b"default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
    ),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
)
_log = logs.logger("console")


class Gate:
    """
    Let requests through to *inner* that bring a token which somebody holds.

    Args:
        document: Makes the document of the API behind it.
        hosts: By which names requests may ask for us; health is told under any.
        standing: Says what somebody may do now; blocks, and runs in a thread. Raises what `Database.standing` does.
    """

    def __init__(
        self,
        inner: App,
        document: Callable[[], dict[str, Any]],
        standing: Callable[[Person], Standing],
        *,
        hosts: Hosts,
        clock: Clock,
        sign_ins: SignIns,
    ) -> None:
        self._inner = inner
        self._hosts = hosts
        self.document = document
        self._standing = standing
        self._clock = clock
        self._sign_ins = sign_ins

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or pass on what is none."""
        if scope["type"] != "http":
            await self._inner(scope, receive, send)
            return
        began = self._clock.monotonic()
        answer = _Answer(send)
        try:
            await self._answer(scope, receive, answer)
        except Exception as error:  # noqa: BLE001 the last resort of a server: no request may end without an answer
            if not answer.status:
                await refusal_of(error)(scope, receive, answer)
        tell(scope, answer.status, self._clock.monotonic() - began)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"] not in OPEN:
            self._hosts.check(scope["headers"])
            person, standing = await self._signed_in(scope)
            body = await body_of(receive, MAX_EDIT if scope["path"].endswith(_EDITS) else MAX_BODY)
            scope.setdefault("state", {}).update(person=person, name=standing.name, standing=standing)
            receive = Replayed(body, receive)
        await self._inner(scope, receive, send)

    async def _signed_in(self, scope: Scope) -> tuple[Person, Standing]:
        """
        Return who asks, and how they stand now: for the log, and for what is shared among all who may see it.

        Raises:
            NotSignedIn: No token, or one that nobody holds.
            Refused: The address has brought too many of those.
        """
        header = next((value for name, value in scope["headers"] if name == b"authorization"), None)
        hashed = hash_of(token_in(None if header is None else header.decode("latin-1")))
        address = (scope.get("client") or ("",))[0]
        if (seconds := self._sign_ins.wait(address, hashed, now=self._clock.monotonic())) > 0:
            raise Refused(too_many(seconds))
        person = Person(user="api", token_hash=hashed)
        try:
            standing = await run_in_threadpool(self._standing, person)
        except NotSignedIn:
            self._sign_ins.refused(address, hashed, now=self._clock.monotonic())
            raise
        self._sign_ins.known(hashed)
        return person, standing


class _Answer:
    """Sends an answer with the headers that all have; `status` is 0 until it has begun."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.status = 0

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            message = {**message, "headers": [*message.get("headers", ()), *_HEADERS]}
        await self._send(message)


def tell(scope: Scope, status: int, seconds: float) -> None:
    """Log the request by its operation: paths and queries hold ids and keys. Looks that went well are told to nobody."""
    well = status < 400
    if scope["path"] in OPEN or (well and scope["method"] in {"GET", "HEAD"}):
        return
    operation = getattr(scope.get("route"), "name", "-")
    name = scope.get("state", {}).get("name")
    write = _log.info if status < 500 else _log.warning
    write(
        "answered",
        method=scope["method"],
        operation=operation,
        status=status,
        person=name,
        ms=round(seconds * 1000, 1),
    )
