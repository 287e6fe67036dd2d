"""The database goes away before, in and after a request; two people act at once; what is said is what is true."""

import threading
from typing import Any

import httpx
import psycopg
import pytest
from tests.support.cli import Ran, packhorse
from tests.support.console_api import Console, console_on, token_for
from tests.support.console_rows import one, rested
from tests.support.lost_commit import commit_without_answer
from tests.support.stack import PrivateDatabase
from tests.support.wait import eventually

WHY = "fixed in 1.4.2"


def body_for(client: httpx.Client, message_id: object) -> dict[str, Any]:
    return {"order": client.post(f"/quarantine/{message_id}/preview", json={}).json()["order"], "why": WHY}


def test_a_database_that_is_away_is_said_so_and_comes_back(private_database: PrivateDatabase) -> None:
    with (
        psycopg.connect(private_database.direct_url, autocommit=True) as connection,
        console_on(private_database.url, timeout=1) as console,
        console.asked_by(token_for(connection)) as client,
    ):
        message_id = rested(connection)
        body = body_for(client, message_id)
        private_database.proxy.cut()
        for answer in (
            client.get("/quarantine"),
            client.post(f"/quarantine/{message_id}/redrive", json=body),
        ):
            assert (answer.status_code, answer.json()["code"]) == (503, "away")
            assert int(answer.headers["retry-after"]) > 0
        ready = client.get(console.url + "/health/ready")
        assert (ready.status_code, ready.json()) == (503, {"ok": False})
        assert client.get(console.url + "/health/live").status_code == 200
        private_database.proxy.resume()
        eventually(
            lambda: client.get("/quarantine").status_code == 200, what="the console answers again", timeout=20
        )
        found = client.get("/quarantine").json()["messages"]
        assert [each["state"] for each in found] == ["quarantined"]
        assert client.post(f"/quarantine/{message_id}/redrive", json=body).status_code == 200


def test_a_frozen_database_holds_no_thread_for_good_and_no_page_that_asks_it_for_nothing(
    private_database: PrivateDatabase,
) -> None:
    """Fails when each request to a server that is silent keeps its thread and connection until somebody thaws it."""
    with (
        psycopg.connect(private_database.direct_url, autocommit=True) as connection,
        console_on(private_database.url, timeout=1, connections=3) as console,
        console.asked_by(token_for(connection)) as client,
    ):
        assert client.get("/quarantine").status_code == 200
        private_database.proxy.freeze()
        answers: list[httpx.Response] = []
        asking = [
            threading.Thread(target=lambda: answers.append(client.get("/quarantine"))) for _ in range(12)
        ]
        for each in asking:
            each.start()
        door = httpx.get(f"{console.url}/sign-in", timeout=3, trust_env=False)
        for each in asking:
            each.join(timeout=30)
        assert door.status_code == 200
        assert [(answer.status_code, answer.json()["code"]) for answer in answers] == [(503, "away")] * 12
        private_database.proxy.resume()
        eventually(
            lambda: client.get("/quarantine").status_code == 200, what="the console answers again", timeout=20
        )


def test_connections_that_the_database_ended_cost_no_request(
    private_database: PrivateDatabase,
) -> None:
    """Fails when a connection is lent without a look at it."""
    with (
        psycopg.connect(private_database.direct_url, autocommit=True) as connection,
        console_on(private_database.url) as console,
        console.asked_by(token_for(connection)) as client,
    ):
        assert client.get("/quarantine").status_code == 200
        for _ in range(3):
            private_database.proxy.reset_connections()
            assert client.get("/quarantine").status_code == 200


def test_an_act_whose_commit_got_no_answer_says_that_it_may_stand(
    private_database: PrivateDatabase,
) -> None:
    """Fails when a lost answer to the commit is told as if nothing had been done."""
    with (
        psycopg.connect(private_database.direct_url, autocommit=True) as connection,
        console_on(private_database.url, timeout=30) as console,
        console.asked_by(token_for(connection)) as client,
    ):
        message_id = rested(connection)
        body = body_for(client, message_id)
        answer = commit_without_answer(
            private_database, lambda: client.post(f"/quarantine/{message_id}/redrive", json=body)
        )
        assert (answer.status_code, answer.json()["code"]) == (503, "away")
        assert "is not known" in answer.json()["detail"]
        second = client.post(f"/quarantine/{message_id}/redrive", json=body)
        assert (second.status_code, second.json()["code"]) == (409, "lost")


@pytest.mark.case("O-02")
def test_two_people_at_the_api_and_at_the_command_line_act_once(
    console: Console, connection: psycopg.Connection[Any], database: str
) -> None:
    """Fails when an act by one face does not see the act by the other, or one of the two is not told who was first."""
    with console.asked_by(token_for(connection, name="olga")) as olga:
        for _ in range(6):
            message_id = rested(connection)
            body = body_for(olga, message_id)
            ran: list[Ran] = []
            start = threading.Barrier(2)

            def at_the_command_line(
                message_id: object = message_id, start: Any = start, ran: Any = ran
            ) -> None:
                start.wait()
                ran.append(
                    packhorse(
                        *("quarantine", "discard", message_id, "--why", WHY, "--yes"),
                        PACKHORSE_DATABASE_URL=database,
                    )
                )

            thread = threading.Thread(target=at_the_command_line)
            thread.start()
            start.wait()
            answer = olga.post(f"/quarantine/{message_id}/redrive", json=body)
            thread.join(timeout=30)
            assert (answer.status_code, ran[0].code) in {(200, 5), (409, 0)}, (answer.text, ran)
            if answer.status_code == 409:
                assert "discard by" in answer.json()["detail"]
            else:
                assert "olga (token)" in ran[0].err
            assert (
                one(connection, "SELECT count(*) FROM packhorse.audit WHERE message_id = %s", message_id) == 1
            )


@pytest.mark.case("O-02")
def test_a_double_click_acts_once(console: Console, connection: psycopg.Connection[Any]) -> None:
    """Fails when two requests with one order are both carried out."""
    token = token_for(connection, name="olga")
    with console.asked_by(token) as olga:
        message_id = rested(connection)
        body = body_for(olga, message_id)
        codes: list[int] = []
        start = threading.Barrier(4)

        def press() -> None:
            with console.asked_by(token) as client:
                start.wait()
                codes.append(client.post(f"/quarantine/{message_id}/redrive", json=body).status_code)

        threads = [threading.Thread(target=press) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(timeout=30)
        assert sorted(codes) == [200, 409, 409, 409]
        assert one(connection, "SELECT count(*) FROM packhorse.audit") == 1
        assert one(connection, "SELECT redrives FROM packhorse.quarantined_message") == 1
