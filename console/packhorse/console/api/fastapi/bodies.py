"""Bodies of requests: bounded in size and time, read before anybody behind the gate sees a byte."""

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from packhorse.console.api.problem import Refused, of_status

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

MAX_BODY = 1 << 20
"""Bytes of a request's body, at most."""
BODY_WITHIN = 30.0
"""Seconds that a body may take to arrive."""


class Replayed:
    """Gives a body that was read before, then whatever comes."""

    def __init__(self, body: bytes, receive: Receive) -> None:
        self._body: bytes | None = body
        self._receive = receive

    async def __call__(self) -> Message:
        if self._body is None:
            return await self._receive()
        body, self._body = self._body, None
        return {"type": "http.request", "body": body, "more_body": False}


async def body_of(receive: Receive, limit: int) -> bytes:
    """
    Return the body of a request.

    Raises:
        Refused: It has more than *limit* bytes, takes too long, or ends in the middle.
    """
    try:
        async with asyncio.timeout(BODY_WITHIN):
            return await _read(receive, limit)
    except TimeoutError:
        raise Refused(of_status(408, f"the body did not arrive within {BODY_WITHIN:g} s")) from None


async def _read(receive: Receive, limit: int) -> bytes:
    parts: list[bytes] = []
    size, more = 0, True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise Refused(of_status(400, "the connection ended before the body did"))
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > limit:
            raise Refused(of_status(413, f"the body has more than {limit} bytes, the limit"))
        more = message.get("more_body", False)
    return b"".join(parts)
