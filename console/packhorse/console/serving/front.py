"""One port for the API, the pages and the questions about health: who answers goes by the path. No I/O."""

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]


class Front:
    """Hand each request to the API or to the pages; *pages* is None where they are not served."""

    def __init__(self, api: App, pages: App | None) -> None:
        self._api = api
        self._pages = pages

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Hand on one request."""
        path: str = scope.get("path", "")
        is_page = scope["type"] == "http" and not path.startswith(("/api/", "/health/"))
        if is_page and self._pages is not None:
            await self._pages(scope, receive, send)
        else:
            await self._api(scope, receive, send)
