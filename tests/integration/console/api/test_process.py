"""`packhorse console` as a process: what it says, how it ends, and what never stands in its log."""

import json
import signal
import subprocess
import threading
from functools import partial
from typing import Any

import httpx
import psycopg
import pytest
from tests.support.cli import packhorse, packhorse_started
from tests.support.console_api import Console, token_for
from tests.support.console_rows import new_id, rested
from tests.support.proxy import free_port
from tests.support.stack import PrivateDatabase
from tests.support.wait import eventually

WHY = "fixed in 1.4.2"
SECRET_KEY = "key-of-ann-private"


class Log:
    """What the process writes, line by line."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self.lines: list[str] = []
        assert process.stderr is not None
        self._stream = process.stderr
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        for line in self._stream:
            self.lines.append(line)

    def named(self, event: str) -> dict[str, Any]:
        """Wait for the line of *event*."""

        def found() -> dict[str, Any] | None:
            rows = [json.loads(line) for line in list(self.lines)]
            return next((row for row in rows if event in row["event"]), None)

        row = eventually(found, what=f"the log says {event!r}", timeout=30)
        assert row is not None
        return row

    def end(self) -> str:
        self._thread.join(timeout=10)
        return "".join(self.lines)


def environ(database: str, **more: str) -> dict[str, str]:
    return {"PACKHORSE_DATABASE_URL": database, "PACKHORSE_LOG_FORMAT": "json"} | more


@pytest.mark.case("X-09")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_lets_the_request_in_hand_end(
    database: str, connection: psycopg.Connection[Any], number: signal.Signals
) -> None:
    """Fails when a signal ends the process before an act in hand is answered, or the process ends with an error."""
    with (
        packhorse_started("console", "--port", 0, **environ(database)) as process,
        psycopg.connect(database) as other,
    ):
        log = Log(process)
        assert "make the first one" in log.named("nobody holds a token")["event"]
        url = log.named("listening")["url"]
        message_id = rested(connection)
        client = httpx.Client(
            base_url=f"{url}/api/v1",
            headers={"Authorization": f"Bearer {token_for(connection, name='olga')}"},
            timeout=30,
        )
        with client:
            order = client.post(f"/quarantine/{message_id}/preview", json={}).json()["order"]
            other.execute("SELECT FROM packhorse.inbox FOR UPDATE")
            answers: list[httpx.Response] = []
            asking = threading.Thread(
                target=lambda: answers.append(
                    client.post(f"/quarantine/{message_id}/redrive", json={"order": order, "why": WHY})
                )
            )
            asking.start()
            eventually(
                lambda: connection.execute("SELECT FROM pg_locks WHERE NOT granted").fetchone() is not None,
                what="the act waits for a row",
            )
            process.send_signal(number)
            log.named("stopping")
            other.rollback()
            asking.join(timeout=20)
            assert answers[0].status_code == 200
        assert process.wait(timeout=20) == 0
        assert '"stopped"' in log.end()


def test_a_console_whose_database_is_frozen_ends_within_its_time(private_database: PrivateDatabase) -> None:
    """Fails when a thread that waits for an answer, or a runner's, keeps the process."""
    settings = {"PACKHORSE_CONSOLE_TIMEOUT": "1", "PACKHORSE_CONSOLE_DRAIN_TIMEOUT": "2"}
    with (
        psycopg.connect(private_database.direct_url, autocommit=True) as connection,
        packhorse_started("console", "--port", 0, **environ(private_database.url, **settings)) as process,
    ):
        log = Log(process)
        url, token = log.named("listening")["url"], token_for(connection)
        ask = partial(httpx.get, f"{url}/api/v1/quarantine", headers={"Authorization": f"Bearer {token}"})
        assert ask(timeout=20).status_code == 200
        private_database.proxy.freeze()
        with pytest.raises(httpx.TimeoutException):
            ask(timeout=0.5)
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=12) == 0


@pytest.mark.case("X-08")
def test_no_token_key_password_or_payload_stands_in_the_log(
    database: str, connection: psycopg.Connection[Any]
) -> None:
    """Fails when a request's path, query, header or body is logged, or an error's text as it is."""
    password = "hunter2xyzzy"
    connection.execute(
        f"CREATE ROLE IF_NOT LOGIN PASSWORD '{password}'".replace("IF_NOT", f"c{new_id().hex}")
    )
    token = token_for(connection)
    message_id = rested(connection, key=SECRET_KEY.encode(), error=f"ValueError: {SECRET_KEY}")
    with packhorse_started(
        "console", "--port", 0, **environ(database, PACKHORSE_CONSOLE_TOKEN=token)
    ) as process:
        log = Log(process)
        url = log.named("listening")["url"]
        stranger = "phk_" + "f" * 64
        with httpx.Client(base_url=f"{url}/api/v1", timeout=30) as client:
            for bearer in (token, stranger, password):
                headers = {"Authorization": f"Bearer {bearer}"}
                for path in (
                    f"/messages/{message_id}?show_key=true",
                    f"/quarantine?group={SECRET_KEY}",
                    f"/quarantine?groop={SECRET_KEY}",
                    f"/{SECRET_KEY}",
                    f"/quarantine/{message_id}/x?{SECRET_KEY}",
                ):
                    client.get(path, headers=headers)
                client.post(
                    f"/quarantine/{message_id}/redrive",
                    headers=headers,
                    json={"order": SECRET_KEY, "why": "x"},
                )
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=20)
        told = log.end()
    assert '"status": 401' in told
    assert '"status": 422' in told
    for secret in (token, token[4:20], stranger, password, SECRET_KEY, str(message_id)):
        assert secret not in told
    assert "quarantine_redrive" in told


