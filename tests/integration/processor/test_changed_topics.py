"""A source is deleted, made anew or grows while keys are parked: what waits stays, order holds, nothing is skipped unseen."""

from uuid import UUID

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # exported at run time
    AdminClient,
    NewPartitions,
)
from tests.support.processing import GROUP, Ground, Running, noting
from tests.support.topics import delete_topic, lose_topic
from tests.support.wait import eventually

from packhorse.core.clock import SYSTEM_CHANCE
from packhorse.core.errors import NotReady
from packhorse.processor import Retry
from packhorse.processor.compose import Composed
from packhorse.processor.partition.state import Phase


def results_of(ground: Ground, *messages: UUID) -> list[int]:
    """Return the numbers of *messages* in the order of their results."""
    return [
        row[0] for row in ground.rows("SELECT n FROM result WHERE id = ANY(%s) ORDER BY at", list(messages))
    ]


def refused(running: Running, ground: Ground) -> bool:
    """Return whether the partition that was added waits for a person."""
    state = running.composed.loop.states.get((ground.topic, 1))
    return state is not None and state.phase is Phase.REFUSED


def parked(ground: Ground, number: int = 0) -> list[UUID]:
    """Park a key behind its first message, with one follower."""
    head = ground.send(number, "fails once", key=b"a")
    ground.until_outcome(head, "retry")
    follower = ground.send(number + 1, key=b"a")
    ground.until_outcome(follower, "parked")
    return [head, follower]


@pytest.mark.case("T-01")
@pytest.mark.parametrize("protocol", ["consumer", "classic"])
def test_a_topic_made_anew_is_read_from_its_start_and_waits_behind_what_was_parked(
    ground: Ground, protocol: str
) -> None:
    """
    Fails when followers are ordered by their offsets alone: those of the new topic begin at 0; or, with the classic protocol,
    when nobody notices the topic's new id: the client fetches on at the old offset, as if nothing had happened.
    """
    app = noting(ground.namespace, retry=Retry(attempts=3, delays=["5s"]))
    ground.make_topics(app)
    with ground.processing(app, group_protocol=protocol):
        waiting = parked(ground)
        lose_topic(ground.kafka, ground.topic, partitions=1)
        later = ground.send(2, key=b"a")
        others = [ground.send(n, key=b"b") for n in (3, 4, 5)]
        # Until the new id is noticed the client may fetch on from the old offset: nothing is lost, the first may come late.
        eventually(
            lambda: sorted(results_of(ground, *others)) == [3, 4, 5], what="all of the new topic is done"
        )
        assert results_of(ground, *waiting, later) == []
        ground.until_outcome(later, "done")
    assert results_of(ground, *waiting, later) == [0, 1, 2]


def test_what_is_parked_is_done_though_its_topic_is_deleted(ground: Ground) -> None:
    """Fails when followers are read from the topic."""
    app = noting(ground.namespace, retry=Retry(attempts=3, delays=["2s"]))
    ground.make_topics(app)
    with ground.processing(app):
        waiting = parked(ground)
        delete_topic(ground.kafka, ground.topic)
        ground.until_outcome(waiting[1], "done")
    assert results_of(ground, *waiting) == [0, 1]


def test_partitions_that_were_added_are_not_read_and_named(ground: Ground) -> None:
    """Fails when they are read: a key that moved there overtakes itself, and what fails there has no tier to wait in."""
    app = noting(ground.namespace, retry=Retry(attempts=3, delays=["1s"]))
    ground.make_topics(app)
    with ground.processing(app) as running:
        waiting = parked(ground)
        admin = AdminClient({"bootstrap.servers": ground.kafka})
        admin.create_partitions([NewPartitions(ground.topic, 2)])[ground.topic].result(20)
        states = running.composed.loop.states
        eventually(lambda: refused(running, ground), what="the new partition is refused", timeout=20)
        moved = SYSTEM_CHANCE.token()
        producer = Producer({"bootstrap.servers": ground.kafka})
        told: list[tuple[str, str | bytes | None]] = [("id", str(moved).encode()), ("type", b"tests.Noted")]
        producer.produce(ground.topic, ground.payload(2), b"a", partition=1, headers=told)
        assert producer.flush(10) == 0
        ground.until_outcome(waiting[1], "done")
        assert states
    assert ground.outcome(moved) is None
    with pytest.raises(NotReady, match=rf"{GROUP}\.\S+ has 1 partitions and {ground.topic} has 2"):
        Composed(app, ground.settings())


@pytest.mark.case("T-14")
@pytest.mark.case("T-23")
def test_a_tier_that_is_gone_pauses_its_partition_and_comes_back(
    ground: Ground, caplog: pytest.LogCaptureFixture
) -> None:
    """Fails when the offset passes a retry whose copy stands nowhere, the handler runs again for it, or a restart is needed."""
    app = noting(ground.namespace, retry=Retry(attempts=3, delays=["500ms"]))
    ground.make_topics(app)
    tier = app.retry_topics(ground.topic)[1]
    with ground.processing(app) as running:
        running.until_assigned(3)
        delete_topic(ground.kafka, tier)
        bad = ground.send(0, "fails once", key=b"a")
        ground.until_outcome(bad, "retry")
        eventually(lambda: "partition does not move" in caplog.text, what="the alarm")
        assert (ground.watermark() or 0) == 0
        assert (ground.committed() or 0) == 0
        ground.make_topics(app)
        ground.until_outcome(bad, "done", timeout=40)
        eventually(lambda: ground.watermark() == 1, what="the watermark follows")
    assert ground.rows("SELECT count(*) FROM packhorse.failed_attempt") == [(1,)]
