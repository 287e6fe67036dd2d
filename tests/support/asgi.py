"""An ASGI application, asked once without a server."""

import asyncio
from typing import Any, NamedTuple


class Answer(NamedTuple):
    """What it answered."""

    status: int
    headers: dict[bytes, bytes]
    body: str


def answer_of(app: Any, method: str, path: str, *headers: tuple[bytes, bytes], **state: Any) -> Answer:
    """Return what *app* answers to one request, with *state* as what stands before it has found out; its name is localhost."""
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    async def receive() -> Any:
        return {"type": "http.request", "body": b"", "more_body": False}

    host = [] if any(name == b"host" for name, _ in headers) else [(b"host", b"localhost")]
    scope: dict[str, Any] = {"type": "http", "method": method, "path": path, "query_string": b""}
    asyncio.run(app(scope | {"headers": [*headers, *host], "state": state}, receive, send))
    body = b"".join(message.get("body", b"") for message in sent[1:])
    return Answer(sent[0]["status"], dict(sent[0]["headers"]), body.decode())
