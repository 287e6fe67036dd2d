"""Each route over HTTP, on real tables: what it answers, and that it is what the commands print."""

import base64
import json
from typing import Any

import httpx
import psycopg
import pytest
from tests.support.cli import packhorse
from tests.support.console_api import Console, token_for
from tests.support.console_rows import handled, new_id, recorded, rested

WHY = "fixed in 1.4.2"
ID = "019b76da-a800-7000-8000-000000000000"


def count(connection: psycopg.Connection[Any], table: str) -> int:
    row = connection.execute(f"SELECT count(*) FROM packhorse.{table}").fetchone()
    return 0 if row is None else int(row[0])


def cursor(*parts: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(parts).encode()).decode().rstrip("=")


def printed(database: str, *arguments: object) -> Any:
    return packhorse(*arguments, "--json", PACKHORSE_DATABASE_URL=database).json()


@pytest.mark.case("X-01", "X-02")
def test_the_status_of_a_message_is_what_the_command_prints(
    viewer: httpx.Client, connection: psycopg.Connection[Any], database: str
) -> None:
    """Fails when a face adds a judgement of its own, or an unknown id is no answer."""
    waits, resting, unknown = recorded(connection), rested(connection), new_id()
    handled(connection, waits, group="billing")
    for message_id in (waits, resting, unknown):
        answer = viewer.get(f"/messages/{message_id}")
        assert answer.status_code == 200
        told = printed(database, "status", message_id)
        assert answer.json() | {"now": None} == told | {"now": None}
    assert viewer.get(f"/messages/{unknown}").json()["known"] is False


def test_pages_and_one_message_are_what_the_commands_print(
    viewer: httpx.Client, connection: psycopg.Connection[Any], database: str
) -> None:
    ids = [rested(connection, headers=[["origin", "dGVzdA=="]]) for _ in range(3)]
    rested(connection, group="billing", reason="permanent")
    page = viewer.get("/quarantine", params={"limit": 2, "group": "figures"})
    assert page.json() == printed(database, "quarantine", "list", "--limit", 2, "--group", "figures")
    rest = viewer.get("/quarantine", params={"limit": 2, "group": "figures", "after": page.json()["next"]})
    assert [each["id"] for each in page.json()["messages"] + rest.json()["messages"]] == [
        str(each) for each in reversed(ids)
    ]
    shown = viewer.get(f"/quarantine/{ids[0]}")
    assert shown.json() == printed(database, "quarantine", "show", ids[0])
    assert shown.json()["headers"] == [["origin", "test"]]


def test_what_is_paused_is_listed_of_one_group_or_of_all(operator: httpx.Client, database: str) -> None:
    """Fails when whoever does not know which group was paused has to guess it."""
    assert operator.get("/pauses").json() == {"groups": []}
    for group in ("figures", "billing"):
        ahead = {"group": group, "anyway": True, "why": WHY}
        assert operator.post("/pauses/pause", json=ahead).status_code == 200
    everywhere = operator.get("/pauses").json()
    assert everywhere == printed(database, "processor", "paused")
    assert [each["group"] for each in everywhere["groups"]] == ["billing", "figures"]
    one = operator.get("/pauses", params={"group": "billing"}).json()
    assert one == {"groups": [printed(database, "processor", "paused", "--group", "billing")]}
    assert operator.get("/pauses", params={"group": "nobody"}).status_code == 404


def test_a_key_is_shown_only_where_it_is_asked_for(
    viewer: httpx.Client, connection: psycopg.Connection[Any]
) -> None:
    message_id = rested(connection, key=b"N14228")
    recorded(connection, id=message_id)
    for path in (f"/messages/{message_id}", f"/quarantine/{message_id}", "/quarantine"):
        assert "N14228" not in viewer.get(path).text
        assert "N14228" in viewer.get(path, params={"show_key": "true"}).text


