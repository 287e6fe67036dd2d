"""Redrives of sets the whole way: a real processor fails, a set is frozen, copies go over a real broker, outcomes prove it."""

import json
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from tests.support.cli import Ran, packhorse, packhorse_process, packhorse_started
from tests.support.processing import GROUP, Ground, note
from tests.support.redrive_child import killed_at
from tests.support.topics import set_limit, wait_for_limit
from tests.support.wait import eventually

from packhorse.console.redriving.shell import Point
from packhorse.processor import Context, Processor, Quarantine

WHY = ("--why", "fixed in 1.4.2")


class Fixable:
    """A processor whose handler refuses everything until it is fixed."""

    def __init__(self, ground: Ground, **given: Any) -> None:
        self.broken = True
        self.app = Processor(GROUP)

        @self.app.handler(ground.message, **given)
        def handle(message: Any, ctx: Context) -> None:
            if self.broken and message.what != "passes":
                raise Quarantine("not-now")
            note(message, ctx)

        ground.make_topics(self.app)


def run(ground: Ground, *arguments: object) -> Ran:
    return packhorse("redrive", *arguments, **ground.environ)


def frozen(ground: Ground, *more: object) -> int:
    found = run(ground, "preview", "--group", GROUP, "--json", *more)
    assert found.code == 0, found.err
    return int(found.json()["id"])


def resumed(ground: Ground, redrive: int) -> Ran:
    environ: dict[str, Any] = ground.environ
    return packhorse_process("redrive", "resume", redrive, "--json", **environ)


def quarantined(ground: Ground, *ids: UUID) -> None:
    for one in ids:
        ground.until_outcome(one, "quarantine")


@pytest.mark.case("O-01")
@pytest.mark.case("O-07")
def test_a_set_goes_over_the_broker_and_is_proved_by_outcomes(ground: Ground) -> None:
    """Fails when more than was frozen goes, or a member counts as proved before its outcome is there."""
    fixable = Fixable(ground)
    sent = [ground.send(n, key=b"%d" % n) for n in range(12)]
    with ground.processing(fixable.app):
        quarantined(ground, *sent)
        redrive = frozen(ground, "--stages", "1,5,20")
        later = ground.send(99, key=b"later")
        quarantined(ground, later)
    asked = run(ground, "run", redrive, *WHY, "--yes", "--detach", "--json")
    assert asked.json()["progress"]["waiting"] == 12
    fixable.broken = False
    with packhorse_started("redrive", "resume", redrive, **ground.environ) as process:
        eventually(
            lambda: run(ground, "status", redrive, "--json").json()["progress"]["asked"] == 1,
            what="the first is asked for",
            timeout=30,
        )
        held = run(ground, "status", redrive, "--json").json()["progress"]
        assert (held["sent"], held["good"], held["waiting"]) == (0, 0, 11)
        with ground.processing(fixable.app):
            out, err = process.communicate(timeout=60)
    assert process.returncode == 0, (out, err)
    assert "12 proved good" in err
    assert sorted(ground.results()) == list(range(12))
    assert ground.outcome(later)[0] == "quarantine"  # type: ignore[index]


@pytest.mark.case("O-03")
def test_a_fix_that_is_no_fix_costs_one_message(ground: Ground) -> None:
    fixable = Fixable(ground)
    sent = [ground.send(n, key=b"%d" % n) for n in range(8)]
    with ground.processing(fixable.app):
        quarantined(ground, *sent)
        redrive = frozen(ground)
        halted = run(ground, "run", redrive, *WHY, "--yes")
        assert halted.code == 1
        assert "halted: 1 of 1 in stage 1 failed again" in halted.out
        assert f"packhorse redrive resume {redrive} goes on" in halted.err
        assert ground.rows("SELECT sum(redrives) FROM packhorse.quarantined_message")[0][0] == 1
        fixable.broken = False
        assert run(ground, "resume", redrive, "--why", "now it is").code == 1
    status = run(ground, "status", redrive, "--json").json()
    assert (status["state"], status["progress"]["good"], status["progress"]["bad"]) == ("ended", 7, 1)


@pytest.mark.case("O-06")
def test_members_of_one_key_take_effect_in_their_first_order_and_then_what_was_parked(ground: Ground) -> None:
    """Fails when what waits behind the first member runs before the second one."""
    fixable = Fixable(ground, after_quarantine="continue")
    sent = [ground.send(n) for n in (1, 2, 3)]
    with ground.processing(fixable.app):
        quarantined(ground, *sent)
    redrive = frozen(ground)
    run(ground, "run", redrive, *WHY, "--yes", "--detach")
    assert killed_at(redrive, Point.AFTER_COMMIT, 1, ground.environ) == -9
    later = [ground.send(n, "passes") for n in (4, 5)]
    fixable.broken = False
    with ground.processing(fixable.app):
        for one in later:
            ground.until_outcome(one, "done", timeout=60)
        assert resumed(ground, redrive).code == 0
    assert ground.results() == [1, 2, 3, 4, 5]
    assert ground.rows("SELECT FROM packhorse.parked_message") == []


