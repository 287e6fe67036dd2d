"""Who may ask what: every route there is, by whoever has no token, a wrong one, or too few rights."""

from collections.abc import Iterator
from typing import Any

import httpx
import psycopg
import pytest
from tests.support.console_api import Console, console_on, token_for
from tests.support.console_grounds import world_on
from tests.support.console_rows import new_id
from tests.support.console_world import CALLS, World, operations
from tests.support.whole_schema import content

from packhorse.console.api.signing import SignIns
from packhorse.core.clock import SYSTEM_CHANCE
from packhorse.core.rights import Right, Role, Standing
from packhorse.local.settings import Endpoints

LOOKS_BY_POST = {
    *("quarantine_preview", "quarantine_restore_preview", "offsets_preview", "job_redrive_preview")
}
"""Operations that are no GET and yet change nothing: the one place to add to, after a look at what they do."""


def document_of(client: httpx.Client) -> dict[str, Any]:
    found: dict[str, Any] = client.get("/openapi.json").json()
    return found


@pytest.fixture
def world(
    database: str, stack: Endpoints, topic_prefix: str, connection: psycopg.Connection[Any]
) -> Iterator[tuple[Console, World]]:
    """Provide a console with a broker, and what it can be asked about."""
    with world_on(database, stack, connection, topic_prefix, sign_ins=SignIns(burst=10_000)) as found:
        yield found


@pytest.mark.case("O-13")
def test_every_route_is_marked_with_the_right_that_it_needs(viewer: httpx.Client) -> None:
    """Fails when a route that changes something is marked as a look, or can't be tried below."""
    for operation in operations(document_of(viewer)):
        looks = operation.method == "get" or operation.name in LOOKS_BY_POST
        assert (operation.right == "see") == looks, operation
        assert operation.name in CALLS, (
            f"say in tests/support/console_world.py how {operation.name} is asked for"
        )


@pytest.mark.case("O-13")
@pytest.mark.timeout(240)
@pytest.mark.parametrize("who", ["viewer", "operator", "admin", "admin who may see and edit"])
def test_everybody_can_do_what_their_rights_say_and_nothing_else(
    world: tuple[Console, World], connection: psycopg.Connection[Any], who: str
) -> None:
    """Fails when one act is carried out, or half of it, before its right is checked in its own transaction; or is refused to all."""
    console, about = world
    role, every = who.partition(" ")[0], " " in who
    token = token_for(connection, role, name="somebody", personal=every, edit=every)
    rights = Standing(name="x", role=Role(role), personal=every, edit=every).rights
    with console.asked_by(token) as client:
        for operation in operations(document_of(client)):
            calling = about.made(operation)
            before = content(connection)
            answer = about.ask(client, operation, calling)
            if Right(operation.right) in rights:
                assert answer.status_code == 200, (operation, answer.text)
            else:
                assert (answer.status_code, answer.json()["code"]) == (403, "forbidden"), (
                    operation,
                    answer.text,
                )
                assert "somebody" in answer.json()["detail"]
            if Right(operation.right) is Right.SEE or answer.status_code != 200:
                assert content(connection) == before, operation


@pytest.mark.case("O-13")
@pytest.mark.parametrize("kind", ["none", "unknown", "no token's form", "expired"])
def test_without_a_token_there_is_nothing(
    world: tuple[Console, World], connection: psycopg.Connection[Any], kind: str
) -> None:
    """Fails when one route, the document among them, answers whoever comes."""
    console, about = world
    brought = {
        "none": None,
        "unknown": "phk_" + "0" * 64,
        "no token's form": "x",
        "expired": token_for(connection, expires="now() - interval '1 second'"),
    }[kind]
    with console.asked_by(brought) as stranger:
        for operation in operations(document_of(about.reader)):
            answer = about.call(stranger, operation)
            assert (answer.status_code, answer.json()["code"]) == (401, "not-signed-in"), operation
            assert answer.headers["www-authenticate"].startswith("Bearer")
        for path in ("/openapi.json", "/nowhere", "/./docs", "/quarantine?limit=0"):
            assert stranger.get(path).status_code == 401
        assert stranger.post(f"/quarantine/{new_id()}/preview", content=b"{").status_code == 401


@pytest.mark.case("O-13")
def test_nobody_has_a_token_out_of_the_box(console: Console) -> None:
    """Fails when the console has a first token of its own, or none is needed while there is none."""
    with console.asked_by(None) as stranger:
        assert stranger.get("/quarantine").status_code == 401
        for path in ("/docs", "/redoc", "/openapi.json", "/", "/quarantine", "/people"):
            door = stranger.get(console.url + path)
            assert (door.status_code, door.headers["location"].partition("?")[0]) == (303, "/sign-in"), path
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
    message_id, body = World(connection=connection, reader=operator).order("redrive")
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


@pytest.mark.case("O-14")
@pytest.mark.timeout(240)
def test_the_record_says_who_what_which_and_why_and_holds_no_text_of_a_message(
    world: tuple[Console, World], connection: psycopg.Connection[Any]
) -> None:
    """Fails when an act leaves no row, or one with a payload, a key, a header, an error's text, or a token."""
    console, about = world
    secret = "ann.private@example.org"
    connection.execute(
        "CREATE FUNCTION plant() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN NEW.error := NEW.error || ': ' || TG_ARGV[0];"
        " NEW.key := TG_ARGV[0]::bytea; NEW.headers := jsonb_build_array(jsonb_build_array('actor',"
        " encode(TG_ARGV[0]::bytea, 'base64'))); RETURN NEW; END$$;"
        "CREATE TRIGGER plants BEFORE INSERT ON packhorse.quarantined_message FOR EACH ROW EXECUTE FUNCTION"
        f" plant('{secret}')"
    )
    token = token_for(connection, "admin", name="somebody", personal=True, edit=True)
    with console.asked_by(token) as client:
        acts = [one for one in operations(document_of(client)) if one.right != "see"]
        for operation in acts:
            assert about.call(client, operation).status_code == 200, operation
    rows = connection.execute(
        "SELECT actor, act, why, a::text FROM packhorse.audit AS a WHERE actor LIKE 'somebody%'"
    ).fetchall()
    assert len(rows) >= len(acts) - len({"purge_preview", "quarantine_edit_preview", "resume"})
    for actor, act, why, text in rows:
        assert actor == "somebody (token)"
        assert why or act in {"note", "replay-plan", "redrive-preview"}, (act, text)
        for told in (secret, token, "ann.private"):
            assert told not in text
