"""Jobs over HTTP: what is answered is what the commands print, and of a command and a request one acts."""

import threading
from typing import Any
from uuid import UUID

import httpx
import psycopg
import pytest
from tests.support.cli import packhorse
from tests.support.console_api import console_on, token_for
from tests.support.console_rows import new_id, recorded
from tests.support.job_rows import (
    TYPE,
    accepted,
    effect,
    end,
    register_reference,
    running,
    stopped,
    uncertain,
)
from tests.support.wait import eventually

WHY = "fixed in 1.4.2"


def printed(database: str, *arguments: object) -> Any:
    return packhorse("job", *arguments, "--json", PACKHORSE_DATABASE_URL=database).json()


def acts(connection: psycopg.Connection[Any], job_id: UUID) -> list[str]:
    query = "SELECT act FROM packhorse.audit WHERE message_id = %s ORDER BY id"
    return [row[0] for row in connection.execute(query, (job_id,)).fetchall()]


@pytest.mark.case("X-01", "X-02")
def test_jobs_are_told_as_the_commands_tell_them(
    viewer: httpx.Client, connection: psycopg.Connection[Any], database: str
) -> None:
    """Fails when a face adds a judgement of its own, or an unknown job is no answer of its own."""
    done = end(connection, running(connection), "succeeded", result={"n": 1})
    ids = [accepted(connection, recorded(connection, key=None)), uncertain(connection), done]
    for job_id in ids:
        told, over = printed(database, "show", job_id), viewer.get(f"/jobs/{job_id}").json()
        words = {name: over[name] for name in ("waits", "next")}  # they tell how long ago things were
        assert over == told | words
    page = viewer.get("/jobs", params={"limit": 2})
    assert page.json() == printed(database, "list", "--limit", 2)
    rest = viewer.get("/jobs", params={"limit": 2, "after": page.json()["next"]}).json()
    assert [each["id"] for each in page.json()["jobs"] + rest["jobs"]] == [
        str(each) for each in sorted(ids, reverse=True)
    ]
    wanted = viewer.get("/jobs", params={"state": ["uncertain", "running"], "type": TYPE}).json()
    assert [each["id"] for each in wanted["jobs"]] == [str(ids[1])]
    assert viewer.get("/jobs/counts").json() == printed(database, "list", "--counts")
    assert viewer.get("/jobs", params={"stuck_for": 60}).json() == printed(
        database, "list", "--stuck", "--longer-than", "60s"
    )
    unknown = viewer.get(f"/jobs/{new_id()}")
    assert (unknown.status_code, unknown.json()["code"]) == (404, "unknown-id")


def test_acts_on_jobs_are_done_once_and_refused_with_what_to_do(
    operator: httpx.Client, connection: psycopg.Connection[Any]
) -> None:
    """Fails when an act is done on what it does not fit, or twice."""
    waits, runs, rests = accepted(connection), running(connection), stopped(connection)
    assert operator.post(f"/jobs/{waits}/cancel", json={"why": WHY}).json()["state"] == "cancelled"
    assert operator.post(f"/jobs/{waits}/cancel", json={"why": WHY}).status_code == 409
    assert operator.post(f"/jobs/{runs}/cancel", json={"why": WHY}).json()["is_new"] is True
    assert operator.post(f"/jobs/{runs}/cancel", json={"why": WHY}).json()["is_new"] is False
    assert "quarantine discard" in operator.post(f"/jobs/{rests}/cancel", json={"why": WHY}).json()["detail"]
    order = operator.post(f"/jobs/{rests}/redrive/preview").json()["order"]
    sent = operator.post(f"/jobs/{rests}/redrive", json={"order": order, "why": WHY})
    assert (sent.json()["state"], sent.json()["actor"]) == ("asked", "olga (token)")
    assert operator.post(f"/jobs/{rests}/redrive", json={"order": order, "why": WHY}).status_code == 409
    other = operator.post(f"/jobs/{runs}/redrive", json={"order": order, "why": WHY})
    assert (other.status_code, other.json()["code"]) == (409, "other-message")


