"""The commands of redrives as processes: exit codes, confirmations, Ctrl-C, and what is said when somebody else was first."""

import signal
from functools import partial
from typing import Any

import psycopg
import pytest
from tests.support.cli import packhorse, packhorse_started
from tests.support.console_rows import rested
from tests.support.wait import eventually


@pytest.fixture
def run(run: Any) -> Any:
    return partial(run, "redrive")


WHY = ("--why", "fixed in 1.4.2")


@pytest.mark.case("O-04")
def test_ctrl_c_leaves_the_run_to_whoever_resumes_it_and_says_so(
    run: Any, database: str, connection: psycopg.Connection[Any]
) -> None:
    """Fails when Ctrl-C pauses or ends the run, keeps the lease, or shows a traceback."""
    rested(connection)
    redrive = run("preview", "--group", "figures", "--json").json()["id"]
    arguments = ("redrive", "run", redrive, *WHY, "--yes")
    with packhorse_started(*arguments, PACKHORSE_DATABASE_URL=database) as process:
        eventually(
            lambda: run("status", redrive, "--json").json()["progress"]["asked"] == 1,
            what="the first is asked for",
            timeout=30,
        )
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert f"still running; go on from any machine: packhorse redrive resume {redrive}" in err
    assert "Traceback" not in out + err
    assert connection.execute("SELECT state, lease_until FROM packhorse.redrive").fetchone() == (
        "running",
        None,
    )


@pytest.mark.case("O-02")
def test_the_second_who_confirms_is_told_who_was_first(run: Any, connection: psycopg.Connection[Any]) -> None:
    """Fails when a second confirmation ends as if it had acted."""
    rested(connection)
    redrive = run("preview", "--all", "--json").json()["id"]
    unasked = run("run", redrive, *WHY)
    assert unasked.code == 1
    assert "not confirmed: add --yes, or run it in a terminal" in unasked.err
    refused = run("run", redrive, *WHY, given="n\n")
    assert refused.code == 1
    assert run("status", redrive, "--json").json()["state"] == "previewed"
    assert run("run", redrive, *WHY, "--detach", "--actor", "ann", given="y\n").code == 0
    second = run("run", redrive, *WHY, "--yes")
    assert second.code == 5
    assert f"redrive {redrive} is running already: confirmed by ann (claimed by " in second.err


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("preview",), 2, "or say --all"),
        (("preview", "--group", "nobody"), 6, "nothing in quarantine fits"),
        (("preview", "--all", "--stages", "5,1"), 2, "rising numbers from 1"),
        (("preview", "--all", "--rate", "0"), 2, "--rate 0 is not allowed"),
        (("preview", "--all", "--since", "soon"), 2, "is no time"),
        (("preview", "--failure", "zz"), 2, "8 to 32 hexadecimal digits"),
        (("run", 99, *WHY, "--yes"), 6, "there is no redrive 99"),
        (("run", 99, "--why", " ", "--yes"), 2, "say the reason"),
        (("run", 99, *WHY, "--json"), 2, "add --yes"),
        (("status", 99), 6, "there is no redrive 99"),
        (("members", 99), 6, "there is no redrive 99"),
        (("pause", 99, *WHY), 6, "there is no redrive 99"),
        (("resume", 99), 6, "there is no redrive 99"),
        (("list", "--limit", 0), 2, "1 to 1000"),
    ],
)
def test_bad_input_is_named_and_nothing_is_done(
    run: Any, connection: psycopg.Connection[Any], arguments: tuple[object, ...], code: int, said: str
) -> None:
    rested(connection)
    found = run(*arguments)
    assert (found.code, said in found.err) == (code, True), found.err
    assert connection.execute("SELECT count(*) FROM packhorse.redrive").fetchone() == (0,)


