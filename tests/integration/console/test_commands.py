"""The console's commands as processes: exit codes, output for people and programs, confirmations."""

import signal
from typing import Any

import psycopg
import pytest
from tests.support.cli import packhorse, packhorse_started
from tests.support.console_rows import handled, new_id, recorded, rested
from tests.support.wait import eventually

from packhorse.local.settings import Endpoints

EVIL = "ValueError \x1b[2J\x1b]0;x\x07[red]at[/red] \u202ehandlers.py"


def count(connection: psycopg.Connection[Any], table: str) -> int:
    row = connection.execute(f"SELECT count(*) FROM packhorse.{table}").fetchone()
    return 0 if row is None else int(row[0])


@pytest.mark.case("X-01")
def test_unknown_has_an_exit_code_of_its_own(run: Any, connection: psycopg.Connection[Any]) -> None:
    """Fails when an unknown id ends with 0, or a recorded one with 6."""
    assert (found := run("status", new_id())).code == 6
    assert "unknown" in found.out
    assert run("status", new_id(), "--json").json()["known"] is False
    known = run("status", recorded(connection), "--json")
    assert (known.code, known.json()["published"]) == (0, "not yet")


def test_status_works_with_the_broker_down_and_says_so(run: Any, connection: psycopg.Connection[Any]) -> None:
    message_id = recorded(connection)
    found = run(
        "status",
        message_id,
        "--search",
        PACKHORSE_NAMESPACE="airline",
        PACKHORSE_KAFKA_BOOTSTRAP_SERVERS="127.0.0.1:1",
        PACKHORSE_CONSOLE_TIMEOUT="1",
    )
    assert found.code == 0
    assert "not searched: " in found.out
    assert "recorded, not yet published" in found.out


def test_a_text_that_is_no_id_is_a_usage_error(run: Any) -> None:
    found = run("status", "x")
    assert found.code == 2
    assert "Traceback" not in found.err


@pytest.mark.case("X-07")
def test_terminal_codes_in_errors_are_inert(run: Any, connection: psycopg.Connection[Any]) -> None:
    """Fails when one command prints an error or header as it is."""
    message_id = rested(connection, error=EVIL, type=EVIL, headers=[[EVIL, "G1sySg=="]])
    for command in (
        ("status", message_id),
        ("quarantine", "list"),
        ("quarantine", "show", message_id),
        ("quarantine", "list", "--json"),
        ("quarantine", "show", message_id, "--json"),
        ("quarantine", "redrive", message_id, "--why", EVIL, "--yes"),
        ("quarantine", "redrive", message_id, "--why", EVIL, "--yes"),
    ):
        found = run(*command)
        assert (found.out + found.err).replace("\n", "").isprintable(), command


def test_the_payload_is_not_shown_and_the_key_is_hidden(
    run: Any, connection: psycopg.Connection[Any]
) -> None:
    message_id = rested(connection, payload=b"\x00\x00\x00\x00\x01secret", key=b"ann@example.org")
    for command in (("show", message_id), ("list",), ("list", "--json"), ("show", message_id, "--json")):
        assert "ann@example.org" not in (out := run("quarantine", *command).out)
        assert "secret" not in out
    assert "ann@example.org" in run("quarantine", "show", message_id, "--show-key").out


def test_a_list_goes_on_where_the_page_before_ended(run: Any, connection: psycopg.Connection[Any]) -> None:
    ids = {str(rested(connection)) for _ in range(3)}
    first = run("quarantine", "list", "--limit", 2, "--json").json()
    second = run("quarantine", "list", "--limit", 2, "--after", first["next"], "--json").json()
    assert {message["id"] for page in (first, second) for message in page["messages"]} == ids
    assert second["next"] is None
    assert f"--after {first['next']}" in run("quarantine", "list", "--limit", 2).out
    assert run("quarantine", "list", "--group", "nobody").code == 6
    assert run("quarantine", "list", "--limit", 0).code == 2
    assert run("quarantine", "list", "--after", "x").code == 2


@pytest.mark.case("T-17")
def test_a_redrive_asks_before_it_acts(run: Any, connection: psycopg.Connection[Any]) -> None:
    """Fails when the confirmation is left out, or a "no" acts."""
    message_id = rested(connection)
    refused = run("quarantine", "redrive", message_id, "--why", "fixed", given="n\n")
    assert refused.code == 1
    assert "redrive does this" in refused.out
    assert run("status", message_id, "--json").json()["acts"] == []
    done = run("quarantine", "redrive", message_id, "--why", "fixed", "--actor", "ann", given="y\n")
    assert done.code == 0
    assert "asked → (not sent yet)" in done.out
    (act,) = run("status", message_id, "--json").json()["acts"]
    assert (act["act"], act["why"]) == ("redrive", "fixed")
    assert act["actor"].startswith("ann (claimed by ")


