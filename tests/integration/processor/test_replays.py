"""Replays on a real broker and database: a range is handed to the live group, once, in order, with its own progress."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import psycopg
import pytest
from tests.support.cli import Ran, packhorse
from tests.support.processing import GROUP, Ground, note, noting
from tests.support.roles import roles_of
from tests.support.stack import PrivateBroker
from tests.support.wait import eventually

from packhorse.console.acting.person import hash_of
from packhorse.core.errors import UsageError
from packhorse.local.settings import Endpoints
from packhorse.processor import Context, Processor, Retry

WHY = "what the reset skipped"


def replay(ground: Ground, *arguments: object) -> Ran:
    return packhorse("replay", *arguments, **ground.environ)


def planned(ground: Ground, *arguments: object) -> dict[str, Any]:
    ran = replay(ground, "plan", "--group", GROUP, "--topic", ground.topic, *arguments, "--json")
    assert ran.code == 0, ran.err
    found: dict[str, Any] = ran.json()
    return found


def skipped_by_a_reset(ground: Ground, done: range, skipped: range) -> None:
    """Let the group do some messages, and skip others by a reset to the end."""
    app = noting(ground.namespace)
    ground.make_topics(app)
    for n in done:
        ground.send(n, key=b"%d" % (n % 3))
    with ground.processing(app):
        eventually(lambda: len(ground.results()) == len(done), what="the first are done")
        eventually(lambda: ground.watermark() == len(done), what="the watermark is there")
    for n in skipped:
        ground.send(n, key=b"%d" % (n % 3))
    if skipped:
        reset_to_the_end(ground)


def reset_to_the_end(ground: Ground) -> None:
    told = ("--to", "latest", "--why", "moved", "--yes")
    ran = packhorse("offsets", "reset", "--group", GROUP, "--topic", ground.topic, *told, **ground.environ)
    assert ran.code == 0, ran.err


@pytest.mark.case("O-11")
@pytest.mark.case("O-12")
def test_what_was_never_done_is_handed_over_and_what_is_done_is_a_duplicate(ground: Ground) -> None:
    """
    Fails when done messages are repeated, skipped ones are left out, or the live group's offset or watermark moves: when the
    runner asks the inbox nothing, or reads as a member of the group.
    """
    skipped_by_a_reset(ground, range(6), range(6, 12))
    before = ground.watermark(), ground.committed()
    plan = planned(ground, "--partition", 0, "--from-offset", 0)
    assert plan["counts"]["standings"] == {"done": 6, "never": 6}
    with ground.processing(noting(ground.namespace)) as running:
        running.until_assigned()
        ran = replay(ground, "run", plan["replay"], "--why", WHY, "--yes", "--json")
        assert ran.code == 0, (ran.out, ran.err)
    assert sorted(ground.results()) == list(range(12))
    assert ground.results()[:6] == sorted(ground.results()[:6])
    by_key = {k: [n for n in ground.results() if n % 3 == k] for k in range(3)}
    assert all(numbers == sorted(numbers) for numbers in by_key.values())
    progress = ran.json()["progress"]
    assert (progress["handed"], progress["done"], progress["duplicates"]) == (6, 6, 6)
    assert (ground.watermark(), ground.committed()) == before
    assert ground.rows("SELECT * FROM packhorse.parked_key") == []
    again = planned(ground, "--partition", 0, "--from-offset", 0)
    assert again["counts"]["handed"] == 0


def process_of(ground: Ground, *arguments: object) -> "subprocess.Popen[bytes]":
    """Start `packhorse replay` as a process of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "packhorse.cli.main", "replay", *map(str, arguments)],
        env={**os.environ, **ground.environ},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def of_key(ground: Ground, key: int) -> list[int]:
    return [n for n in ground.results() if n % 3 == key]


