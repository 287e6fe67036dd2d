"""Who may ask what: every route there is, by whoever has no token, a wrong one, or too few rights."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import httpx
import psycopg
import pytest
from tests.support.console_api import Console, console_on, token_for
from tests.support.console_rows import rested
from tests.support.whole_schema import content

from packhorse.console.api.signing import SignIns
from packhorse.core.clock import SYSTEM_CHANCE

WHY = "fixed in 1.4.2"
LOOKS_BY_POST = {"quarantine_preview"}
"""Operations that are no GET and yet change nothing: the one place to add to, after a look at what they do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    name: str
    method: str
    path: str
    right: str


def operations(document: dict[str, Any]) -> list[Operation]:
    return [
        Operation(name=found["operationId"], method=method, path=path, right=found["x-right"])
        for path, methods in document["paths"].items()
        for method, found in methods.items()
    ]


def document_of(client: httpx.Client) -> dict[str, Any]:
    found: dict[str, Any] = client.get("/openapi.json").json()
    return found


def order(client: httpx.Client, message_id: UUID, act: str) -> dict[str, Any]:
    preview = client.post(f"/quarantine/{message_id}/preview", json={"act": act})
    return {"order": preview.json()["order"], "why": WHY}


BODIES: dict[str, Callable[[httpx.Client, UUID], Any]] = {
    "quarantine_preview": lambda client, message_id: {"act": "redrive"},
    "quarantine_redrive": lambda client, message_id: order(client, message_id, "redrive"),
    "quarantine_discard": lambda client, message_id: order(client, message_id, "discard"),
}
"""A body for each operation that takes one, good enough to be carried out for somebody who has the right."""


def call(client: httpx.Client, operation: Operation, *, message_id: UUID, reader: httpx.Client) -> Any:
    """Ask for *operation* as well as it can be asked for."""
    made = BODIES.get(operation.name)
    body = None if made is None else made(reader, message_id)
    path = re.sub(r"\{message_id\}", str(message_id), operation.path.removeprefix("/api/v1"))
    assert "{" not in path, f"say in the test what {operation.path} stands for"
    return client.request(operation.method, path, json=body)


@pytest.mark.case("O-13")
def test_every_route_is_marked_with_the_right_that_it_needs(viewer: httpx.Client) -> None:
    """Fails when a route that changes something is marked as a look, or an act can't be tried below."""
    for operation in operations(document_of(viewer)):
        looks = operation.method == "get" or operation.name in LOOKS_BY_POST
        assert (operation.right == "see") == looks, operation
        assert operation.method == "get" or operation.name in BODIES, f"give {operation.name} a body"


@pytest.mark.case("O-13")
def test_a_viewer_can_look_and_can_do_nothing(
    viewer: httpx.Client, connection: psycopg.Connection[Any]
) -> None:
    """Fails when one act is carried out, or half of it, before its right is checked in its own transaction."""
    message_id = rested(connection)
    before = content(connection)
    for operation in operations(document_of(viewer)):
        answer = call(viewer, operation, message_id=message_id, reader=viewer)
        expected = 200 if operation.right == "see" else 403
        assert answer.status_code == expected, (operation, answer.text)
        if expected == 403:
            assert answer.json()["code"] == "forbidden"
            assert "viewer" in answer.json()["detail"]
        assert content(connection) == before, operation


@pytest.mark.case("O-13")
def test_an_operator_can_do_what_the_viewer_could_not(
    operator: httpx.Client, connection: psycopg.Connection[Any]
) -> None:
    """Fails when the calls that a viewer is refused would be refused to everybody, so that the refusal proves nothing."""
    for operation in operations(document_of(operator)):
        if operation.right == "act":
            answer = call(operator, operation, message_id=rested(connection), reader=operator)
            assert answer.status_code == 200, (operation, answer.text)


@pytest.mark.case("O-13")
@pytest.mark.parametrize("kind", ["none", "unknown", "no token's form", "expired"])
def test_without_a_token_there_is_nothing(
    database: str, connection: psycopg.Connection[Any], kind: str
) -> None:
    """Fails when one route, the document among them, answers whoever comes."""
    message_id = rested(connection)
    brought = {
        "none": None,
        "unknown": "phk_" + "0" * 64,
        "no token's form": "x",
        "expired": token_for(connection, expires="now() - interval '1 second'"),
    }[kind]
    with (
        console_on(database, sign_ins=SignIns(burst=1_000)) as console,
        console.asked_by(token_for(connection, "viewer")) as viewer,
        console.asked_by(brought) as stranger,
    ):
        for operation in operations(document_of(viewer)):
            answer = call(stranger, operation, message_id=message_id, reader=viewer)
            assert (answer.status_code, answer.json()["code"]) == (401, "not-signed-in"), operation
            assert answer.headers["www-authenticate"].startswith("Bearer")
        for path in ("/openapi.json", "/nowhere", "/../../docs", "/quarantine?limit=0"):
            assert stranger.get(path).status_code == 401
        assert stranger.post(f"/quarantine/{message_id}/preview", content=b"{").status_code == 401


@pytest.mark.case("O-13")
def test_nobody_has_a_token_out_of_the_box(console: Console) -> None:
    """Fails when the console has a first token of its own, or none is needed while there is none."""
    with console.asked_by(None) as stranger:
        assert stranger.get("/quarantine").status_code == 401
        for path in ("/docs", "/redoc", "/openapi.json", "/"):
            assert stranger.get(console.url + path).status_code == 401
        assert stranger.get(console.url + "/health/live").json() == {"ok": True}
        assert stranger.get(console.url + "/health/ready").json() == {"ok": True}


@pytest.mark.case("O-13")
@pytest.mark.parametrize(
    ("withdrawn", "status"),
    [
        ("UPDATE packhorse.operator SET role = 'viewer'", 403),
        ("DELETE FROM packhorse.operator", 401),
        ("UPDATE packhorse.operator SET expires_at = now()", 401),
    ],
)
def test_a_right_that_is_withdrawn_after_the_preview_is_gone(
    operator: httpx.Client, connection: psycopg.Connection[Any], withdrawn: str, status: int
) -> None:
    """Fails when the right of the preview, or of an earlier request, counts for the act."""
    message_id = rested(connection)
    body = order(operator, message_id, "redrive")
    connection.execute(withdrawn)
    before = content(connection)
    assert operator.post(f"/quarantine/{message_id}/redrive", json=body).status_code == status
    assert content(connection) == before


def test_who_brings_wrong_tokens_again_and_again_has_to_wait(
    database: str, connection: psycopg.Connection[Any]
) -> None:
    """Fails when refused tokens go on to be looked up, or when they shut out somebody who shares the address."""
    with console_on(database, sign_ins=SignIns(burst=3, every=3600)) as console:
        good = token_for(connection)
        with console.asked_by(good) as known:
            assert known.get("/quarantine").status_code == 200
            codes = []
            for _ in range(5):
                with console.asked_by("phk_" + SYSTEM_CHANCE.token().hex) as stranger:
                    answer = stranger.get("/quarantine")
                    codes.append(answer.status_code)
            assert codes == [401, 401, 401, 429, 429]
            assert 0 < int(answer.headers["retry-after"]) <= 3601
            assert known.get("/quarantine").status_code == 200
