"""Which pause holds which partition, and what a person may name."""

from datetime import UTC, datetime

import pytest

from packhorse.core.errors import UsageError
from packhorse.processor.pausing.pauses import ALL, EVERY, Pause, Pauses, Scope

AT = datetime(2026, 1, 1, tzinfo=UTC)
TIER = "a.b.g.retry.5s"


def pauses(*places: tuple[str, int]) -> Pauses:
    return Pauses(rows=tuple(Pause(topic, partition, "ann", "why", AT) for topic, partition in places))


@pytest.mark.case("O-10")
@pytest.mark.parametrize(
    ("paused", "held"),
    [
        ((ALL, EVERY), {("a.b", 0), ("a.b", 1), (TIER, 0), (TIER, 1), ("c.d", 0)}),
        (("a.b", EVERY), {("a.b", 0), ("a.b", 1), (TIER, 0), (TIER, 1)}),
        (("a.b", 1), {("a.b", 1), (TIER, 1)}),
        ((TIER, EVERY), {(TIER, 0), (TIER, 1)}),
        (("c.d", 0), {("c.d", 0)}),
        (("a", EVERY), set()),
    ],
)
def test_a_pause_holds_its_source_and_the_tiers_of_it(
    paused: tuple[str, int], held: set[tuple[str, int]]
) -> None:
    """Fails when the tiers of a paused source go on: what waits in them would run."""
    places = [("a.b", 0), ("a.b", 1), (TIER, 0), (TIER, 1), ("c.d", 0)]
    sources = {TIER: "a.b"}
    found = {
        (topic, partition)
        for topic, partition in places
        if pauses(paused).holding(topic, partition, source=sources.get(topic, topic))
    }
    assert found == held


def test_the_widest_pause_is_named() -> None:
    found = pauses(("a.b", 1), ("a.b", EVERY)).holding("a.b", 1, source="a.b")
    assert found is not None
    assert found.told == "a.b paused by ann: why"


@pytest.mark.parametrize(
    "given",
    [
        {"partition": 1},
        {"key": b"k"},
        {"topic": "a.b", "partition": 1, "key": b"k"},
        {"topic": "a.b", "key": b"k", "key_hash": "0"},
    ],
)
def test_a_scope_whose_parts_do_not_go_together_is_refused(given: dict[str, object]) -> None:
    with pytest.raises(UsageError, match="--"):
        Scope(**given)  # type: ignore[arg-type]
