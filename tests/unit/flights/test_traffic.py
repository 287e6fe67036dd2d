"""The flights that go on: each planned before it moves, none left out, and trouble only for those that meet it."""

from datetime import timedelta

import pytest
from tests.support.flights import AIRPORTS, PLAIN
from tests.support.flights import HEADER as FLIGHTS_HEADER

from examples.flights.flights import Flight, Zones, read_flights
from examples.flights.serving.traffic import interleaved, steps_of
from examples.flights.serving.unrest import SOON, next_to_move
from examples.flights.timeline import Movement, in_order


def flights(*of_each_day: int) -> list[Flight]:
    lines = [
        PLAIN.replace("2013,1,1,", f"2013,1,{day},", 1).replace(
            ",UA,1545,N14228", f",UA,{number},N{number % 3}"
        )
        for day, count in enumerate(of_each_day, start=1)
        for number in range(count)
    ]
    return list(read_flights([FLIGHTS_HEADER, *lines], Zones(AIRPORTS.splitlines())))


@pytest.mark.parametrize("of_each_day", [(), (1,), (5, 1), (1, 9, 2), (20, 20, 20)])
def test_each_flight_is_planned_once_before_it_moves_and_all_of_them_move(
    of_each_day: tuple[int, ...],
) -> None:
    """Fails when a movement meets a flight that was never planned, or a day is dropped at a seam."""
    all_flights = flights(*of_each_day)
    planned: set[str] = set()
    moved = []
    for step in steps_of(all_flights):
        if isinstance(step, Movement):
            assert step.flight.id in planned
            moved.append(step)
        else:
            assert step.id not in planned
            planned.add(step.id)
    assert planned == {flight.id for flight in all_flights}
    assert moved == in_order(all_flights)


def test_the_plans_of_the_next_day_are_spread_over_this_one() -> None:
    """Fails when each day begins with a flood."""
    today, tomorrow = in_order(flights(10)), flights(0, 10)
    kinds = [isinstance(step, Movement) for step in interleaved(today, tomorrow)]
    assert kinds == [True, True, False] * 10


def test_trouble_comes_to_who_moves_soon_and_has_none_yet() -> None:
    """Fails when an outage ends before anybody has met it, or a key that waits already is chosen again."""
    coming = in_order(flights(3, 3))
    assert next_to_move(coming, set(), count=2) == ["N0", "N1"]
    assert next_to_move(coming, {"N0"}, count=2) == ["N1", "N2"]
    assert next_to_move([], set(), count=2) == []


def test_the_busiest_is_one_that_moves_soon() -> None:
    early, *rest = in_order(flights(1, 40))
    late = [step for step in rest if step.flight.tail_number == "N2"]
    assert next_to_move([early, *late], set(), count=1, busiest=True) == ["N2"]
    far = [early] * SOON + late
    assert late[0].at - early.at > timedelta(hours=12)
    assert next_to_move(far, set(), count=1, busiest=True) == ["N0"]