@pytest.mark.case("O-11")
def test_live_messages_of_a_key_wait_until_all_of_it_is_replayed(ground: Ground) -> None:
    """
    Fails when a key is let go between two portions: when `barrier` is not asked for in FOLLOWERS, or `replay_id` in RELEASE_KEYS.

    The order is read from the topic and the table of results.
    """
    skipped_by_a_reset(ground, range(3), range(3, 21))
    plan = planned(ground, "--partition", 0, "--from-offset", 0, "--rate", 4)
    with ground.processing(noting(ground.namespace)) as running:
        running.until_assigned()
        worker = process_of(ground, "run", plan["replay"], "--why", WHY, "--yes", "--json")
        eventually(lambda: len(ground.results()) > 5, what="some are replayed", timeout=30)
        for n in (21, 24, 22):
            ground.send(n, key=b"%d" % (n % 3))
        ground.send(100, key=b"another")
        eventually(lambda: 100 in ground.results(), what="another key goes on")
        held = replay(ground, "status", plan["replay"], "--json").json()
        assert worker.wait(60) == 0
        eventually(lambda: len(ground.results()) == 25, what="all is done")
    assert (held["held_keys"], held["live_messages_waiting"]) == (3, 3)
    assert of_key(ground, 0) == [0, 3, 6, 9, 12, 15, 18, 21, 24]
    assert [n for n in of_key(ground, 1) if n != 100] == [1, 4, 7, 10, 13, 16, 19, 22]
    assert ground.rows("SELECT * FROM packhorse.parked_key") == []
    assert ground.watermark() == 25


@pytest.mark.case("O-11")
def test_a_runner_that_is_killed_leaves_a_run_that_another_ends(ground: Ground) -> None:
    """Fails when the position moves in another transaction than the messages: some would be lost, or handed over twice."""
    skipped_by_a_reset(ground, range(2), range(2, 42))
    plan = planned(ground, "--partition", 0, "--from-offset", 0, "--rate", 20)
    with ground.processing(noting(ground.namespace)) as running:
        running.until_assigned()
        worker = process_of(ground, "run", plan["replay"], "--why", WHY, "--yes", "--json")
        eventually(lambda: len(ground.results()) > 8, what="some are replayed", timeout=30)
        worker.send_signal(signal.SIGKILL)
        worker.wait(10)
        held = replay(ground, "status", plan["replay"], "--json").json()
        assert (held["state"], held["progress"]["handed"] < 40) == ("running", True)
        ran = replay(ground, "resume", plan["replay"], "--json")
        assert ran.code == 0, (ran.out, ran.err)
    assert sorted(ground.results()) == list(range(42))
    assert ran.json()["progress"]["done"] == 40
    assert all(of_key(ground, k) == sorted(of_key(ground, k)) for k in range(3))


@pytest.mark.case("O-11")
def test_a_run_is_paused_resumed_and_stopped_and_lets_go_of_its_keys(ground: Ground) -> None:
    """Fails when a paused run hands on, when a stopped one can be resumed, or when it keeps its keys parked."""
    skipped_by_a_reset(ground, range(0), range(30))
    plan = planned(ground, "--partition", 0, "--from-offset", 0, "--rate", 5)
    run = plan["replay"]
    with ground.processing(noting(ground.namespace)) as running:
        running.until_assigned()
        worker = process_of(ground, "run", run, "--why", WHY, "--yes", "--json")
        eventually(lambda: len(ground.results()) > 3, what="some are replayed", timeout=30)
        assert replay(ground, "pause", run, "--why", "busy").code == 0
        assert worker.wait(30) == 5
        done = replay(ground, "status", run, "--json").json()["progress"]["handed"]
        eventually(lambda: len(ground.results()) == done, what="what was handed over is done")
        assert replay(ground, "resume", run).code == 2
        worker = process_of(ground, "resume", run, "--why", "quiet again")
        eventually(lambda: len(ground.results()) > done, what="it goes on", timeout=30)
        ran = replay(ground, "stop", run, "--why", "the wrong hour", "--yes", "--json")
        assert ran.code == 0, ran.err
        assert worker.wait(30) == 5
        ground.send(30, key=b"0")
        eventually(lambda: 30 in ground.results(), what="a live message of a key goes on")
    assert ran.json()["state"] == "stopped"
    assert replay(ground, "resume", run, "--why", "again").code == 5
    assert ground.rows("SELECT * FROM packhorse.parked_key") == []
    told = [
        row[0]
        for row in ground.rows("SELECT act FROM packhorse.audit WHERE act LIKE 'replay-%%' ORDER BY id")
    ]
    assert told == ["replay-plan", "replay-run", "replay-pause", "replay-resume", "replay-stop"]