@pytest.mark.case("O-07")
def test_a_redrive_is_previewed_and_then_asked_for(
    operator: httpx.Client, connection: psycopg.Connection[Any]
) -> None:
    """Fails when the answer to an act says more than that it was asked for."""
    message_id = rested(connection)
    before = count(connection, "audit")
    preview = operator.post(f"/quarantine/{message_id}/preview", json={"act": "redrive"})
    assert preview.status_code == 200
    assert count(connection, "audit") == before
    asked = operator.post(
        f"/quarantine/{message_id}/redrive", json={"order": preview.json()["order"], "why": WHY}
    )
    assert asked.status_code == 200
    assert (asked.json()["state"], asked.json()["actor"]) == ("asked", "olga (token)")
    status = operator.get(f"/messages/{message_id}").json()
    assert [group["redrive"] for group in status["groups"]] == ["asked"]
    assert [(act["act"], act["actor"], act["why"]) for act in status["acts"]] == [
        ("redrive", "olga (token)", WHY)
    ]


def test_a_discard_is_previewed_and_done(operator: httpx.Client, connection: psycopg.Connection[Any]) -> None:
    message_id = rested(connection)
    order = operator.post(f"/quarantine/{message_id}/preview", json={"act": "discard"}).json()["order"]
    done = operator.post(f"/quarantine/{message_id}/discard", json={"order": order, "why": WHY})
    assert (done.status_code, done.json()["state"]) == (200, "discarded")
    assert operator.get("/quarantine", params={"state": "discarded"}).json()["messages"][0]["id"] == str(
        message_id
    )


@pytest.mark.case("O-02")
def test_an_order_is_good_once(operator: httpx.Client, connection: psycopg.Connection[Any]) -> None:
    """Fails when the act takes what is there now instead of what was previewed."""
    message_id = rested(connection)
    body = {
        "order": operator.post(f"/quarantine/{message_id}/preview", json={}).json()["order"],
        "why": WHY,
    }
    assert operator.post(f"/quarantine/{message_id}/redrive", json=body).status_code == 200
    for act in ("redrive", "discard"):
        second = operator.post(f"/quarantine/{message_id}/{act}", json=body)
        assert (second.status_code, second.json()["code"]) == (409, "lost")
        assert "redrive by olga (token)" in second.json()["detail"]
    assert count(connection, "audit") == 1


def test_what_is_not_known_is_said_so(operator: httpx.Client, connection: psycopg.Connection[Any]) -> None:
    gone = operator.get(f"/quarantine/{new_id()}")
    assert (gone.status_code, gone.json()["code"]) == (404, "unknown-id")
    assert gone.headers["content-type"] == "application/problem+json"
    nowhere = operator.get("/nowhere")
    assert (nowhere.status_code, nowhere.json()["code"]) == (404, "no-such-route")
    wrong = operator.put("/quarantine")
    assert (wrong.status_code, wrong.json()["code"], wrong.headers["allow"]) == (405, "no-such-method", "GET")
    assert operator.delete("/redrives").headers["allow"] == "GET, POST"
    assert operator.delete(f"/redrives/{7}/run").headers["allow"] == "POST"


@pytest.mark.parametrize(
    ("params", "where"),
    [
        ({"groop": "figures"}, "query.groop"),
        ({"limit": "0"}, "query.limit"),
        ({"limit": "1001"}, "query.limit"),
        ({"state": "gone"}, "query.state"),
        ({"group": "a\x00b"}, "query.group"),
    ],
)
def test_a_filter_that_is_wrong_is_refused_and_not_ignored(
    viewer: httpx.Client, params: dict[str, str], where: str
) -> None:
    """Fails when a mistyped filter lets everything pass."""
    answer = viewer.get("/quarantine", params=params)
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid")
    assert [each["where"] for each in answer.json()["errors"]] == [where]


