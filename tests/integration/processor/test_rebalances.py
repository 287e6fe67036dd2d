"""Members come and go while messages flow: each message takes effect once, in its partition's order, under both protocols."""

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest
from tests.support.processing import GROUP, Ground, Running, noting
from tests.support.wait import eventually

from packhorse.processor import Processor

ORDER = """
SELECT count(*) FROM (
    SELECT r.n, lag(r.n) OVER (PARTITION BY i.partition ORDER BY r.at) AS before
    FROM result r JOIN packhorse.inbox i ON i.message_id = r.id) AS x WHERE n < before
"""


@contextmanager
def sending(ground: Ground) -> Iterator[list[int]]:
    """Send to both partitions meanwhile; the list holds the numbers that were sent."""
    stop = threading.Event()
    sent: list[int] = []

    def send() -> None:
        while not stop.wait(0.01):
            ground.send(len(sent), partition=len(sent) % 2)
            sent.append(len(sent))

    thread = threading.Thread(target=send)
    thread.start()
    try:
        yield sent
    finally:
        stop.set()
        thread.join(10)


def owned(running: Running, ground: Ground) -> set[int]:
    """Return the source's partitions that a member has."""
    return {partition for topic, partition in running.composed.loop.states if topic == ground.topic}


@contextmanager
def member(ground: Ground, app: Processor, protocol: str) -> Iterator[Running]:
    """Run a member meanwhile, and go on when it has partitions; it commits at a revoke and at its end alone."""
    with ground.processing(app, group_protocol=protocol, commit_interval=60) as running:
        eventually(lambda: running.composed.loop.states, what="it has partitions", timeout=40)
        yield running


def works_alone(running: Running, ground: Ground) -> None:
    """Wait until the member has all, and works."""
    eventually(lambda: owned(running, ground) == {0, 1}, what="it has all", timeout=40)
    group = running.composed.plant.app.group
    assert all((ground.committed(partition, group) or 0) > 0 for partition in (0, 1)), (
        "the one that left has committed"
    )
    at = len(ground.results())
    eventually(lambda: len(ground.results()) > at + 40, what="it works on", timeout=40)


@pytest.mark.case("P-18")
@pytest.mark.case("P-19")
@pytest.mark.parametrize("protocol", ["consumer", "classic"])
def test_a_member_that_joins_and_leaves_repeats_and_loses_nothing(wide_ground: Ground, protocol: str) -> None:
    """Fails when the partition that comes back is read from where it was left, or what is durable is not committed at a revoke."""
    # A group of its own: what other tests have left in theirs may stand in the way of another protocol.
    ground, app = wide_ground, noting(wide_ground.namespace, f"{GROUP}-{protocol}")
    ground.make_topics(app)
    with sending(ground) as sent, ExitStack() as members:
        before = members.enter_context(member(ground, app, protocol))
        eventually(
            lambda: all((ground.watermark(partition, app.group) or 0) > 0 for partition in (0, 1)),
            what="it works on both",
            timeout=40,
        )
        for _ in range(2):
            # The next joins first: what moves then comes from a member that works on.
            following = members.enter_context(member(ground, app, protocol))
            before.stop()
            works_alone(following, ground)
            before = following
    with ground.processing(app, group_protocol=protocol):
        eventually(lambda: len(ground.results()) >= len(sent), what="all are done", timeout=40)
    assert sorted(ground.results()) == sent
    assert ground.rows(ORDER) == [(0,)]
    assert ground.rows("SELECT max(attempt) FROM packhorse.inbox") == [(1,)]
