"""The whole API, asked all that its document allows and what it does not, on real tables full of planted texts."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest
from tests.support.console_api import Console, console_on, token_for
from tests.support.console_rows import handled, new_id, recorded, rested
from tests.support.console_world import World, operations
from tests.support.job_rows import effect, stopped, uncertain

from packhorse.console.api.signing import SignIns

SEED = 20_260_801
EXAMPLES = 8
"""For each operation, besides the cases that the document's own limits give."""
EVIL = '<script>alert(1)</script>\x1b[2J\x1b]0;x\x07\u202e=HYPERLINK("http://x")\r\nSet-Cookie: x=y'


def planted(connection: psycopg.Connection[Any]) -> None:
    """Put rows into every table that answers are made of, with texts that somebody may take for something else."""
    for number in range(6):
        group = ("figures", "billing")[number % 2]
        message_id = rested(
            connection,
            recorded(connection, key=EVIL.replace("\x00", "")),
            group=group,
            topic="airline.aircraft" if number % 3 else EVIL,
            key=EVIL.encode(),
            error=EVIL,
            reason="permanent" if number % 2 else EVIL,
            tenant=EVIL,
            type=EVIL,
            payload=EVIL.encode(),
            headers=[[EVIL, "PHNjcmlwdD4bWzJK"], ["origin", None]],
        )
        handled(connection, message_id, group="third", outcome="retry")
    handled(connection, outcome="skipped", error=EVIL)
    names: dict[str, Any] = dict.fromkeys(
        ("type", "tenant", "request_key", "one_running", "correlation_id"), EVIL
    )
    effect(connection, uncertain(connection, **names), EVIL, answer={EVIL: EVIL})
    stopped(connection, reason=EVIL)


CONFIG = """
[checks.not_a_server_error]
expected-statuses = ["2xx", "4xx", "503"]  # 503: there is no broker here

[checks.negative_data_rejection]
expected-statuses = ["400", "401", "403", "404", "405", "409", "413", "422", "5xx"]

[checks.positive_data_acceptance]
# 400: what the document can't say, such as a time that ends before it begins. 422 stays what the document says.
expected-statuses = ["2xx", "400", "401", "403", "404", "409", "5xx"]
"""


@pytest.fixture
def planted_console(database: str, connection: psycopg.Connection[Any]) -> Iterator[Console]:
    planted(connection)
    with console_on(database, sign_ins=SignIns(burst=100_000)) as console:
        yield console


@pytest.mark.timeout(180)
def test_what_the_document_says_holds_whatever_is_asked(
    planted_console: Console, connection: psycopg.Connection[Any], tmp_path: Path
) -> None:
    """Fails when an answer is none that the document names, a wrong request is taken, a right one refused, or an error is ours."""
    token = token_for(connection, "admin", personal=True, edit=True)
    (tmp_path / "schemathesis.toml").write_text(CONFIG)
    ran = subprocess.run(
        [
            *(sys.executable, "-m", "schemathesis.cli", "run", f"{planted_console.url}/api/v1/openapi.json"),
            *("--header", f"Authorization: Bearer {token}", "--seed", str(SEED)),
            *("--max-examples", str(EXAMPLES), "--generation-database", "none", "--no-color"),
            *("--warnings", "off", "--request-timeout", "20", "--continue-on-failure"),
            *("--output-truncate", "false", "--phases", "fuzzing"),
        ],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=170,
    )
    assert ran.returncode == 0, ran.stdout[-12_000:] + ran.stderr[-2_000:]
    found = connection.execute("SELECT count(*) FROM packhorse.operator").fetchone()
    assert found is not None
    assert found[0] > 0


@pytest.mark.case("X-07")
def test_planted_texts_come_back_as_json_and_nothing_else(
    planted_console: Console, connection: psycopg.Connection[Any]
) -> None:
    """Fails when one answer is of another kind than it says, or holds a byte that a terminal or browser acts on."""
    with planted_console.asked_by(token_for(connection, "admin", personal=True)) as client:
        row = connection.execute(
            "SELECT message_id FROM packhorse.quarantined_message WHERE group_id = 'figures'"
        ).fetchone()
        assert row is not None
        world = World(connection=connection, reader=client, topic="x")
        answers = [
            world.call(client, operation)
            for operation in operations(planted_console.document)
            if operation.name
            not in {"offsets_reset", "replay_plan", "job_send"}  # these need a broker, or a namespace
        ]
        answers += [
            client.get("/quarantine", params={"state": "all", "show_key": "true"}),
            client.get(f"/messages/{row[0]}", params={"show_key": "true"}),
            client.get(
                f"/quarantine/{row[0]}", params={"show_key": "true", "group": "figures", "payload": "true"}
            ),
            client.get("/jobs", params={"show_key": "true"}),
            client.get("/jobs", params={"stuck_for": 0, "type": EVIL, "show_key": "true"}),
            client.get("/quarantine", params={"group": EVIL}),
            client.get("/quarantine", params={EVIL: EVIL}),
            client.get("/quarantine", params={"after": EVIL}),
            client.get(f"/{httpx.URL('/' + 'x').path}<script>"),
            client.post(f"/quarantine/{new_id()}/preview", json={"group": EVIL, EVIL: 1}),
        ]
    assert sum("script" in answer.text for answer in answers) > 5
    for answer in answers:
        assert answer.headers["content-type"] in {"application/json", "application/problem+json"}
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert "set-cookie" not in answer.headers
        assert re.fullmatch(rb"[\x20-\x7e]*", answer.content), answer.content
        answer.json()