@pytest.mark.case("O-12")
def test_again_does_it_once_more_under_ids_of_the_run_and_only_once(ground: Ground) -> None:
    """Fails when --again is a duplicate, runs twice for one run, or loses which message it is."""
    skipped_by_a_reset(ground, range(6), range(0))
    plan = planned(ground, "--partition", 0, "--from-offset", 0, "--again")
    assert [check["code"] for check in plan["checks"]] == ["again", "no-processor"]
    with ground.processing(noting(ground.namespace)) as running:
        running.until_assigned()
        ran = replay(ground, "run", plan["replay"], "--why", "wrong figures", "--yes", "--json")
        assert ran.code == 0, (ran.out, ran.err)
        assert replay(ground, "run", plan["replay"], "--why", "twice", "--yes").code == 5
    assert sorted(ground.results()) == sorted([*range(6), *range(6)])
    ids = [row[0] for row in ground.rows("SELECT id FROM result ORDER BY at")]
    assert len(set(ids)) == 12


@pytest.mark.case("O-12")
def test_again_is_refused_for_keys_that_have_newer_messages_done(ground: Ground) -> None:
    """Fails when old state may overwrite newer without a word, or when leaving the key out by name does not help."""
    skipped_by_a_reset(ground, range(6), range(0))
    told = ("--partition", 0, "--from-offset", 0, "--to-offset", 4, "--again")
    ran = replay(ground, "plan", "--group", GROUP, "--topic", ground.topic, *told)
    assert ran.code == 2
    assert "2 of 3 keys have messages behind the range" in ran.err
    assert ground.rows("SELECT * FROM packhorse.replay WHERE topic = %s", ground.topic) == []
    without = planned(ground, *told, "--leave-out-key", "1", "--leave-out-key", "2")
    assert (without["counts"]["handed"], without["counts"]["keys_beyond"]) == (2, 0)
    beyond = planned(ground, *told, "--beyond")
    assert beyond["checks"][0]["code"] == "keys-beyond"


def given_up(ground: Ground) -> Processor:
    """Let the group do messages 4 and 5; discard 0 to 2, of which the inbox forgets 1 and an edited copy replaces 2; purge 3."""
    app = noting(ground.namespace, retry=Retry(attempts=1))
    ground.make_topics(app)
    ids = [ground.send(n, "fails" if n < 4 else "", key=b"%d" % n) for n in range(6)]
    with ground.processing(app):
        eventually(
            lambda: len(ground.rows("SELECT FROM packhorse.quarantined_message")) == 4, what="four fail"
        )
        eventually(lambda: ground.watermark() == 6, what="all are looked at")
    ran = packhorse("quarantine", "discard", *ids[:3], "--why", "wrong", "--yes", **ground.environ)
    assert ran.code == 0, ran.err
    ran = packhorse("purge", "--subject", "3", "--why", "asked for", "--yes", **ground.environ)
    assert ran.code == 0, ran.err
    with psycopg.connect(ground.database, autocommit=True) as connection:
        connection.execute("DELETE FROM packhorse.inbox WHERE message_id = %s", [ids[1]])
        connection.execute(
            "UPDATE packhorse.quarantined_message SET edited_as = message_id WHERE message_id = %s", [ids[2]]
        )
    return app


@pytest.mark.case("O-12")
def test_again_leaves_out_what_a_person_gave_up(ground: Ground) -> None:
    """
    Fails when a discarded message comes about by --again unasked, or one that was edited or purged ever does: when the tables are
    not asked for what the inbox has forgotten, or the runner asks less than the plan.
    """
    app = given_up(ground)
    told = ("--partition", 0, "--from-offset", 0, "--again")
    plan = planned(ground, *told)
    assert plan["counts"]["standings"] == {"discarded": 2, "edited": 1, "purged": 1, "done": 2}
    assert plan["counts"]["handed"] == 2
    assert [one["code"] for one in plan["checks"]][:4] == [
        "again",
        "discarded",
        "edited",
        "purged",
    ]
    along = planned(ground, *told, "--with-discarded")
    assert along["counts"]["handed"] == 4
    assert along["checks"][1]["text"].startswith("2 messages that a person discarded would be handed over")
    with ground.processing(app) as running:
        running.until_assigned()
        ran = replay(ground, "run", plan["replay"], "--why", "wrong figures", "--yes", "--json")
        assert ran.code == 0, (ran.out, ran.err)
    assert sorted(ground.results()) == [4, 4, 5, 5]
    assert (ran.json()["progress"]["handed"], ran.json()["progress"]["given_up"]) == (2, 4)


