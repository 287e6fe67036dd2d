"""What the pages say of the parts themselves: one that died, one of another version, one that is missing; and what they never say."""

from datetime import timedelta
from typing import Any

import psycopg
import pytest
from tests.support.console_api import console_on, token_for
from tests.support.console_rows import recorded, rested
from tests.support.console_stages import GROUP, TOPIC, Stages
from tests.support.held import owned
from tests.support.job_rows import accepted
from tests.support.sitting import Sitter, at_the_door, text_of
from tests.support.stack import PrivateDatabase

TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
SECRET = "hunter2-of-the-database"


@pytest.mark.case("X-04")
@pytest.mark.case("X-06")
def test_a_loop_that_died_and_a_process_that_is_gone_are_said_on_every_page_that_is_about_them(
    database: str, connection: psycopg.Connection[Any]
) -> None:
    """Fails when something inside a process ended, or a commit failed, and the pages call all well."""
    stages = Stages(connection)
    stages.watermark(7)
    recorded(connection)
    trouble = f"commit of {TOPIC}[2] at 7: REQUEST_TIMED_OUT"
    place = {"topic": TOPIC, "partition": 2, "pending": 1, "in_flight": 0, "paused": None, "trouble": trouble}
    stages.process({"wrong": ["the loop of copies has ended"], "partitions": [place]})
    with (
        console_on(database) as console,
        Sitter(console, token_for(connection, "viewer", name="vera")) as vera,
    ):
        for path in ("/", "/groups", f"/groups/{GROUP}"):
            assert "the loop of copies has ended" in text_of(vera.get(path)), path
        assert trouble in text_of(vera.get(f"/groups/{GROUP}"))
        connection.execute("DELETE FROM packhorse.processor_member")
        stages.process({}, ago=timedelta(minutes=5))
        owned(connection)
        connection.execute(
            "UPDATE packhorse.relay SET lease_until = clock_timestamp() - interval '5 minutes'"
        )
    with (
        console_on(database) as console,
        Sitter(console, token_for(connection, "viewer", name="vito")) as vito,
    ):
        for path in ("/", "/groups", f"/groups/{GROUP}"):
            assert f"group {GROUP}: no process is alive" in text_of(vito.get(path)), path
        for path in ("/", "/relay"):
            assert "relay: " in text_of(vito.get(path)), path


@pytest.mark.case("X-05")
def test_the_trace_of_a_message_and_of_a_job_is_on_its_page(
    database: str, connection: psycopg.Connection[Any]
) -> None:
    """Fails when somebody who looks at a message can't get from there to its trace."""
    message_id = recorded(connection)
    connection.execute("SET session_replication_role = replica")
    connection.execute("UPDATE packhorse.outbox SET traceparent = %s WHERE id = %s", (TRACE, message_id))
    connection.execute("SET session_replication_role = origin")
    job_id = accepted(connection, traceparent=TRACE)
    with (
        console_on(database) as console,
        Sitter(console, token_for(connection, "viewer", name="vera")) as vera,
    ):
        for path in (f"/messages/{message_id}", f"/jobs/{job_id}"):
            assert TRACE in text_of(vera.get(path)), path


@pytest.mark.case("X-08")
def test_no_page_says_a_password_a_token_or_a_key_whatever_fails(private_database: PrivateDatabase) -> None:
    """Fails when an error of a connection, or a setting, goes to a page as it is."""
    url = private_database.url.replace("://postgres@", f"://postgres:{SECRET}@")
    assert SECRET in url
    with (
        psycopg.connect(private_database.direct_url, autocommit=True) as connection,
        console_on(url, timeout=1) as console,
    ):
        token = token_for(connection, "admin", name="ada", personal=True, edit=True)
        message_id = rested(connection)
        with Sitter(console, token) as ada:
            paths = ("/", "/people", "/audit", f"/quarantine/{message_id}/redrive", "/relay", "/search?q=x")
            sheet = ada.form(f"/quarantine/{message_id}/redrive")
            said = [ada.get(path) for path in paths]
            assert {answer.status_code for answer in said} == {200}
            private_database.proxy.cut()
            lost = [ada.get(path) for path in paths] + [ada.send(sheet, why="x")]
            assert {answer.status_code for answer in lost} == {503}
            for answer in (*said, *lost):
                assert SECRET not in answer.text
                assert token not in answer.text


@pytest.mark.case("X-10")
def test_two_versions_side_by_side_are_seen_in_the_group(
    database: str, connection: psycopg.Connection[Any]
) -> None:
    """Fails when a rollout that is half done looks like one version."""
    stages = Stages(connection)
    stages.watermark(7)
    for version in ("1.3.9", "1.4.0"):
        stages.process({"version": version, "partitions": []})
    with (
        console_on(database) as console,
        Sitter(console, token_for(connection, "viewer", name="vera")) as vera,
    ):
        for path in ("/", "/groups"):
            assert "versions 1.3.9, 1.4.0" in text_of(vera.get(path)), path
        for version in ("1.3.9", "1.4.0"):
            assert version in text_of(vera.get(f"/groups/{GROUP}"))


@pytest.mark.case("X-11")
def test_missing_tables_are_named_on_the_page_with_the_command_that_makes_them(empty_database: str) -> None:
    """Fails when a database without tables is an error of ours to whoever opens the page, or is set up by a look."""
    with console_on(empty_database) as console:
        answer = at_the_door(console, "phk_" + "x" * 43)
        assert answer.status_code == 503
        assert "packhorse migrate up" in text_of(answer)
    with psycopg.connect(empty_database) as connection:
        assert connection.execute(
            "SELECT count(*) FROM pg_namespace WHERE nspname = 'packhorse'"
        ).fetchone() == (0,)
