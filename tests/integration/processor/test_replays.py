"""Replays on a real broker and database: a range is handed to the live group, once, in order, with its own progress."""

from typing import Any

import pytest
from tests.support.cli import Ran, packhorse
from tests.support.processing import GROUP, Ground, noting
from tests.support.wait import eventually

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
