"""SIGKILL at named points, SIGTERM, SIGSTOP: real processes on the real stack."""

import json
import os
import signal
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from subprocess import Popen
from uuid import UUID

import pytest
from tests.support.databases import fresh_database, unique_name
from tests.support.processing import GROUP, Ground, noting
from tests.support.processing_child import child, in_hand, until_dead
from tests.support.wait import eventually

from packhorse.local.settings import Endpoints
from packhorse.processor import Retry
from packhorse.processor.signals import Point

BACK = Retry(attempts=2, delays=["100ms"])


RESULT = (Point.BEFORE_RESULT, Point.AFTER_RESULT, Point.AFTER_WATERMARK)
COPY = (Point.BEFORE_COPY, Point.AFTER_COPY)
Killed = dict[tuple[Point, str], tuple[Ground, list[UUID]]]


@pytest.fixture(scope="module")
def killed(stack: Endpoints, _template: str) -> Iterator[Killed]:
    """Kill a processor at each point; together, since the broker takes a while to see that a member is dead."""
    found: Killed = {}
    with ExitStack() as block:
        dying = []
        for point, what in (
            *((point, "") for point in RESULT),
            (Point.ATTEMPT, "fails"),
            *((point, what) for point in COPY for what in ("junk", "fails once")),
        ):
            url = block.enter_context(fresh_database(stack.database_url, _template))
            ground = Ground(stack, url, unique_name("t"))
            ground.make_topics(noting(ground.namespace))
            first = ground.send(0, what, payload=b"junk" if what == "junk" else "")
            last = point is Point.ATTEMPT
            found[point, what] = (ground, [first, *([] if last else beside(ground))])
            count = 2 if last else 1
            dying.append(block.enter_context(child(ground, point, count)))
        for process in dying:
            assert until_dead(process) == -signal.SIGKILL
        yield found


def beside(ground: Ground) -> list[UUID]:
    """Send messages of another key."""
    return [ground.send(n, key=b"another") for n in (1, 2)]


@pytest.mark.case("P-13")
@pytest.mark.case("P-15")
@pytest.mark.parametrize("point", RESULT)
def test_a_kill_around_the_result_repeats_no_effect_and_loses_none(killed: Killed, point: Point) -> None:
    """After the result, before the commit: fails when the inbox row is written in a transaction of its own."""
    ground, sent = killed[point, ""]
    durable = point is not Point.BEFORE_RESULT
    assert bool(ground.results()) is durable
    assert ground.watermark() == (0 if point is not Point.AFTER_WATERMARK else len(ground.results()))
    assert ground.committed() in {None, 0}
    with ground.processing(noting(ground.namespace, retry=BACK)):
        ground.until_results(0, 1, 2, timeout=40, any_order=True)
    assert all(ground.outcome(one)[0] == "done" for one in sent)  # type: ignore[index]


@pytest.mark.case("T-10")
@pytest.mark.case("P-02")
def test_a_kill_on_the_last_attempt_runs_it_again_and_ends_in_quarantine(killed: Killed) -> None:
    """Fails when the attempt is charged before its outcome is durable, or the count starts anew."""
    ground, (bad,) = killed[Point.ATTEMPT, "fails"]
    assert ground.outcome(bad) == ("retry", 2, "failed", 1)
    beside(ground)
    with ground.processing(noting(ground.namespace, retry=BACK)):
        ground.until_results(1, 2, timeout=40)
        ground.until_outcome(bad, "quarantine")
    assert ground.outcome(bad) == ("quarantine", 2, "attempts-exhausted", 2)
    assert ground.rows("SELECT attempt FROM packhorse.failed_attempt ORDER BY attempt") == [(1,), (2,)]


@pytest.mark.case("P-08")
@pytest.mark.parametrize("point", COPY)
def test_a_kill_before_the_copy_is_confirmed_sends_it_again(killed: Killed, point: Point) -> None:
    """Fails when the watermark or the offset moves before the copy is confirmed."""
    ground, (junk, *_) = killed[point, "junk"]
    assert ground.outcome(junk)[0] == "quarantine"  # type: ignore[index]
    assert ground.watermark() == 0
    assert ground.committed() in {None, 0}
    with ground.processing(noting(ground.namespace, retry=BACK)):
        ground.until_results(1, 2, timeout=40)
        copies = ground.stood(f"{ground.topic}.{GROUP}.quarantine", 1 if point is Point.BEFORE_COPY else 2)
    assert {copy.value for copy in copies} == {b"junk"}
    found = ground.rows("SELECT copy_offset FROM packhorse.quarantined_message")
    assert found == [(len(copies) - 1,)]


@pytest.mark.case("T-23")
@pytest.mark.parametrize("point", COPY)
def test_a_kill_before_the_copy_to_the_tier_is_confirmed_sends_it_again_and_runs_the_handler_once_for_it(
    killed: Killed, point: Point
) -> None:
    """Fails when who meets the recorded attempt runs the handler, or settles the record without sending the copy."""
    ground, (late, *_) = killed[point, "fails once"]
    assert ground.outcome(late) == ("retry", 2, "failed", 1)
    assert ground.watermark() == 0
    behind = ground.send(3)
    with ground.processing(noting(ground.namespace, retry=BACK)):
        ground.until_outcome(behind, "done", timeout=40)
        eventually(lambda: not ground.rows("SELECT FROM packhorse.parked_key"), what="the key is let go")
    assert [n for n in ground.results() if n in {0, 3}] == [0, 3]
    assert ground.outcome(late)[:2] == ("done", 2)  # type: ignore[index]
    assert ground.rows("SELECT attempt FROM packhorse.failed_attempt") == [(1,)]


