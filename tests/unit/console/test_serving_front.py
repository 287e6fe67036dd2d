"""What stands before pages and API on their one port, without a server."""

import pytest
from fastapi import FastAPI
from tests.support.asgi import Answer, answer_of

from packhorse.console.serving.front import Front


def answer_to(method: str, path: str) -> Answer:
    """Return what a front before two small applications answers."""
    return answer_of(Front(routed("api"), routed("pages")), method, path)


def routed(name: str) -> FastAPI:
    """Return an application whose routes know GET alone, as those of pages do."""
    app = FastAPI()
    for path in ("/jobs", "/health/live", "/api/v1/jobs"):
        app.add_api_route(path, lambda: name)
    return app


@pytest.mark.parametrize(("path", "by"), [("/jobs", '"pages"'), ("/health/live", '"api"')])
def test_head_is_answered_as_get_is_without_the_body(path: str, by: str) -> None:
    """Fails when a monitor or a browser that asks by HEAD is refused, or gets a body."""
    status, headers, body = answer_to("GET", path)
    assert (status, body) == (200, by)
    assert answer_to("HEAD", path) == (200, headers, "")
    assert headers[b"content-length"] == str(len(by)).encode()


def test_head_of_a_page_that_is_not_there_says_so() -> None:
    assert answer_to("HEAD", "/nothing").status == 404


def test_the_api_has_the_methods_of_its_document_alone() -> None:
    assert answer_to("HEAD", "/api/v1/jobs").status == 405