@pytest.mark.case("O-12")
def test_again_leaves_out_keys_that_have_moved_on_since_the_plan(ground: Ground) -> None:
    """Fails when a message that came between plan and run is overwritten by an older one."""
    skipped_by_a_reset(ground, range(6), range(0))
    plan = planned(ground, "--partition", 0, "--from-offset", 0, "--again")
    with ground.processing(noting(ground.namespace)) as running:
        running.until_assigned()
        ground.send(6, key=b"0")
        eventually(lambda: ground.watermark() == 7, what="a live message is done")
        ran = replay(ground, "run", plan["replay"], "--why", "wrong figures", "--yes", "--json")
        assert ran.code == 0, (ran.out, ran.err)
    assert (ran.json()["progress"]["moved"], ran.json()["progress"]["done"]) == (2, 4)
    assert of_key(ground, 0) == [0, 3, 6]
    assert of_key(ground, 1) == [1, 4, 1, 4]


@pytest.mark.case("O-11")
def test_a_run_halts_when_too_many_fail_and_goes_on_when_told(ground: Ground) -> None:
    """Fails when failures of replayed messages are not looked at, or a halt is final."""
    app = noting(ground.namespace)
    ground.make_topics(app)
    for n in range(12):
        ground.send(n, "fails" if n < 3 else "", key=b"%d" % n)
    reset_to_the_end(ground)
    plan = planned(ground, "--partition", 0, "--from-offset", 0, "--rate", 4, "--most-failures", 1)
    with ground.processing(noting(ground.namespace)) as running:
        running.until_assigned()
        ran = replay(ground, "run", plan["replay"], "--why", WHY, "--yes", "--json")
        assert (ran.code, ran.json()["state"]) == (1, "halted")
        assert "are borne" in ran.json()["said"]
        assert len(ground.results()) < 9
        ran = replay(ground, "resume", plan["replay"], "--why", "known", "--most-failures", 5, "--json")
        assert ran.code in {1, 7}, (ran.out, ran.err)
        eventually(lambda: len(ground.results()) == 9, what="the others are done")
    assert ran.json()["state"] == "ended"


@pytest.mark.case("P-24")
@pytest.mark.parametrize("ordering", ["key", "none"])
def test_messages_that_no_order_binds_are_replayed_and_none_waits_for_one_that_fails(
    ground: Ground, ordering: Any
) -> None:
    """Fails when a message without a key is never woken, or when one that fails becomes the head of its stand-in."""
    app = Processor(GROUP, ordering=ordering)
    app.handler(ground.message, retry=Retry(attempts=1))(note)
    ground.make_topics(app)
    for n in range(40):
        ground.send(n, "fails" if n == 2 else "", key=None if ordering == "key" else b"one")
    reset_to_the_end(ground)
    plan = planned(ground, "--partition", 0, "--from-offset", 0)
    with ground.processing(app) as running:
        running.until_assigned()
        ran = replay(ground, "run", plan["replay"], "--why", WHY, "--yes", "--json")
        assert ran.code == 1, (ran.out, ran.err)
    assert sorted(ground.results()) == [n for n in range(40) if n != 2]
    assert ran.json()["progress"]["failed"] == 1