@pytest.mark.case("X-09")
@pytest.mark.case("P-07")
def test_sigterm_finishes_what_is_in_hand_and_commits_it(ground: Ground, tmp_path: Path) -> None:
    """Fails when the stop does not wait for lanes, or leaves without a commit."""
    slow = tmp_path / "slow"
    slow.touch()
    ground.make_topics(noting(ground.namespace))
    ground.send(0)
    with child(ground, SLOW=str(slow)) as process:
        in_hand(ground)
        ground.send(1)
        process.send_signal(signal.SIGTERM)
        slow.unlink()
        assert until_dead(process) == 0
    done = ground.results()
    assert done in ([0], [0, 1])
    assert ground.committed() == len(done)


@pytest.mark.case("X-09")
def test_a_second_signal_leaves_at_once_without_a_commit(ground: Ground, tmp_path: Path) -> None:
    slow = tmp_path / "slow"
    slow.touch()
    ground.make_topics(noting(ground.namespace))
    ground.send(0)
    with child(ground, SLOW=str(slow)) as process:
        in_hand(ground)
        process.send_signal(signal.SIGTERM)
        assert process.stdout is not None
        until_told(process, "stopping")
        process.send_signal(signal.SIGTERM)
        assert until_dead(process) == 128 + signal.SIGTERM
    assert ground.results() == []
    assert ground.watermark() == 0


@pytest.mark.case("P-10")
@pytest.mark.case("P-13")
def test_a_frozen_owner_that_wakes_does_no_harm(ground: Ground, tmp_path: Path) -> None:
    """The broker's session time-out passes, another member takes over, the first one wakes in its handler."""
    slow = tmp_path / "slow"
    slow.touch()
    app = noting(ground.namespace)
    ground.make_topics(app)
    sent = ground.send(0)
    with child(ground, SLOW=str(slow), PACKHORSE_PROCESSOR_IDLE_TRANSACTION_TIMEOUT="2") as process:
        in_hand(ground)
        os.kill(process.pid, signal.SIGSTOP)
        with ground.processing(app):
            ground.send(1)
            ground.until_results(0, 1, timeout=60)
            slow.unlink()
            os.kill(process.pid, signal.SIGCONT)
            ground.send(2)
            ground.until_results(0, 1, 2, timeout=60)
        ground.send(3)
        ground.until_results(0, 1, 2, 3, timeout=60)
        assert process.poll() is None
    assert ground.outcome(sent)[0] == "done"  # type: ignore[index]
    assert ground.rows("SELECT * FROM packhorse.failed_attempt") == []


@pytest.mark.case("P-30")
@pytest.mark.case("T-11")
def test_of_a_batch_only_the_message_that_kills_its_process_is_stopped_and_its_neighbours_are_done(
    ground: Ground,
) -> None:
    """
    Fails when starts are not put on record before the handler runs, or all of a batch that was found unfinished are blamed, or
    one that always runs beside the one that kills is blamed with it.
    """
    # A member that comes back under its name has its partitions at once; others wait until the dead one is missed. It is
    # missed by its group for long, so that is one of its own.
    group, name = f"{GROUP}-named", {"group.instance.id": ground.namespace}
    named = {
        "PACKHORSE_TEST_GROUP": group,
        "PACKHORSE_PROCESSOR_GROUP_PROTOCOL": "classic",
        "PACKHORSE_KAFKA_PROPERTIES": json.dumps(name),
    }
    ground.make_topics(noting(ground.namespace, group))
    near = [ground.send(0, key=b"a"), ground.send(1, key=b"b")]
    bad = ground.send(2, "kills", key=b"c")
    behind = ground.send(3, key=b"c")
    near.append(ground.send(4, "lingers", key=b"a"))
    deaths = 0
    while not ground.rows("SELECT FROM packhorse.quarantined_message"):
        assert deaths <= 4, ground.rows("SELECT * FROM packhorse.started")
        with child(ground, None, 1, **named) as process:
            eventually(
                lambda: stopped_or_dead(ground, process), what="it dies, or stops the message", timeout=60
            )
            deaths += process.poll() is not None
            if process.poll() is None:
                for one in near:
                    ground.until_outcome(one, "done", group=group)
                ground.until_outcome(behind, "parked", group=group)
                process.send_signal(signal.SIGTERM)
                assert until_dead(process) == 0
    assert deaths == 4, "once in its batch, three times alone"
    assert ground.outcome(bad, group) == ("quarantine", 1, "crashed", 1)
    assert ground.rows("SELECT message_id FROM packhorse.quarantined_message") == [(bad,)]
    assert ground.rows('SELECT * FROM packhorse.started WHERE "offset" = 2') == []
    assert sorted(ground.results()) == [0, 1, 4]


def stopped_or_dead(ground: Ground, process: "Popen[str]") -> bool:
    """Return whether the child has ended, or a message is in quarantine."""
    return process.poll() is not None or bool(ground.rows("SELECT FROM packhorse.quarantined_message"))


def until_told(process: object, text: str) -> None:
    """Wait until the child's log tells *text*."""
    lines = process.stdout  # type: ignore[attr-defined]
    eventually(lambda: text in lines.readline(), what=f"the log says {text}", timeout=30)