@pytest.mark.case("O-04")
def test_a_killed_runner_is_followed_by_another_and_none_goes_twice(ground: Ground) -> None:
    """Fails when what a killed runner has asked for is asked for again, or forgotten."""
    fixable = Fixable(ground)
    ground.send_many(range(25))
    with ground.processing(fixable.app):
        eventually(
            lambda: len(ground.rows("SELECT FROM packhorse.quarantined_message")) == 25, what="all stopped"
        )
        redrive = frozen(ground)
        run(ground, "run", redrive, *WHY, "--yes", "--detach")
        fixable.broken = False
        for point, count in ((Point.BEFORE_COMMIT, 1), (Point.AFTER_COMMIT, 2), (Point.AFTER_PROOF, 2)):
            assert killed_at(redrive, point, count, ground.environ) == -9
            ground.rows("UPDATE packhorse.redrive SET lease_until = clock_timestamp() RETURNING 1")
        done = resumed(ground, redrive)
    assert done.code == 0, done.err
    assert done.json()["progress"]["good"] == 25
    assert sorted(ground.results()) == list(range(25))
    assert ground.rows(
        "SELECT count(*), count(DISTINCT message_id) FROM packhorse.audit WHERE act = 'redrive'"
    ) == [(25, 25)]


@pytest.mark.case("O-05")
def test_one_that_the_broker_refuses_is_named_and_the_rest_proceeds(ground: Ground) -> None:
    """Fails when a refused copy keeps the run from its end, or nobody is told which it is and why."""
    fixable = Fixable(ground)
    large = ground.send(0, "x" * 20_000, key=b"large")
    behind = ground.send(1, "passes", key=b"large")
    small = [ground.send(n, key=b"%d" % n) for n in (2, 3, 4)]
    with ground.processing(fixable.app):
        quarantined(ground, large, *small)
        ground.until_outcome(behind, "parked")
        fixable.broken = False
        tier = f"{ground.topic}.{GROUP}.retry.0s"
        set_limit(ground.kafka, tier, 4_000)
        wait_for_limit(ground.kafka, tier, bytes(20_000), refused=True)
        redrive = frozen(ground)
        ended = run(ground, "run", redrive, *WHY, "--yes", "--json")
        assert ended.code == 1
        assert (ended.json()["state"], ended.json()["progress"]["good"]) == ("ended", 3)
        (left,) = run(ground, "members", redrive, "--state", "left", "--json").json()["members"]
        assert left["id"] == str(large)
        assert left["said"].startswith("the broker refuses it: ")
        assert "packhorse topics apply" in left["said"]
        assert ground.outcome(behind)[0] == "parked"  # type: ignore[index]
        set_limit(ground.kafka, tier, 2_000_000)
        ground.until_outcome(behind, "done", timeout=60)
    assert sorted(ground.results()) == [0, 1, 2, 3, 4]


@pytest.mark.case("O-08")
def test_what_fails_again_has_its_whole_history(ground: Ground) -> None:
    fixable = Fixable(ground)
    sent = ground.send(1)
    with ground.processing(fixable.app):
        quarantined(ground, sent)
        for _ in range(3):
            redrive = frozen(ground)
            assert run(ground, "run", redrive, *WHY, "--yes").code == 1
            run(ground, "abort", redrive, *WHY)
    shown = packhorse("quarantine", "show", sent, "--json", **ground.environ).json()
    assert shown["redrives"] == 3
    assert [attempt["attempt"] for attempt in shown["failed_attempts"]] == [1, 2, 3, 4]
    assert [act["act"] for act in shown["acts"]] == ["redrive"] * 3


@pytest.mark.parametrize("key", [b"k", None])
def test_an_edited_copy_takes_its_parents_place_and_what_waits_behind_follows(
    ground: Ground, tmp_path: Path, key: bytes | None
) -> None:
    """Fails when the copy is not drained first, keeps the parent's id, or its parent goes on resting in quarantine."""
    app = Processor(GROUP)

    @app.handler(ground.message)
    def handle(message: Any, ctx: Context) -> None:
        if message.n == 0:
            raise Quarantine("zero")
        note(message, ctx)

    ground.make_topics(app)
    parent = ground.send(0, "comma", key=key, headers={"x": b"1", "traceparent": b"00-trace"})
    behind = [ground.send(n, key=b"k") for n in (1, 2)]
    fixed = tmp_path / "fixed.json"
    with ground.processing(app):
        ground.until_outcome(parent, "quarantine")
        for one in behind:
            ground.until_outcome(one, "parked" if key else "done")
        fixed.write_text(json.dumps({"n": 7, "what": 5}))
        refused = edited(ground, parent, fixed)
        assert (refused.code, "what: given int 5" in refused.err) == (2, True), refused.err
        fixed.write_text(json.dumps({"n": 7, "what": "comma"}))
        done = edited(ground, parent, fixed)
        assert done.code == 0, done.err
        ground.until_results(*([7, 1, 2] if key else [1, 2, 7]))
        eventually(lambda: not ground.rows("SELECT FROM packhorse.parked_key"), what="the key is let go")
    told = done.json()
    copy = UUID(told["id"])
    assert told["fields"] == ["n"]
    assert (ground.outcome(parent)[0], ground.outcome(copy)[0]) == ("discarded", "done")  # type: ignore[index]
    acts = "SELECT message_id, detail FROM packhorse.audit WHERE act = 'edit' ORDER BY id"
    assert ground.rows(acts)[-2:] == [
        (parent, {"edited_as": str(copy), "fields": ["n"]}),
        (copy, {"edited_from": str(parent), "fields": ["n"]}),
    ]
    again = edited(ground, parent, fixed)
    assert (again.code, "is discarded already" in again.err) == (5, True)


def edited(ground: Ground, message_id: UUID, payload: Path) -> Ran:
    arguments = ("edit", message_id, "--payload", payload, "--why", "a comma", "--yes", "--json")
    return packhorse("quarantine", *arguments, **ground.environ)