@pytest.mark.case("X-08")
def test_an_error_that_nobody_expected_is_a_number(
    console: Console, connection: psycopg.Connection[Any], caplog: pytest.LogCaptureFixture
) -> None:
    """Fails when the text or the trace of an error of ours reaches the caller."""
    rested(connection, error=SECRET_KEY)
    connection.execute(
        "ALTER TABLE packhorse.quarantined_message DROP CONSTRAINT IF EXISTS quarantined_message_state_check;"
        f"UPDATE packhorse.quarantined_message SET state = '{SECRET_KEY}'"
    )
    with console.asked_by(token_for(connection)) as client:
        answer = client.get("/quarantine", params={"state": "all"})
    assert (answer.status_code, answer.json()["code"]) == (500, "unexpected")
    assert SECRET_KEY not in answer.text
    told = [
        vars(record)["packhorse_fields"] for record in caplog.records if record.name == "packhorse.console"
    ]
    numbers = [fields["number"] for fields in told if "number" in fields]
    assert len(numbers) == 1
    assert numbers[0] in answer.json()["detail"]
    assert SECRET_KEY not in str(told)


def test_what_a_stranger_sends_gets_the_headers_that_all_answers_have(console: Console) -> None:
    with console.asked_by(None) as stranger:
        for path in ("/quarantine", "/nowhere", console.url + "/health/live"):
            headers = stranger.get(path).headers
            assert headers["x-content-type-options"] == "nosniff"
            assert headers["cache-control"] == "no-store"
            assert "default-src 'none'" in headers["content-security-policy"]
            assert "frame-ancestors 'none'" in headers["content-security-policy"]
            assert headers["referrer-policy"] == "no-referrer"
            assert "access-control-allow-origin" not in headers
            assert "python" not in headers.get("server", "")


def test_a_port_that_is_taken_is_said_so(console: Console, database: str) -> None:
    port = console.url.rpartition(":")[2]
    found = packhorse("console", "--port", port, PACKHORSE_DATABASE_URL=database)
    assert found.code == 2
    assert f"can't listen on 127.0.0.1:{port}" in found.err
    assert "PACKHORSE_CONSOLE_PORT" in found.err


def test_a_host_that_other_machines_reach_is_warned_of(database: str) -> None:
    port = free_port()
    with packhorse_started("console", "--host", "0.0.0.0", "--port", port, **environ(database)) as process:
        log = Log(process)
        assert "no TLS" in log.named("other machines can connect")["event"]
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=20) == 0


def test_tables_that_are_not_there_end_the_start(empty_database: str) -> None:
    found = packhorse("console", "--port", 0, PACKHORSE_DATABASE_URL=empty_database)
    assert found.code == 3
    assert "packhorse migrate up" in found.err


@pytest.mark.case("O-04")
def test_a_confirmed_redrive_is_worked_on_here_and_left_at_the_end(
    database: str, connection: psycopg.Connection[Any]
) -> None:
    """Fails when a run that was confirmed over the API waits for a command, or a clean stop keeps its lease."""
    message_id = rested(connection)
    with packhorse_started("console", "--port", 0, **environ(database)) as process:
        log = Log(process)
        client = httpx.Client(
            base_url=f"{log.named('listening')['url']}/api/v1",
            headers={"Authorization": f"Bearer {token_for(connection, name='olga')}"},
            timeout=30,
        )
        with client:
            frozen = client.post("/redrives", json={"ids": [str(message_id)]}).json()
            assert (frozen["members"], frozen["state"]) == (1, "previewed")
            answer = client.post(f"/redrives/{frozen['id']}/run", json={"why": WHY}).json()
            assert (answer["state"], answer["confirmed_by"]) == ("running", "olga (token)")

            def asked() -> bool:
                now = client.get(f"/redrives/{frozen['id']}").json()
                return bool(now["worked_on"]) and now["progress"]["asked"] == 1

            eventually(asked, what="the console works on it and has asked for its member", timeout=30)
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=30) == 0
    row = connection.execute(
        "SELECT state, lease_until IS NULL OR lease_until <= clock_timestamp() FROM packhorse.redrive"
    ).fetchone()
    assert row == ("running", True)


def test_without_the_runner_a_run_waits(database: str, connection: psycopg.Connection[Any]) -> None:
    with packhorse_started("console", "--port", 0, "--no-runner", **environ(database)) as process:
        log = Log(process)
        assert log.named("listening")["runner"] is False
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=20) == 0
