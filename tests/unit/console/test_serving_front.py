"""What stands before pages and API on their one port, without a server."""

import asyncio
from typing import Any

import pytest
from fastapi import FastAPI

from packhorse.console.serving.front import Front


def answer_to(method: str, path: str) -> tuple[int, dict[bytes, bytes], bytes]:
    """Return status, headers and body of what a front before two small applications answers."""
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    async def receive() -> Any:
        return {"type": "http.request", "body": b"", "more_body": False}

    scope = {"type": "http", "method": method, "path": path, "query_string": b"", "headers": []}
    asyncio.run(Front(routed("api"), routed("pages"))(scope, receive, send))
    body = b"".join(message["body"] for message in sent[1:])
    return sent[0]["status"], dict(sent[0]["headers"]), body


def routed(name: str) -> FastAPI:
    """Return an application whose routes know GET alone, as those of pages do."""
    app = FastAPI()
    for path in ("/jobs", "/health/live", "/api/v1/jobs"):
        app.add_api_route(path, lambda: name)
    return app


@pytest.mark.parametrize(("path", "by"), [("/jobs", b'"pages"'), ("/health/live", b'"api"')])
def test_head_is_answered_as_get_is_without_the_body(path: str, by: bytes) -> None:
    """Fails when a monitor or a browser that asks by HEAD is refused, or gets a body."""
    status, headers, body = answer_to("GET", path)
    assert (status, body) == (200, by)
    assert answer_to("HEAD", path) == (200, headers, b"")
    assert headers[b"content-length"] == str(len(by)).encode()


def test_head_of_a_page_that_is_not_there_says_so() -> None:
    assert answer_to("HEAD", "/nothing")[0] == 404


def test_the_api_has_the_methods_of_its_document_alone() -> None:
    assert answer_to("HEAD", "/api/v1/jobs")[0] == 405
