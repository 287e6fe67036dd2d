"""Which topics a group needs, what of them differs, and what a ladder had before."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar

import pytest

from packhorse.core.errors import NotReady, SettingsError, UsageError
from packhorse.core.message import MessageType
from packhorse.processor import Processor, Retry
from packhorse.processor.tiers.ladder import ReadTopic, sources_of, tier_name, tier_seconds
from packhorse.processor.topics.plan import Change, Create, Refusal, Topic, plan, wanted_by


class Placed:
    __packhorse__: ClassVar[MessageType] = MessageType(
        type="unit.Placed", version=1, namespace="unit", aggregatetype="orders", schema="{}"
    )


class Paid:
    __packhorse__: ClassVar[MessageType] = MessageType(
        type="unit.Paid", version=1, namespace="unit", aggregatetype="orders", schema="{}"
    )


def app(*delays: str, group: str = "unit") -> Processor:
    made = Processor(group)
    made.handler(Placed, retry=Retry(delays=delays or ("5s",)))(lambda message, ctx: None)
    return made


def wanted(partitions: int | None = None, *sources: str, apps: Sequence[Processor] = ()) -> Any:
    return wanted_by(apps or [app()], sources, partitions=partitions, replication=-1)


NAMES = (
    "unit.orders",
    "unit.orders.unit.retry.0s",
    "unit.orders.unit.retry.5s",
    "unit.orders.unit.quarantine",
)
KEPT = {
    "cleanup.policy": "delete",
    "retention.ms": "-1",
    "retention.bytes": "-1",
    "max.message.bytes": str(1000 + 64 * 1024),
}
TIER = {**KEPT, "segment.bytes": str(64 * 1024 * 1024)}


def there(of: Any = None) -> dict[str, Topic]:
    """Return what `apply` makes of what is wanted."""
    made: dict[str, Topic] = {}
    for step in plan(of or wanted(), {}, default_max_bytes=1000):
        assert isinstance(step, Create)
        config = {"max.message.bytes": "1000", **step.config}
        made[step.topic] = Topic(name=step.topic, partitions=step.partitions, replication=1, config=config)
    return made


@pytest.mark.case("T-16")
@pytest.mark.case("T-22")
def test_topics_of_a_group_keep_for_ever_and_hold_what_the_source_holds() -> None:
    """Fails when a topic of the group is made with the broker's default retention, or without a tier of the ladder."""
    steps = plan(wanted(3), {}, default_max_bytes=1000)
    assert [step.topic for step in steps] == list(NAMES)
    configs = [step.config for step in steps if isinstance(step, Create)]
    assert configs == [{"message.timestamp.type": "LogAppendTime"}, TIER, TIER, KEPT]
    assert {step.partitions for step in steps if isinstance(step, Create)} == {3}


def test_a_ladder_is_that_of_all_handlers_of_the_source() -> None:
    both = app("1m", "5s", "5s")
    both.handler(Paid, retry=Retry(delays=["90s", "60s", 0, 0.25]))(lambda message, ctx: None)
    assert both.tiers("unit.orders") == ("0s", "250ms", "5s", "1m", "90s")
    assert both.tiers("unit.others") == ("0s",)


def test_what_is_as_it_must_be_needs_no_step() -> None:
    assert plan(wanted(), there(), default_max_bytes=1000) == []


@pytest.mark.case("T-16")
def test_what_differs_is_set() -> None:
    topics = there()
    for name, setting, was in (
        (NAMES[3], "retention.ms", "604800000"),
        (NAMES[2], "cleanup.policy", "compact"),
    ):
        changed = replace(topics[name], config={**topics[name].config, setting: was})
        (step,) = plan(wanted(), {**topics, name: changed}, default_max_bytes=1000)
        assert isinstance(step, Change)
        assert (step.topic, step.name, step.was) == (name, setting, was)
    source = replace(topics[NAMES[0]], config={**topics[NAMES[0]].config, "max.message.bytes": "5000"})
    steps = plan(wanted(), {**topics, NAMES[0]: source}, default_max_bytes=1000)
    assert {(step.topic, step.to) for step in steps if isinstance(step, Change)} == {
        (name, str(5000 + 64 * 1024)) for name in NAMES[1:]
    }


