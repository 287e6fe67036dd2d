"""One port for the API, the pages and the questions about health: who answers goes by the path. No I/O."""

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

Message = MutableMapping[str, Any]
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

_API = "/api/"


class Front:
    """
    Hand each request to the API or to the pages; *pages* is None where they are not served.

    HEAD of a page, a file or the health is answered as GET is, without the body. The API has the methods of its document alone.
    """

    def __init__(self, api: App, pages: App | None) -> None:
        self._api = api
        self._pages = pages

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Hand on one request."""
        path: str = scope.get("path", "")
        if scope.get("method") == "HEAD" and not path.startswith(_API):
            scope, send = {**scope, "method": "GET"}, _without_body(send)
        is_page = scope["type"] == "http" and not path.startswith((_API, "/health/"))
        if is_page and self._pages is not None:
            await self._pages(scope, receive, send)
        else:
            await self._api(scope, receive, send)


def _without_body(send: Send) -> Send:
    async def bodiless(message: Message) -> None:
        await send({**message, "body": b""} if message["type"] == "http.response.body" else message)

    return bodiless
