"""What happens while the demo goes on: as often as it should, the same for one seed, and no flood after a stop."""

import pytest

from examples.flights.figures import PATIENT
from examples.flights.serving.schedule import (
    MOST_AT_ONCE,
    PER_SECOND,
    RULES,
    SWELL,
    WAVE,
    Agenda,
    Kind,
    Pace,
    Resting,
    Rule,
    surplus,
)

DAY = 86_400


def played(seed: int, *, seconds: int) -> list[tuple[int, Kind, int]]:
    agenda = Agenda(seed)
    return [(now, each.kind, each.number) for now in range(seconds) for each in agenda.due(now)]


def test_a_seed_replays_a_day_and_another_is_another_day() -> None:
    assert played(7, seconds=3_600) == played(7, seconds=3_600)
    assert played(7, seconds=3_600) != played(8, seconds=3_600)


@pytest.mark.parametrize("seed", range(5))
def test_everything_comes_soon_and_then_as_often_as_its_rule_says(seed: int) -> None:
    """Fails when a newcomer waits for something for minutes, or a day holds much more of it than was reckoned with."""
    found = played(seed, seconds=DAY)
    for kind, rule in RULES.items():
        times = [now for now, each, _ in found if each is kind]
        assert times[0] == rule.first <= 90
        assert len(times) == pytest.approx(DAY / rule.every, rel=0.15)
        assert [number for _, each, number in found if each is kind] == list(range(1, len(times) + 1))


def test_what_was_missed_is_not_made_up_for() -> None:
    """Fails when a machine that slept for a night is met by a night's trouble."""
    agenda = Agenda(1, {Kind.POISON: Rule(first=1, every=10)})
    assert len(agenda.due(DAY)) == 1
    assert agenda.due(DAY + 1) == []


def test_an_outage_is_over_before_the_attempts_are() -> None:
    """Fails when an outage that is to heal by itself sends its messages to quarantine."""
    delays = [float(RULES[Kind.OUTAGE].lasts), *(0.2, 0.5), *[1.0] * (PATIENT.attempts - 3)]
    assert delays[0] < sum(delays[1:]) < RULES[Kind.REFUSAL].lasts


def test_the_traffic_swells_and_ebbs_around_its_mean() -> None:
    pace = Pace()
    each = [pace.owed(second) for second in range(1, int(WAVE) * 4 + 1)]
    assert sum(each) == pytest.approx(PER_SECOND * WAVE * 4, abs=1)
    assert min(each) == pytest.approx(PER_SECOND * (1 - SWELL), abs=1.5)
    assert max(each) == pytest.approx(PER_SECOND * (1 + SWELL), abs=1.5)


def test_a_late_look_writes_no_more_than_so_much_at_once() -> None:
    pace = Pace()
    assert pace.owed(DAY) == MOST_AT_ONCE
    assert pace.owed(DAY + 1) <= PER_SECOND * (1 + SWELL) + 1


def test_the_one_that_came_first_is_seen_to_once_too_many_wait() -> None:
    """Fails when a day of trouble piles up without end, or the demo takes away what a person has room to look at."""
    resting = [Resting(id=f"{number}", kind="poison") for number in range(4)]
    assert surplus(resting, most=4) is None
    assert surplus(resting, most=3) == resting[0]