@pytest.mark.case("O-02")
def test_the_second_redrive_is_told_who_and_when(run: Any, connection: psycopg.Connection[Any]) -> None:
    """Fails when a second redrive ends as if it had acted."""
    message_id = rested(connection)
    first = run("quarantine", "redrive", message_id, "--why", "fixed", "--yes", "--json")
    assert (first.code, first.json()["redrive"]) == (0, "asked")
    second = run("quarantine", "redrive", message_id, "--why", "fixed", "--yes")
    assert second.code == 5
    assert "is redriven already: redrive by" in second.err


@pytest.mark.case("O-07")
def test_without_a_processor_a_redrive_is_asked_and_not_proved(
    run: Any, connection: psycopg.Connection[Any]
) -> None:
    """Fails when the order alone counts as sent or proved."""
    message_id = rested(connection)
    found = run("quarantine", "redrive", message_id, "--why", "fixed", "--yes", "--wait", 0.5)
    assert found.code == 7
    assert "proved" not in found.out.replace("not proved", "")


def test_ctrl_c_while_waiting_leaves_the_order_and_shows_no_traceback(
    database: str, connection: psycopg.Connection[Any]
) -> None:
    message_id = rested(connection)
    arguments = ("quarantine", "redrive", message_id, "--why", "fixed", "--yes", "--wait", 60)
    with packhorse_started(*arguments, PACKHORSE_DATABASE_URL=database) as process:
        lines = process.stdout
        assert lines is not None
        eventually(
            lambda: "asked → (not sent yet)" in lines.readline(), what="it tells and waits", timeout=30
        )
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=30)
    assert process.returncode == 130, err
    assert "Traceback" not in err
    assert count(connection, "audit") == 1


@pytest.mark.case("O-04")
def test_a_redrive_killed_in_the_middle_has_changed_nothing(
    database: str, run: Any, connection: psycopg.Connection[Any]
) -> None:
    """Fails when one of the three rows is committed before the others."""
    message_id = rested(connection)
    arguments = ("quarantine", "redrive", message_id, "--why", "fixed", "--yes")
    killed = packhorse_started(*arguments, PACKHORSE_DATABASE_URL=database, PACKHORSE_CONSOLE_TIMEOUT="60")
    with psycopg.connect(database) as holder:
        holder.execute("LOCK TABLE packhorse.audit IN SHARE MODE")
        waits = "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'packhorse.audit'::regclass"
        with killed:
            eventually(
                lambda: connection.execute(waits).fetchone() == (1,),
                what="it waits to record the act",
                timeout=30,
            )
    eventually(lambda: connection.execute(waits).fetchone() == (0,), what="its session is gone")
    assert count(connection, "audit") == 0
    assert run("status", message_id, "--json").json()["groups"][0]["inbox"]["outcome"] == "quarantine"
    assert run(*arguments).code == 0


@pytest.mark.parametrize(
    ("arguments", "text", "code"),
    [
        (("--why", "  "), "--why", 2),
        (("--why", "x", "--group", "nobody"), "it is there for figures", 6),
        (("--why", "x", "--json"), "add --yes", 2),
        ((), "--why", 2),
    ],
)
def test_a_redrive_that_is_asked_for_wrongly_says_what_is_needed(
    run: Any, connection: psycopg.Connection[Any], arguments: tuple[str, ...], text: str, code: int
) -> None:
    found = run("quarantine", "redrive", rested(connection), *arguments)
    assert found.code == code
    assert text in found.err


def test_a_message_that_is_done_is_not_redriven(run: Any, connection: psycopg.Connection[Any]) -> None:
    found = run("quarantine", "redrive", handled(connection), "--why", "x", "--yes")
    assert found.code == 6
    assert "is not in quarantine" in found.err


def test_the_doctor_finds_a_good_stack_well(run: Any, stack: Endpoints) -> None:
    found = run(
        "doctor",
        "--json",
        PACKHORSE_KAFKA_BOOTSTRAP_SERVERS=stack.kafka_bootstrap,
        PACKHORSE_REGISTRY_URL=stack.registry_url,
    )
    assert found.code == 0, found.out
    checks = {check["check"]: check["verdict"] for check in found.json()["checks"]}
    for name in ("settings", "database", "migrations", "sequence", "triggers", "relay", "broker", "registry"):
        assert checks[name] == "ok", name