def test_a_mistyped_filter_is_told_with_those_that_are_known(viewer: httpx.Client) -> None:
    """Fails when a person has to look for the names elsewhere."""
    (wrong,) = viewer.get("/quarantine", params={"grup": "a"}).json()["errors"]
    assert wrong["where"] == "query.grup"
    assert wrong["said"].startswith("is not known here; known are: group, topic, ")


@pytest.mark.parametrize(
    "after", ["x", "W10", "bnVsbA", "WyIyMDI2LTAxLTAxVDAwOjAwOjAwKzAwOjAwIiwgIngiLCAxLCAyXQ"]
)
def test_a_cursor_of_nobodys_is_refused(viewer: httpx.Client, after: str) -> None:
    answer = viewer.get("/quarantine", params={"after": after})
    assert (answer.status_code, answer.json()["code"]) == (404, "no-such-page")


def test_an_order_of_another_message_is_refused(
    operator: httpx.Client, connection: psycopg.Connection[Any]
) -> None:
    one, other = rested(connection), rested(connection)
    order = operator.post(f"/quarantine/{one}/preview", json={}).json()["order"]
    answer = operator.post(f"/quarantine/{other}/redrive", json={"order": order, "why": WHY})
    assert (answer.status_code, answer.json()["code"]) == (409, "other-message")
    assert count(connection, "audit") == 0


@pytest.mark.parametrize(
    "body",
    [
        b"{",
        b"[]",
        b"\xff",
        b'{"act": "redrive", "act2": 1}',
        b'{"group": "\\ud800"}',
        b'{"group": "\\u0000"}',
        b'{"group": ' + b"1" * 5_000 + b"}",
        b"[" * 100_000,
        b'{"group": ' + b'{"a":' * 50_000 + b"1" + b"}" * 50_000 + b"}",
    ],
    ids=["broken", "list", "bytes", "unknown", "surrogate", "nul", "long number", "deep", "deeper"],
)
def test_a_body_that_is_wrong_is_a_problem_and_no_error_of_ours(
    operator: httpx.Client, connection: psycopg.Connection[Any], body: bytes
) -> None:
    message_id = rested(connection)
    answer = operator.post(
        f"/quarantine/{message_id}/preview", content=body, headers={"Content-Type": "application/json"}
    )
    assert answer.status_code in {400, 422}
    assert answer.headers["content-type"] == "application/problem+json"


def test_a_body_that_is_too_large_is_refused(operator: httpx.Client) -> None:
    answer = operator.post(f"/quarantine/{new_id()}/preview", content=b" " * (1 << 20) + b"{}")
    assert (answer.status_code, answer.json()["code"]) == (413, "too-large")


@pytest.mark.case("O-13")
def test_an_admin_gives_rights_to_users_and_takes_them(
    console: Console, connection: psycopg.Connection[Any]
) -> None:
    """Fails when a user's name is taken for a role's, or one that hides what it is gets rights."""
    with console.asked_by(token_for(connection, "admin", name="anna")) as admin:
        body = {"name": "ann@example.org", "role": "operator", "personal": True, "lasts": 3600, "why": WHY}
        given = admin.post("/operators/users", json=body)
        assert (given.status_code, given.json()["before"], given.json()["may_connect"]) == (200, None, True)
        one = given.json()["after"]
        assert (one["kind"], one["name"], one["personal"], one["gone"]) == (
            "user",
            "ann@example.org",
            True,
            False,
        )
        assert one["made_by"] == "anna (token)"
        assert one in admin.get("/operators").json()["operators"]
        for name in ("", "x" * 64, "a\nb", "a\u202eb", " ann"):
            refused = admin.post("/operators/users", json=body | {"name": name})
            assert refused.status_code in {400, 422}, name
        removing = {"kind": "role", "name": "ann@example.org", "why": WHY}
        assert admin.post("/operators/remove", json=removing).status_code == 404
        removed = admin.post("/operators/remove", json=removing | {"kind": "user"})
        assert (removed.status_code, removed.json()["before"]["kind"], removed.json()["after"]) == (
            200,
            "user",
            None,
        )