def test_a_key_is_neither_shown_nor_kept(run: Any, connection: psycopg.Connection[Any]) -> None:
    """Fails when a filter's key reaches a screen, the redrive's row or the audit."""
    rested(connection, key=b"ann@example.org")
    previewed = run("preview", "--key", "ann@example.org")
    redrive = connection.execute("SELECT id FROM packhorse.redrive").fetchone()
    assert redrive is not None
    shown = [run("status", redrive[0]), run("list"), run("members", redrive[0]), previewed]
    kept = connection.execute(
        "SELECT wanted::text FROM packhorse.redrive UNION SELECT detail::text FROM packhorse.audit"
    )
    texts = [each.out + each.err for each in shown] + [row[0] for row in kept]
    assert not [text for text in texts if "ann@example.org" in text]


@pytest.mark.case("O-02")
def test_what_an_aborted_redrive_has_not_asked_for_waits_for_nothing(
    run: Any, connection: psycopg.Connection[Any]
) -> None:
    """Fails when members of a redrive that is over are told as waiting, by its status or by its members."""
    rested(connection)
    redrive = run("preview", "--all", "--json").json()["id"]
    assert run("abort", redrive, "--why", "the wrong set").code == 0
    progress = run("status", redrive, "--json").json()["progress"]
    assert (progress["waiting"], progress["left"]) == (0, 1)
    assert "waiting" not in run("status", redrive).out
    (member,) = run("members", redrive, "--state", "left", "--json").json()["members"]
    assert member["said"] == "the run was aborted before its turn"


@pytest.mark.case("O-03")
def test_a_member_that_stopped_again_was_sent_as_the_status_counts_it(
    run: Any, connection: psycopg.Connection[Any]
) -> None:
    """Fails when members are said to be sent by the copy alone, which is forgotten when one stops again."""
    rested(connection)
    redrive = run("preview", "--all", "--json").json()["id"]
    assert run("run", redrive, *WHY, "--detach", "--yes").code == 0
    connection.execute("UPDATE packhorse.redrive_member SET state = 'bad', stage = 0, said = 'quarantine'")
    assert run("status", redrive, "--json").json()["progress"]["sent"] == 1
    (member,) = run("members", redrive, "--state", "bad", "--json").json()["members"]
    assert (member["sent"], member["sent_at"]) == (True, None)


@pytest.mark.case("O-03")
def test_what_is_borne_is_said_in_the_numbers_of_the_set(
    run: Any, connection: psycopg.Connection[Any]
) -> None:
    """Fails when a preview speaks of a tenth where a small set bears more."""
    for n in range(13):
        rested(connection, key=b"%d" % n)
    shown = run("preview", "--all").out
    assert "none of the 1 in stage 1, none of the 5 in stage 2, 2 of the 7 in stage 3" in shown
    assert "tenth" not in shown


@pytest.mark.case("X-01")
def test_a_member_that_was_discarded_after_the_preview_is_told_so(
    run: Any, database: str, connection: psycopg.Connection[Any]
) -> None:
    """Fails when a message is said to wait in a redrive that will pass it over."""
    message_id = rested(connection)
    redrive = run("preview", "--all", "--json").json()["id"]
    before = packhorse("explain", message_id, PACKHORSE_DATABASE_URL=database).out
    assert f"it is a member of redrive {redrive}" in before
    told = ("--why", "wrong", "--yes")
    assert packhorse("quarantine", "discard", message_id, *told, PACKHORSE_DATABASE_URL=database).code == 0
    after = packhorse("explain", message_id, PACKHORSE_DATABASE_URL=database).out
    assert f"it was a member of redrive {redrive}, which is previewed; it has moved" in after
    status = packhorse("status", message_id, PACKHORSE_DATABASE_URL=database).out
    assert "will not be redriven by it" in status


@pytest.mark.case("O-02")
def test_what_is_redriven_without_a_question_is_shown_first(
    run: Any, connection: psycopg.Connection[Any]
) -> None:
    """Fails when --yes leaves out what is confirmed by it, or --json prints more than one answer."""
    rested(connection)
    redrive = run("preview", "--all", "--json").json()["id"]
    shown = run("run", redrive, *WHY, "--detach", "--yes").out
    assert shown.index("previewed; nobody has confirmed it") < shown.index("on the record as")
    redrive = run("preview", "--all", "--json").json()["id"]
    assert run("run", redrive, *WHY, "--detach", "--yes", "--json").json()["id"] == redrive