def test_a_segment_holds_the_largest_message() -> None:
    steps = plan(wanted(), {}, default_max_bytes=2_000_000_000)
    assert steps[1].config["segment.bytes"] == str(2**31 - 1)  # type: ignore[union-attr]


def test_a_change_of_the_partition_count_is_refused_and_the_way_named() -> None:
    (step,) = plan(wanted(12), there(), default_max_bytes=1000)
    assert isinstance(step, Refusal)
    assert "it has 6 partitions, not 12; partitions are never added in place" in step.text


def test_a_source_that_grew_is_refused_at_every_topic_of_the_group() -> None:
    """Fails when only some of the group's topics are compared with their source."""
    topics = there()
    topics[NAMES[0]] = replace(topics[NAMES[0]], partitions=12)
    steps = plan(wanted(), topics, default_max_bytes=1000)
    assert [step.topic for step in steps if isinstance(step, Refusal)] == list(NAMES[1:])
    assert "it has 6 partitions and unit.orders has 12" in str(steps[0])


@pytest.mark.case("T-18")
def test_a_tier_that_no_ladder_has_any_more_is_read_kept_right_and_told_of() -> None:
    """Fails when a processor reads, or `topics` looks at, the tiers of today's ladder alone."""
    topics = there(wanted(apps=[app("5s", "1m", "10m")]))
    now = app("5s")
    left = wanted(apps=[now]).leftovers(topics)
    assert [each.topic for each in left] == ["unit.orders.unit.retry.1m", "unit.orders.unit.retry.10m"]
    assert "7 records wait in it and are still handled" in left[0].told(7)
    assert "none waits in it: delete it" in left[0].told(0)
    assert plan(wanted(apps=[now]), topics, default_max_bytes=1000) == []
    short = replace(topics[left[0].topic], config={**TIER, "retention.ms": "1000"})
    (step,) = plan(wanted(apps=[now]), {**topics, left[0].topic: short}, default_max_bytes=1000)
    assert (step.topic, step.to) == (left[0].topic, "-1")  # type: ignore[union-attr]
    read = sources_of(now, set(topics))
    assert read[left[1].topic] == ReadTopic("unit.orders", "10m")
    assert read[left[1].topic].delay == 600.0


@pytest.mark.case("T-17")
def test_each_group_reads_its_own_tiers_alone() -> None:
    """Fails when a group's tiers are found by the source's name alone."""
    one, other = app("5s"), app("10s", group="other")
    topics = set(there(wanted(apps=[one, other])))
    assert len(topics) == 7
    assert set(sources_of(one, topics)) == set(NAMES[:3])
    assert sources_of(other, topics)["unit.orders.other.retry.10s"] == ReadTopic("unit.orders", "10s")
    foreign = {*topics, "unit.orders.unit.retry.soon", "unit.orders.unit.retry.5s.unit.retry.5s"}
    assert set(sources_of(one, foreign)) == set(NAMES[:3])


def test_a_missing_tier_is_named_with_the_command() -> None:
    topics = {*NAMES} - {NAMES[2]}
    with pytest.raises(NotReady, match=r"retry\.5s \(tier 5s of unit\.orders.*`packhorse topics apply`"):
        sources_of(app(), topics)


def test_groups_whose_names_run_together_are_refused() -> None:
    longer = Processor("b.unit")
    longer.handler(Placed)(lambda message, ctx: None)

    class Deeper:
        __packhorse__: ClassVar[MessageType] = MessageType(
            type="unit.Deeper", version=1, namespace="unit", aggregatetype="orders.b", schema="{}"
        )

    deeper = Processor("unit")
    deeper.handler(Deeper)(lambda message, ctx: None)
    with pytest.raises(UsageError, match=r"unit\.orders\.b\.unit\.retry\.0s would be shared by"):
        wanted(apps=[longer, deeper])


@pytest.mark.parametrize("seconds", [-1.0, 1e12, float("nan")])
def test_a_delay_that_makes_no_tier_is_refused(seconds: float) -> None:
    with pytest.raises(SettingsError, match="a tier of"):
        tier_name(seconds)


@pytest.mark.parametrize("name", ["", "5", "s", "-5s", "5s ", "1m30s", "5.5s"])
def test_what_is_no_tiers_name_is_refused(name: str) -> None:
    with pytest.raises(SettingsError, match="is no tier"):
        tier_seconds(name)