def test_a_plan_says_what_is_wrong_with_a_range_and_keeps_nothing(ground: Ground) -> None:
    """Fails when an empty or wrong range, an unknown group or a filter that matches nothing is planned."""
    skipped_by_a_reset(ground, range(3), range(0))

    def refused(*arguments: object, group: str = GROUP, topic: str = ground.topic) -> str:
        ran = replay(ground, "plan", "--group", group, "--topic", topic, *arguments)
        assert ran.code in {2, 3}, ran.out
        return ran.err

    whole = ("--partition", 0, "--from-offset", 0)
    assert "never read it" in refused(*whole, group="nobody")
    assert "does not exist" in refused(*whole, topic="no-such-topic")
    assert "partition 7" in refused("--partition", 7, "--from-offset", 0)
    assert "the range is empty" in refused("--partition", 0, "--from-offset", 2, "--to-offset", 2)
    assert "the log holds [0] 0 to before 3" in refused("--partition", 0, "--from-offset", 50)
    assert "matches none of the 3 records" in refused(*whole, "--type", "no.Such")
    assert "is no time" in refused("--since", "soon")
    assert "either by --from-offset" in refused("--partition", 0)
    assert "they know: none" in refused(*whole, "--handler", "rebuild")
    ground.send(3)
    ahead = planned(ground, *whole, "--key", "0")
    assert "ahead" in [check["code"] for check in ahead["checks"]]
    assert "the group has dealt with none" in refused("--partition", 0, "--from-offset", 3)
    with psycopg.connect(ground.database, autocommit=True) as connection:
        connection.execute("UPDATE packhorse.watermark SET topic_id = gen_random_uuid()")
    assert "was made anew" in refused(*whole)


def test_what_is_older_than_the_inbox_keeps_is_not_repeated(ground: Ground) -> None:
    """Fails when a missing row of a time that the inbox has forgotten counts as never done."""
    skipped_by_a_reset(ground, range(3), range(3, 6))
    with psycopg.connect(ground.database, autocommit=True) as connection:
        connection.execute("DELETE FROM packhorse.inbox")
        connection.execute(
            "INSERT INTO packhorse.inbox_retention (group_id, kept_from) VALUES (%s, clock_timestamp() + interval '1 hour')",
            (GROUP,),
        )
        try:
            plan = planned(ground, "--partition", 0, "--from-offset", 0)
            again = planned(ground, "--partition", 0, "--from-offset", 0, "--again")
        finally:
            connection.execute("DELETE FROM packhorse.inbox_retention")
    assert plan["counts"]["standings"] == {"older": 6}
    assert [check["code"] for check in plan["checks"]] == ["older", "no-processor", "nothing"]
    assert again["counts"]["handed"] == 6


def test_two_confirmations_at_once_run_it_once(ground: Ground) -> None:
    """Fails when a plan is confirmed without compare-and-set, or two replays of one group and topic are open."""
    skipped_by_a_reset(ground, range(0), range(4))
    plans = [planned(ground, "--partition", 0, "--from-offset", 0)["replay"] for _ in range(2)]
    with ground.processing(noting(ground.namespace)) as running:
        running.until_assigned()
        for _ in range(2):
            workers = [process_of(ground, "run", plans[0], "--why", WHY, "--yes") for _ in range(2)]
            assert sorted(worker.wait(60) for worker in workers) in ([0, 5], [5, 5])
        assert replay(ground, "run", plans[1], "--why", WHY, "--yes").code == 0
    assert sorted(ground.results()) == list(range(4))


def test_a_dry_run_decodes_and_counts_and_keeps_nothing(ground: Ground) -> None:
    """Fails when what can't be decoded is not counted by its reason, or a dry run keeps a plan."""
    skipped_by_a_reset(ground, range(3), range(3, 5))
    ground.send(payload=b"{junk", key=b"9")
    ground.send(payload=None, key=b"9")
    reset_to_the_end(ground)
    counts = planned(ground, "--partition", 0, "--from-offset", 0, "--dry-run")["counts"]
    assert counts["standings"] == {"never": 4, "done": 3}
    assert (counts["undecodable"], counts["tombstones"]) == ({"undecodable": 1}, 1)
    assert ground.rows("SELECT * FROM packhorse.replay WHERE topic = %s", ground.topic) == []