def test_the_doctor_names_each_fault_and_goes_on(run: Any, connection: psycopg.Connection[Any]) -> None:
    connection.execute("ALTER TABLE packhorse.outbox DISABLE TRIGGER refuse_change")
    connection.execute("ALTER TABLE packhorse.audit DISABLE TRIGGER refuse_forgetting")
    connection.execute("ALTER SEQUENCE packhorse.outbox_seq_seq CACHE 32")
    connection.execute("UPDATE packhorse.relay SET epoch = 1, horizon = '9000000000000:9000000000000:'")
    found = run(
        "doctor",
        "--json",
        PACKHORSE_KAFKA_BOOTSTRAP_SERVERS="127.0.0.1:1",
        PACKHORSE_REGISTRY_URL="http://127.0.0.1:1",
        PACKHORSE_CONSOLE_TIMEOUT="1",
    )
    assert found.code == 1
    failed = {check["check"]: check for check in found.json()["checks"] if check["verdict"] == "failed"}
    assert {"triggers", "sequence", "horizon", "broker", "registry"} <= set(failed)
    assert all(check["cause"] and check["next_step"] for check in failed.values())
    assert "audit, outbox" in failed["triggers"]["found"]
    connection.execute("ALTER TABLE packhorse.audit ENABLE TRIGGER refuse_forgetting")
    connection.execute("ALTER TABLE packhorse.audit DISABLE TRIGGER stamp_act")
    found = run("doctor", "--json", PACKHORSE_CONSOLE_TIMEOUT="1")
    (triggers,) = (check for check in found.json()["checks"] if check["check"] == "triggers")
    assert "audit, outbox" in triggers["found"]


@pytest.mark.case("X-11")
@pytest.mark.case("X-11")
@pytest.mark.parametrize("table", ["audit", "failed_attempt", "quarantined_message", "watermark"])
def test_the_doctor_names_a_table_that_is_gone(
    run: Any, connection: psycopg.Connection[Any], table: str
) -> None:
    """Fails when only the number of the last migration is looked at."""
    connection.execute(f"ALTER TABLE packhorse.{table} RENAME TO aside")
    found = run("doctor")
    assert found.code == 1
    assert f"gone: {table}, though the migrations ran" in found.out


@pytest.mark.case("X-02")
def test_the_environment_does_not_say_who_acts(run: Any, connection: psycopg.Connection[Any]) -> None:
    """Fails when the user's name is taken from LOGNAME or USER, which whoever acts can set."""
    message_id = rested(connection)
    names = dict.fromkeys(("LOGNAME", "USER", "LNAME", "USERNAME"), "somebody-else")
    done = run("quarantine", "redrive", message_id, "--why", "fixed", "--yes", "--json", **names)
    assert done.code == 0
    row = connection.execute("SELECT actor FROM packhorse.audit").fetchone()
    assert row is not None
    assert "somebody-else" not in row[0]
    assert row[0] == done.json()["actor"]


def test_the_doctor_without_tables_says_how_to_make_them(empty_database: str) -> None:
    """Fails when a missing table ends the command, or is not named."""
    found = packhorse("doctor", PACKHORSE_DATABASE_URL=empty_database)
    assert found.code == 1
    assert "packhorse migrate up" in found.out


def test_the_doctor_finds_client_properties_that_a_part_would_refuse(run: Any) -> None:
    found = run("doctor", "--json", PACKHORSE_KAFKA_PROPERTIES='{"acks": "1", "enable.auto.commit": true}')
    told = " ".join(check["found"] for check in found.json()["checks"] if check["verdict"] == "failed")
    assert "acks=1" in told
    assert "enable.auto.commit=True" in told


def test_the_doctor_plans_an_applications_topics(run: Any, stack: Endpoints, topic_prefix: str) -> None:
    missing = run(
        "doctor",
        "--json",
        "--app",
        f"{topic_prefix}:app",
        PACKHORSE_KAFKA_BOOTSTRAP_SERVERS=stack.kafka_bootstrap,
    )
    (found,) = [check for check in missing.json()["checks"] if check["check"] == "application"]
    assert (found["verdict"], missing.code) == ("failed", 1)
    assert topic_prefix in found["found"]


def test_the_doctor_with_nothing_set_skips(tmp_path: Any) -> None:
    found = packhorse("--config", "/dev/null", "doctor", "--json")
    assert found.code == 0
    assert {check["verdict"] for check in found.json()["checks"]} == {"ok", "skipped"}