def test_a_lost_message_is_sent_anew_once(database: str, connection: psycopg.Connection[Any]) -> None:
    """Fails when the console does not know its namespace, or a second request writes the message again."""
    register_reference(connection)
    job_id = accepted(connection)
    token = token_for(connection, "operator", name="olga")
    with console_on(database, namespace="reports") as console, console.asked_by(token) as client:
        assert client.get(f"/jobs/{job_id}").json()["message_lost"] is True
        sent = client.post(f"/jobs/{job_id}/send", json={"why": WHY})
        assert (sent.status_code, sent.json()["state"]) == (200, "sent anew")
        assert client.post(f"/jobs/{job_id}/send", json={"why": WHY}).json()["code"] == "usage"
    assert acts(connection, job_id) == ["job-send"]


def test_effects_are_decided_as_they_were_looked_at(
    operator: httpx.Client, connection: psycopg.Connection[Any]
) -> None:
    """Fails when one of several is guessed, an answer is kept for what has not happened, or a call of after is decided."""
    job_id = uncertain(connection, "charge", "mail")
    no = {"verdict": "did-not-happen", "calls": 1, "why": WHY}
    assert operator.post(f"/jobs/{job_id}/resolve", json=no).json()["code"] == "usage"
    assert operator.post(f"/jobs/{job_id}/resolve", json=no | {"answer": 1}).json()["code"] == "usage"
    moved = operator.post(f"/jobs/{job_id}/resolve", json=no | {"effect": "mail", "calls": 0})
    assert (moved.status_code, moved.json()["code"]) == (409, "lost")
    first = operator.post(f"/jobs/{job_id}/resolve", json=no | {"effect": "mail"}).json()
    assert (first["left"], first["redriven"]) == (["charge"], False)
    yes = {"verdict": "happened", "calls": 1, "answer": {"id": "ch_17"}, "why": WHY}
    last = operator.post(f"/jobs/{job_id}/resolve", json=yes).json()
    assert (last["redriven"], last["state"], last["by"]) == (True, "retrying", "olga (token)")
    late = stopped(connection)
    effect(connection, late, state="intended", ago=0)
    early = operator.post(f"/jobs/{late}/resolve", json=no)
    assert (early.status_code, "may be on its way until" in early.json()["detail"]) == (400, True)


@pytest.mark.case("O-02")
@pytest.mark.parametrize("act", ["cancel", "resolve"])
def test_of_a_command_and_a_request_at_the_same_time_one_acts(
    operator: httpx.Client, connection: psycopg.Connection[Any], database: str, act: str
) -> None:
    """Fails when one face does not lock what the other locks: both would act, or one would end with an error of the database."""
    job_id = accepted(connection) if act == "cancel" else uncertain(connection)
    body: dict[str, Any] = {"why": WHY}
    if act == "resolve":
        body |= {"verdict": "happened", "calls": 1, "effect": "charge"}
    arguments = ("--happened", "--effect", "charge") if act == "resolve" else ()
    codes: list[int] = []

    def command() -> None:
        environ = {"PACKHORSE_DATABASE_URL": database}
        codes.append(
            packhorse("job", act, job_id, *arguments, "--why", WHY, "--yes", "--json", **environ).code
        )

    with psycopg.connect(database) as holder:
        holder.execute("SELECT FROM packhorse.job WHERE id = %s FOR UPDATE", (job_id,))
        thread = threading.Thread(target=command)
        thread.start()
        asked = threading.Thread(
            target=lambda: codes.append(operator.post(f"/jobs/{job_id}/{act}", json=body).status_code)
        )
        asked.start()
        wait_for_locks(connection, 2)
        holder.commit()
        thread.join(30)
        asked.join(30)
    assert sorted(codes) in ([0, 409], [5, 200]), codes
    assert acts(connection, job_id) == (["job-cancel"] if act == "cancel" else ["job-resolve", "redrive"])


def wait_for_locks(connection: psycopg.Connection[Any], sessions: int) -> None:
    waits = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
    eventually(
        lambda: connection.execute(waits).fetchone() == (sessions,),
        what="both wait for the job's row",
        timeout=20,
    )
