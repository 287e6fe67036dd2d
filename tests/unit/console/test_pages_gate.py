"""What stands before every page, without a server: what it says, and what it tells the log."""

import html
import shlex
import threading
from typing import Any

import pytest
from tests.support.asgi import Answer, answer_of

from packhorse.console.api.hosts import Hosts
from packhorse.console.api.signing import SignIns
from packhorse.console.pages.doorkeeper import Doorkeeper, Ways
from packhorse.console.pages.fastapi import gate
from packhorse.console.pages.fastapi.gate import PagesGate
from packhorse.console.pages.itsdangerous import Seal
from packhorse.console.pages.origins import Trusted
from packhorse.console.serving import uvicorn
from packhorse.core.clock import SYSTEM_CHANCE, SYSTEM_CLOCK
from packhorse.core.person import Person
from packhorse.core.rights import Standing, standing_of

PROXY = "192.0.2.7"


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


def standing(person: Person) -> Standing:
    """Know the console itself, and of those whom the proxy signs in bob."""
    is_known = person.is_role or person.signed_in == "bob"
    row = ("ann", "viewer", False, False, False) if is_known else (None, None, None, None, None)
    return standing_of(row, by_token=person.token_hash is not None, signed_in=person.signed_in)


def answered(method: str, path: str, *headers: tuple[bytes, bytes]) -> Answer:
    """Return the answer to whoever asks through the proxy."""
    keeper = Doorkeeper(
        standing,
        seal=Seal([b"k" * 32]),
        trusted=Trusted(PROXY),
        ways=Ways(user_header="x-user"),
        user="root",
        clock=SYSTEM_CLOCK,
        secrets=SYSTEM_CHANCE,
        sign_ins=SignIns(),
        tell_link=lambda _: None,
    )
    return answer_of(
        PagesGate(nothing, keeper, hosts=Hosts("10.0.0.5", "")), method, path, *headers, peer=PROXY
    )


def asked(method: str, path: str, *headers: tuple[bytes, bytes]) -> tuple[int, dict[bytes, bytes]]:
    """Return status and headers alone."""
    return answered(method, path, *headers)[:2]


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


@pytest.mark.parametrize(("host", "name"), [("localhost:8401", "packhorse-8401"), ("localhost", "packhorse")])
def test_a_session_is_kept_under_the_port_that_was_asked_for(host: str, name: str) -> None:
    """Fails when consoles on two ports of one host write over each other's sessions."""
    status, headers, _ = answered("GET", "/jobs", (b"host", host.encode()), (b"x-user", b"bob"))
    assert (status, headers[b"set-cookie"].partition(b"=")[0]) == (200, name.encode())


@pytest.mark.parametrize("path", ["/", "/sign-in", "/assets/x/page.js"])
def test_a_page_of_elsewhere_whose_name_leads_here_gets_nothing(path: str) -> None:
    """Fails when a name that somebody lets lead to our address makes our pages theirs to read."""
    status, _, page = answered("GET", path, (b"host", b"evil.example:8400"), (b"x-user", b"ann"))
    assert (status, "PACKHORSE_CONSOLE_HOSTS" in page, "ann" in page) == (421, True, False)


@pytest.mark.parametrize(
    ("method", "path"), [("GET", "/"), ("GET", "/sign-in"), ("GET", "/jobs"), ("POST", "/sign-in/link")]
)
def test_whom_the_proxy_signs_in_without_rights_is_told_who_they_are_and_what_gives_them_some(
    told: list[tuple[str, int]], method: str, path: str
) -> None:
    """Fails when they are asked to sign in, which they are, and sign in again and again."""
    name = "o'neil@example.org"
    status, headers, page = answered(method, path, (b"x-user", name.encode()))
    text = html.unescape(page)
    assert (status, b"location" in headers, told) == (403, False, [(method, 403)])
    assert f"You are signed in as <b>{name}</b>" in text
    assert f"packhorse operators add {shlex.quote(name)} --user --role viewer" in text
    assert 'href="/sign-in"' not in page


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
