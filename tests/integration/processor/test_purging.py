"""A person's messages go while a processor of the group runs: what stands behind them goes on, what still comes is a duplicate."""

import threading
from typing import Any

import pytest
from tests.support.cli import packhorse
from tests.support.processing import GROUP, Ground, note, noted, noting
from tests.support.wait import eventually

from packhorse.processor import Context, Processor, Retry

WHY = ("--why", "request 4711", "--yes")


@pytest.mark.case("P3")
@pytest.mark.parametrize("stopped", ["quarantine", "retry"])
def test_a_key_whose_messages_are_erased_is_free_again_and_its_copies_run_nothing(
    ground: Ground, stopped: str
) -> None:
    """Fails when nobody wakes the key, when its followers run all the same, or a copy in a tier is taken for a message."""
    retry = Retry(attempts=1) if stopped == "quarantine" else Retry(attempts=3, delays=["2s"])
    app = noting(ground.namespace, retry=retry)
    ground.make_topics(app)
    with ground.processing(app) as running:
        running.until_assigned(2 if stopped == "quarantine" else 3)
        head = ground.send(1, "fails", key=b"ann")
        ground.until_outcome(head, stopped)
        follower = ground.send(2, key=b"ann")
        ground.until_outcome(follower, "parked")
        if stopped == "retry":
            eventually(
                lambda: ground.rows("SELECT FROM packhorse.retry_message WHERE sent_at IS NOT NULL"),
                what="its copy stands in the tier",
            )
        done = packhorse("purge", "--subject", "ann", *WHY, "--json", **ground.environ)
        assert done.code == 0, done.err
        assert done.json()["counts"]["messages given up"] == 2
        eventually(lambda: not ground.rows("SELECT FROM packhorse.parked_key"), what="the key is free")
        again = ground.send(3, key=b"ann")
        ground.until_outcome(again, "done")
        if stopped == "retry":
            eventually(
                lambda: ground.rows(
                    "SELECT FROM packhorse.inbox WHERE message_id = %s AND deliveries > 1", head
                ),
                what="the copy came",
            )
        ground.send(2, key=b"ann", message_id=follower)
        ground.send(4, key=b"other")
        ground.until_results(3, 4)
    outcomes = dict(
        ground.rows("SELECT message_id, outcome || ' ' || coalesce(reason, '') FROM packhorse.inbox")
    )
    assert (outcomes[head], outcomes[follower]) == ("discarded purged", "discarded purged")
    shown = packhorse("quarantine", "list", "--group", GROUP, "--state", "all", "--json", **ground.environ)
    states = [one["state"] for one in shown.json()["messages"]]
    assert states == (["discarded"] if stopped == "quarantine" else [])


@pytest.mark.case("P7")
def test_what_runs_while_it_is_erased_has_no_effect(ground: Ground) -> None:
    """Fails when a result is written for a message that was given up meanwhile: what was erased would stand in the results."""
    app, inside, go = Processor(GROUP), threading.Event(), threading.Event()

    def handle(message: Any, ctx: Context) -> None:
        if message.n == 1 and ctx.attempt == 2:
            inside.set()
            assert go.wait(60)
        note(message, ctx)

    app.handler(noted(ground.namespace), retry=Retry(attempts=3, delays=["100ms"]))(handle)
    ground.make_topics(app)
    with ground.processing(app) as running:
        running.until_assigned(3)
        erased = ground.send(1, "fails once", key=b"ann")
        assert inside.wait(30)
        try:
            done = packhorse("purge", "--subject", "ann", *WHY, "--json", **ground.environ)
        finally:
            go.set()
        assert (done.code, done.json()["counts"]["messages given up"]) == (0, 1), done.err
        eventually(lambda: not ground.rows("SELECT FROM packhorse.parked_key"), what="the key is free")
        ground.send(2, key=b"ann")
        ground.until_results(2)
    row = ground.outcome(erased)
    assert row is not None
    assert (row[0], row[2]) == ("discarded", "purged")
