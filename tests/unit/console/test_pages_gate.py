"""What stands before every page, without a server: what it says, and what it tells the log."""

import asyncio
import threading
from typing import Any

import pytest

from packhorse.console.api.signing import SignIns
from packhorse.console.pages.doorkeeper import Doorkeeper, Ways
from packhorse.console.pages.fastapi import gate
from packhorse.console.pages.fastapi.gate import PagesGate
from packhorse.console.pages.itsdangerous import Seal
from packhorse.console.pages.origins import Trusted
from packhorse.console.serving import uvicorn
from packhorse.core.clock import SYSTEM_CHANCE, SYSTEM_CLOCK
from packhorse.core.rights import Role, Standing


async def nothing(scope: Any, receive: Any, send: Any) -> None:
    """Be a page that is there, and empty."""
    del scope, receive
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b""})


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """Hear what the log is told: method and status."""
    found: list[tuple[str, int]] = []
    monkeypatch.setattr(gate, "tell", lambda scope, status, seconds: found.append((scope["method"], status)))
    return found


def asked(method: str, path: str, *headers: tuple[bytes, bytes]) -> tuple[int, dict[bytes, bytes]]:
    """Return status and headers of the answer to whoever asks."""
    keeper = Doorkeeper(
        lambda _: Standing(name="ann", role=Role.VIEWER),
        seal=Seal([b"k" * 32]),
        trusted=Trusted(""),
        ways=Ways(),
        user="root",
        clock=SYSTEM_CLOCK,
        secrets=SYSTEM_CHANCE,
        sign_ins=SignIns(),
        tell_link=lambda _: None,
    )
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    async def receive() -> Any:
        return {"type": "http.request", "body": b"", "more_body": False}

    scope = {"type": "http", "method": method, "path": path, "query_string": b"", "headers": list(headers)}
    asyncio.run(PagesGate(nothing, keeper)(scope, receive, send))
    return sent[0]["status"], dict(sent[0]["headers"])


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [("POST", "/keys/pause", 401), ("POST", "/sign-in", 403), ("GET", "/jobs", 303)],
)
def test_acts_and_refusals_of_pages_are_told_to_the_log(
    told: list[tuple[str, int]], method: str, path: str, status: int
) -> None:
    """Fails when somebody tries doors of the page and no line says so."""
    assert asked(method, path)[0] == status
    assert told == [(method, status)]


def test_files_of_the_page_are_not_told(told: list[tuple[str, int]]) -> None:
    assert asked("GET", "/assets/x/page.js")[0] == 200
    assert told == []


def test_browsers_without_tls_can_say_that_a_form_is_ours() -> None:
    """Fails when our own policy makes them say `Origin: null`, and nobody can sign in where Fetch Metadata is not sent."""
    _, headers = asked("GET", "/sign-in")
    assert headers[b"referrer-policy"] == b"same-origin"
    form = (b"content-type", b"application/x-www-form-urlencoded")
    ours = ((b"origin", b"http://10.0.0.5:8400"), (b"host", b"10.0.0.5:8400"), form)
    assert asked("POST", "/sign-in", *ours)[0] == 200


def test_a_thread_that_waits_for_a_frozen_server_does_not_keep_the_process(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Fails when SIGTERM does not end a console whose database is frozen."""
    left, over = list[int](), threading.Event()
    monkeypatch.setattr("os._exit", left.append)
    uvicorn.leave(patience=0.01)
    assert left == []
    stuck = threading.Thread(target=over.wait, args=(5,))
    stuck.start()
    uvicorn.leave(patience=0.01)
    over.set()
    stuck.join()
    assert left == [0]