def test_a_named_handler_gets_what_a_replay_brings_and_nothing_of_live_traffic(ground: Ground) -> None:
    """
    Fails when the handler for replays gets live messages, when the usual one gets replayed ones, or when a copy that comes back
    from a tier has forgotten which handler it is for.
    """

    def rebuild(message: Any, ctx: Context) -> None:
        if message.n == 1 and ctx.attempt == 1:
            raise ValueError("fails once")
        ctx.connection.execute(
            "INSERT INTO result (id, n, attempt) VALUES (%s, %s, %s)", (ctx.id, message.n + 1000, ctx.attempt)
        )

    skipped_by_a_reset(ground, range(3), range(0))
    app = noting(ground.namespace)
    app.handler(ground.message, retry=Retry(attempts=3, delays=["100ms"]), replay="rebuild")(rebuild)
    with pytest.raises(UsageError, match="named 'rebuild'"):
        app.handler(ground.message, replay="rebuild")(rebuild)
    with ground.processing(app) as running:
        running.until_assigned()
        eventually(lambda: handlers_of(ground) == ["rebuild"], what="the processor has told its handlers")
        whole = ("--partition", 0, "--from-offset", 0)
        plan = planned(ground, *whole, "--handler", "rebuild")
        told = ("--group", GROUP, "--topic", ground.topic, *whole)
        assert "they know: rebuild" in replay(ground, "plan", *told, "--handler", "other").err
        ground.send(3, key=b"0")
        ran = replay(ground, "run", plan["replay"], "--why", "a new column", "--yes", "--json")
        eventually(lambda: len(ground.results()) == 7, what="all are done")
    assert ran.code in {0, 7}, (ran.out, ran.err)
    assert sorted(ground.results()) == [0, 1, 2, 3, 1000, 1001, 1002]


def test_a_handler_that_is_gone_stops_what_a_replay_brings_to_it(ground: Ground) -> None:
    """Fails when it goes to the usual handler instead, or is skipped in silence."""
    skipped_by_a_reset(ground, range(2), range(0))
    app = noting(ground.namespace)
    app.handler(ground.message, retry=Retry(attempts=3, delays=["100ms"]), replay="rebuild")(note)
    with ground.processing(app) as running:
        running.until_assigned()
        told = ("--partition", 0, "--from-offset", 0, "--handler", "rebuild")
        eventually(lambda: handlers_of(ground) == ["rebuild"], what="the processor has told its handlers")
        plan = planned(ground, *told)
    with ground.processing(noting(ground.namespace)) as running:
        running.until_assigned()
        ran = replay(ground, "run", plan["replay"], "--why", "a new column", "--yes", "--json")
    assert (ran.code, ran.json()["progress"]["failed"]) == (1, 2)
    assert ground.results() == [0, 1]
    found = ground.rows("SELECT DISTINCT reason FROM packhorse.quarantined_message")
    assert found == [("unknown-handler",)]


def handlers_of(ground: Ground) -> Any:
    found = ground.rows(
        "SELECT status -> 'replay_handlers' FROM packhorse.processor_member WHERE group_id = %s"
        " ORDER BY started_at DESC LIMIT 1",
        GROUP,
    )
    return found[0][0] if found else None


@pytest.mark.case("O-13")
def test_rights_are_asked_for_in_the_transaction_of_each_act(ground: Ground) -> None:
    """Fails when a viewer can plan or run, or an operator can put old state over new."""
    skipped_by_a_reset(ground, range(6), range(0))
    whole = ("--partition", 0, "--from-offset", 0)
    safe = planned(ground, *whole)["replay"]
    beyond = planned(ground, *whole, "--to-offset", 4, "--again", "--beyond")["replay"]
    told = ("--group", GROUP, "--topic", ground.topic, *whole)
    with token_of(ground, "viewer") as viewer, token_of(ground, "operator") as operator:
        seen = packhorse("replay", "status", safe, **viewer)
        assert seen.code == 0, seen.err
        for arguments in (
            ("plan", *told),
            ("run", safe, "--why", WHY, "--yes"),
            ("stop", safe, "--why", WHY, "--yes"),
        ):
            ran = packhorse("replay", *arguments, **viewer)
            assert (ran.code, "may not" in ran.err) == (8, True), (arguments, ran.err)
        ran = packhorse("replay", "run", beyond, "--why", WHY, "--yes", **operator)
        assert (ran.code, "administer" in ran.err) == (8, True), ran.err
        assert packhorse("replay", "stop", beyond, "--why", WHY, "--yes", **operator).code == 0
    states = ground.rows("SELECT state FROM packhorse.replay WHERE topic = %s ORDER BY id", ground.topic)
    assert states == [("planned",), ("stopped",)]


@contextmanager
def token_of(ground: Ground, role: str) -> Iterator[dict[str, str]]:
    """Provide the environment of somebody who holds a token of *role*."""
    token = f"phk_{role}"
    with psycopg.connect(ground.database, autocommit=True) as connection:
        connection.execute(
            "INSERT INTO packhorse.operator (kind, name, role, token_hash, made_by) VALUES ('token', %s, %s, %s, 'test')",
            (role, role, hash_of(token)),
        )
        try:
            yield {**ground.environ, "PACKHORSE_CONSOLE_TOKEN": token}
        finally:
            connection.execute("DELETE FROM packhorse.operator WHERE name = %s", (role,))


