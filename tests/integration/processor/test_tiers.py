"""What fails waits in a tier on a real broker: never early, once, through rebalances, restarts and changes of the ladder."""

from typing import Any
from uuid import UUID

import pytest
from tests.support.processing import GROUP, Ground, headers_of, noting
from tests.support.wait import eventually

from packhorse.processor import Processor, Retry


def tried(ground: Ground) -> list[tuple[int, int]]:
    """Return number and attempt of each result, in the order of their writing."""
    return [row[:2] for row in ground.rows("SELECT n, attempt FROM result ORDER BY at")]


def waited(ground: Ground, message: UUID) -> float:
    """Return the seconds from the first failure of *message* to its last outcome, by the database's clock."""
    found = ground.rows(
        "SELECT extract(epoch FROM changed_at - first_failed_at) FROM packhorse.inbox WHERE message_id = %s",
        message,
    )
    return float(found[0][0])


@pytest.mark.case("T-06")
@pytest.mark.case("T-07")
@pytest.mark.case("T-08")
def test_a_message_waits_in_its_tier_through_a_rebalance_and_runs_once_when_due(wide_ground: Ground) -> None:
    """
    The wait is longer than a poll may take, others go on, and the tier's partition moves before it is over.

    Fails when the loop sleeps out a wait, the partition that moved is read behind the waiting copy, or a copy runs early.
    """
    ground, app = wide_ground, noting(wide_ground.namespace, retry=Retry(attempts=3, delays=["4s"]))
    ground.make_topics(app)
    short: dict[str, Any] = {"kafka_properties": {"max.poll.interval.ms": 3_000}}
    with ground.processing(app, **short) as first:
        first.until_assigned(6)
        late = ground.send(0, "fails once", key=b"late")
        ground.until_outcome(late, "retry")
        for n in (1, 2):
            ground.send(n, key=b"other", partition=n - 1)
        eventually(lambda: sorted(ground.results()) == [1, 2], what="others go on", timeout=3)
        with ground.processing(app, **short) as second:
            second.until_assigned(1)
            first.stop()
            second.until_assigned(6)
            eventually(lambda: len(ground.results()) == 3, what="the message that waited ran")
    assert tried(ground)[-1] == (0, 2)
    assert waited(ground, late) >= 4
    assert ground.rows("SELECT count(*) FROM packhorse.failed_attempt") == [(1,)]
    assert ground.outcome(late)[:2] == ("done", 2)  # type: ignore[index]


@pytest.mark.case("T-05")
def test_what_waits_takes_no_places_from_what_runs(ground: Ground) -> None:
    """More wait than may be read ahead. Fails when a message that waits counts as in hand: reading would stop at the twentieth."""
    app = noting(ground.namespace, retry=Retry(attempts=3, delays=["1h"]))
    ground.make_topics(app)
    failing = range(0, 500, 10)
    ground.send_many(range(500), dict.fromkeys(failing, "fails"))
    with ground.processing(app, batch_records=20, buffer_records=20):
        eventually(lambda: len(ground.results()) == 450, what="the others are done")
        eventually(lambda: ground.watermark() == 500, what="the watermark passes those that wait")
    assert set(ground.results()).isdisjoint(failing)
    assert ground.rows("SELECT count(*) FROM packhorse.inbox WHERE outcome = 'retry'") == [(50,)]


@pytest.mark.case("T-17")
@pytest.mark.case("T-19")
def test_one_groups_failures_are_its_own_and_its_copies_keep_key_partition_and_origin(
    wide_ground: Ground,
) -> None:
    """Fails when a tier is shared between groups, or a copy goes by its key's hash instead of its partition."""
    ground = wide_ground
    sick = noting(ground.namespace, "sick", retry=Retry(attempts=2, delays=["200ms"]))
    well = Processor("well")
    well.handler(ground.message)(lambda message, ctx: None)
    ground.make_topics(sick, well)
    bad = ground.send(1, "fails", key=b"a", partition=1)
    ground.send(2, key=b"a", partition=0)
    with ground.processing(sick), ground.processing(well):
        ground.until_outcome(bad, "quarantine", group="sick")
        ground.until_outcome(bad, "done", group="well")
        (copy,) = ground.stood(f"{ground.topic}.sick.retry.200ms", 1)
        (rest,) = ground.stood(f"{ground.topic}.sick.quarantine", 1)
    (first,) = [one for one in ground.stood(ground.topic, 2) if one.partition == 1]
    for each in (copy, rest):
        assert (each.partition, each.key, each.value) == (1, b"a", first.value)
        assert each.headers[: len(first.headers)] == first.headers
        told = headers_of(each)
        assert (told["source-topic"], told["source-partition"]) == (ground.topic.encode(), b"1")
        assert (told["source-offset"], told["group"]) == (str(first.offset).encode(), b"sick")
    assert (headers_of(copy)["attempt"], "due-at" in headers_of(copy)) == (b"2", True)
    assert ground.rows("SELECT deliveries FROM packhorse.inbox WHERE group_id = 'well'") == [(1,), (1,)]
    own = ground.rows("SELECT DISTINCT topic FROM packhorse.watermark WHERE group_id = 'well' ORDER BY 1")
    assert [topic for (topic,) in own if ".sick." in topic] == []


@pytest.mark.case("T-18")
@pytest.mark.case("T-22")
def test_what_waits_in_a_tier_that_the_ladder_no_longer_has_is_still_handled(ground: Ground) -> None:
    """Fails when a processor reads the tiers of its own ladder alone, or sends to a tier that is gone from it."""
    before = noting(ground.namespace, retry=Retry(attempts=4, delays=["1500ms"]))
    ground.make_topics(before)
    waiting = ground.send(1, "fails once", key=b"a")
    with ground.processing(before):
        ground.until_outcome(waiting, "retry")
        ground.stood(f"{ground.topic}.{GROUP}.retry.1500ms", 1)
    after = noting(ground.namespace, retry=Retry(attempts=2, delays=["100ms"]))
    ground.make_topics(after)
    with ground.processing(after) as running:
        assert f"{ground.topic}.{GROUP}.retry.1500ms" in running.composed.plant.sources
        ground.until_outcome(waiting, "done")
    assert tried(ground) == [(1, 2)]
    assert waited(ground, waiting) >= 1.5
