"""What stands still is named, health turns bad with it, and what people pause stays paused."""

import asyncio
import logging
import threading
from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka import TopicPartition
from tests.support.cli import packhorse
from tests.support.processing import GROUP, Ground, Running, noting
from tests.support.wait import eventually

from packhorse.processor import AsyncContext, Context, Processor
from packhorse.processor.kafka.consumer import Polled


def deafened(
    running: Running, ground: Ground, deaf: threading.Event, done: threading.Event
) -> Callable[[float, int], Polled]:
    """Return a poll whose client, while *deaf* is set, fetches the topic no more and says nothing of it, as *done* says."""
    consumer = running.composed.loop._consumer
    poll, client, place = consumer.poll, consumer._consumer, [TopicPartition(ground.topic, 0)]

    def polled(wait: float, most: int) -> Polled:
        (client.pause if deaf.is_set() else client.resume)(place)
        done.set()
        return poll(wait, most)

    return polled


def not_live(running: Running) -> str:
    return " ".join(running.composed.plant.board.vitals.health().not_live)


@pytest.mark.case("X-03")
@pytest.mark.case("P-27")
def test_a_partition_that_fetches_no_more_is_named_and_health_turns_bad(
    ground: Ground, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fails when only what the client has brought counts as work: it brings nothing, so nothing would be missed."""
    app = noting(ground.namespace)
    ground.make_topics(app)
    ground.send(0)
    caplog.set_level(logging.INFO, logger="packhorse")
    with ground.processing(app, stall_after=1) as running:
        ground.until_results(0)
        deaf, done = threading.Event(), threading.Event()
        deaf.set()
        monkeypatch.setattr(running.composed.loop._consumer, "poll", deafened(running, ground, deaf, done))
        assert done.wait(10)
        ground.send(1)
        eventually(lambda: f"does not move: {ground.topic}[0]" in not_live(running), what="it is named")
        line = next(record for record in caplog.records if record.message == "does not move")
        assert line.levelno == logging.ERROR
        assert line.packhorse_fields["cause"] == "unexplained"  # type: ignore[attr-defined]
        deaf.clear()
        ground.until_results(0, 1)
        eventually(lambda: not not_live(running), what="all is well again")
        eventually(lambda: "moves again" in caplog.messages, what="its end is said")


@pytest.mark.case("X-03")
@pytest.mark.parametrize("kind", ["def", "async def"])
def test_a_handler_that_hangs_is_named_with_its_stack_in_log_and_row(
    ground: Ground, caplog: pytest.LogCaptureFixture, kind: str
) -> None:
    """Fails when what a lane runs is not noted, or the frame of an awaiting task alone is shown."""
    app, inside, go = Processor(GROUP), threading.Event(), threading.Event()

    def deep() -> None:
        inside.set()
        assert go.wait(60)

    async def deep_async() -> None:
        await asyncio.to_thread(deep)

    def handle(message: Any, ctx: Context) -> None:
        deep()

    async def handle_async(message: Any, ctx: AsyncContext) -> None:
        await deep_async()

    app.handler(ground.message)(handle if kind == "def" else handle_async)
    ground.make_topics(app)
    sent = ground.send(7, key=b"personal-key")
    with ground.processing(app, stall_after=1) as running:
        assert inside.wait(20)
        eventually(lambda: "does not move" in caplog.messages, what="it is said")
        stalls: Any = eventually(lambda: (row_of(ground) or {}).get("stalls"), what="the row tells of it")
        assert running.composed.plant.board.vitals.health().live, "what runs is no reason to end the process"
        told = packhorse("processor", "status", "--group", GROUP, **ground.environ).out
        go.set()
        ground.until_outcome(sent, "done")
    stack = " ".join(stalls[-1]["stack"])
    assert stack.count("test_watching.py") >= 2
    assert ("deep" if kind == "def" else "deep_async") in stack
    assert (stalls[-1]["type"], stalls[-1]["offset"]) == ("tests.Noted", 0)
    assert "the handler of tests.Noted has run for" in told
    assert "personal-key" not in f"{told}{stalls}{caplog.text}"
    assert row_of(ground) is None, "who leaves takes the row along"


def row_of(ground: Ground) -> Any:
    """Return the status in the one member's row."""
    found = ground.rows("SELECT status FROM packhorse.processor_member WHERE group_id = %s", GROUP)
    return found[0][0] if found else None


def paused(ground: Ground) -> str:
    """Return what the command lists."""
    return packhorse("processor", "paused", "--group", GROUP, **ground.environ).out


@pytest.mark.case("O-10")
def test_what_is_paused_stays_so_through_rebalance_and_restart_until_released(wide_ground: Ground) -> None:
    """Fails when a pause is kept in the member alone, or a partition that is assigned anew begins before pauses are looked at."""
    ground, app = wide_ground, noting(wide_ground.namespace)
    ground.make_topics(app)
    where = ("--group", GROUP, "--topic", ground.topic, "--partition", 1)
    with ground.processing(app) as first:
        first.until_assigned(2)
        done = packhorse("processor", "pause", *where, "--why", "bad import", **ground.environ)
        assert (done.code, done.out) == (0, f"paused: {ground.topic}[1] of group {GROUP}\n")
        eventually(lambda: first.composed.loop.states[ground.topic, 1].held, what="the member holds it")
        ground.send(1, partition=1)
        ground.send(0, partition=0)
        ground.until_results(0)
        with ground.processing(app):
            first.stop()
            ground.send(2, partition=0)
            ground.until_results(0, 2, timeout=40)
    with ground.processing(app) as again:
        again.until_assigned(4)
        ground.send(3, partition=0)
        ground.until_results(0, 2, 3)
        assert ground.committed(1) in {None, 0}
        told = packhorse("processor", "status", "--group", GROUP, **ground.environ).out
        assert f"PAUSED  {ground.topic}[1] paused by" in told
        assert ": bad import" in paused(ground)
        doctor = packhorse("doctor", **ground.environ).out
        assert f"pauses of {GROUP}" in doctor
        assert f"processors of {GROUP}" in doctor
        viewer = packhorse("operators", "token", "eve", "--role", "viewer", **ground.environ).out.strip()
        for act in ("pause", "resume"):
            refused = packhorse(
                *("processor", act, *where, "--why", "x"), **ground.environ, PACKHORSE_CONSOLE_TOKEN=viewer
            )
            assert (refused.code, f"eve may not {act}" in refused.err) == (8, True)
        resumed = packhorse("processor", "resume", *where, "--why", "mended", **ground.environ)
        assert resumed.out == f"resumed: {ground.topic}[1] of group {GROUP}\n"
        ground.until_results(0, 2, 3, 1)
    assert paused(ground) == f"nothing is paused in group {GROUP}\n"
    acts = ground.rows(
        "SELECT act, topic, detail, why FROM packhorse.audit WHERE act IN ('pause', 'resume') ORDER BY id"
    )
    assert acts == [
        ("pause", ground.topic, {"partition": 1}, "bad import"),
        ("resume", ground.topic, {"partition": 1}, "mended"),
    ]


@pytest.mark.case("X-04")
@pytest.mark.case("P-29")
def test_a_thread_that_dies_turns_health_bad_and_ends_the_process(ground: Ground) -> None:
    """Fails when nobody looks whether the threads beside the loop live: pauses would be read no more, and all look well."""
    app = noting(ground.namespace)
    ground.make_topics(app)
    with ground.processing(app) as running:
        running.until_assigned()
        running.taken = True
        running.composed.watching.roster._stop.set()
        eventually(lambda: running.error is not None, what="the process ends")
    assert "packhorse-roster has ended" in str(running.error)
    assert "packhorse-roster has ended" in not_live(running) or "loop has ended" in not_live(running)


@pytest.mark.case("O-10")
def test_a_paused_key_waits_alone_and_goes_on_in_order_when_it_is_resumed(ground: Ground) -> None:
    """Fails when a paused key needs a head to wait behind, or nobody wakes what waits once it is let go."""
    app = noting(ground.namespace)
    ground.make_topics(app)
    where = ("--group", GROUP, "--topic", ground.topic, "--key", "k")
    with ground.processing(app) as running:
        running.until_assigned(2)
        assert packhorse("processor", "pause", *where, "--why", "wrong data", **ground.environ).code == 0
        waiting = [ground.send(n, key=b"k") for n in (1, 2)]
        ground.send(3, key=b"other")
        ground.until_results(3)
        for message_id in waiting:
            ground.until_outcome(message_id, "parked")
        assert "(role postgres): wrong data, 2 messages behind it" in paused(ground)
        again = packhorse("processor", "pause", *where, "--why", "wrong data", **ground.environ)
        assert again.out == f"was paused already: a key of {ground.topic} of group {GROUP}\n"
        assert packhorse("processor", "resume", *where, "--why", "mended", **ground.environ).code == 0
        ground.until_results(3, 1, 2)
        eventually(lambda: not ground.rows("SELECT FROM packhorse.parked_key"), what="the key is let go")