def test_a_run_lives_through_a_lost_connection_to_the_database(ground: Ground) -> None:
    """Fails when the runner ends, or hands something over twice, because its connections were cut."""
    skipped_by_a_reset(ground, range(0), range(30))
    plan = planned(ground, "--partition", 0, "--from-offset", 0, "--rate", 3)
    with ground.processing(noting(ground.namespace)) as running:
        running.until_assigned()
        worker = process_of(ground, "run", plan["replay"], "--why", WHY, "--yes")
        for some in (3, 9):
            eventually(partial(has_more, ground, some), what=f"{some} are replayed", timeout=30)
            eventually(lambda: cut_off(ground), what="its connections are cut")
        assert worker.wait(60) == 0
    assert sorted(ground.results()) == list(range(30))


def has_more(ground: Ground, than: int) -> bool:
    return len(ground.results()) > than


def cut_off(ground: Ground) -> bool:
    found = ground.rows(
        "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
        " WHERE application_name = 'packhorse console' AND datname = current_database()"
    )
    return bool(found[0][0])


@pytest.mark.case("P-27")
def test_a_run_lives_through_a_broker_that_is_killed(
    stack: Endpoints, shared_tables: str, topic_prefix: str, private_kafka: PrivateBroker
) -> None:
    """Fails when the runner ends, skips records, or hands some over twice, because the broker was away for a while."""
    ground = Ground(stack, shared_tables, topic_prefix, kafka=private_kafka.direct_bootstrap)
    skipped_by_a_reset(ground, range(0), range(60))
    plan = planned(ground, "--partition", 0, "--from-offset", 0, "--rate", 4)
    with ground.processing(noting(ground.namespace)) as running:
        running.until_assigned()
        worker = process_of(ground, "run", plan["replay"], "--why", WHY, "--yes")
        eventually(partial(has_more, ground, 3), what="some are replayed", timeout=30)
        private_kafka.kill()
        private_kafka.start()
        assert worker.wait(120) == 0
        eventually(lambda: len(ground.results()) == 60, what="all are done", timeout=60)
    assert sorted(ground.results()) == list(range(60))
    assert all(of_key(ground, k) == sorted(of_key(ground, k)) for k in range(3))


@pytest.mark.case("X-11")
def test_roles_with_the_least_rights_of_operators_can_replay_and_admins_reset(ground: Ground) -> None:
    """Fails when a statement of a replay or of a reset needs a right that `migrate sql --grants` does not give."""
    skipped_by_a_reset(ground, range(3), range(3, 6))
    with role_of(ground, "operator") as operator, role_of(ground, "admin") as admin:
        ran = packhorse(
            "replay",
            "plan",
            "--group",
            GROUP,
            "--topic",
            ground.topic,
            "--since",
            "2020-01-01T00:00Z",
            "--json",
            **operator,
        )
        assert ran.code == 0, ran.err
        with ground.processing(noting(ground.namespace)) as running:
            running.until_assigned()
            ran = packhorse(
                "replay", "run", ran.json()["replay"], "--why", WHY, "--yes", "--json", **operator
            )
            assert ran.code == 0, (ran.out, ran.err)
        reset = (
            "offsets",
            "reset",
            "--group",
            GROUP,
            "--topic",
            ground.topic,
            "--to",
            "earliest",
            "--why",
            WHY,
            "--yes",
        )
        assert packhorse(*reset, **operator).code == 8
        ran = packhorse(*reset, **admin)
        assert ran.code == 0, ran.err
    assert sorted(ground.results()) == list(range(6))


@contextmanager
def role_of(ground: Ground, purpose: str) -> Iterator[dict[str, str]]:
    """Provide the environment of somebody who connects as a role with the grants of *purpose*."""
    with (
        psycopg.connect(ground.database, autocommit=True) as connection,
        roles_of(connection, ground.database) as roles,
    ):
        yield {**ground.environ, "PACKHORSE_DATABASE_URL": roles.url(roles.make(purpose))}
