"""The flights that come after the counted ones: the file's next, day by day, at a pace."""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, islice, takewhile
from typing import Any

import psycopg

from examples.flights.flights import Flight
from examples.flights.operations import publish_plan, record
from examples.flights.timeline import Movement, in_order

AHEAD = 400
"""Steps that are known before they come, so that trouble can be sent where it is certain to be met."""

Step = Flight | Movement
"""What is written: the plan of a flight, or what happens to it."""


def steps_of(flights: Iterable[Flight]) -> Iterator[Step]:
    """
    Yield what is told of *flights*, whose days follow each other: all plans of the first day, then what happens in a day with the next one's plans in between.

    A flight's plan comes before what happens to it, and no day begins with a flood of plans but the first. Of all flights no more than two
    days' are held at once.
    """
    days = (list(group) for _, group in groupby(flights, key=lambda flight: flight.day))
    today = next(days, [])
    yield from today
    while today:
        tomorrow = next(days, [])
        yield from interleaved(in_order(today), tomorrow)
        today = tomorrow


def interleaved(movements: Sequence[Movement], plans: Sequence[Flight]) -> Iterator[Step]:
    """Yield both, each in its order, *plans* spread over *movements*."""
    given = 0
    for number, movement in enumerate(movements, start=1):
        yield movement
        until = number * len(plans) // len(movements)
        yield from plans[given:until]
        given = until
    yield from plans[given:]


class Traffic:
    """
    Write flights as they come.

    Attributes:
        written: Events whose transactions have committed.
        day: Of what was written last, for people; empty before that.
    """

    def __init__(self, connection: psycopg.Connection[Any], flights: Iterable[Flight]) -> None:
        self.written = 0
        self.day = ""
        self._connection = connection
        self._steps = steps_of(flights)
        self._coming: deque[Step] = deque()
        self._look_ahead()

    @property
    def is_over(self) -> bool:
        """Tell whether the file has no flight left."""
        return not self._coming

    @property
    def coming(self) -> list[Movement]:
        """Return what happens next, the first of it first."""
        return [step for step in self._coming if isinstance(step, Movement)]

    def begin(self) -> None:
        """Write the plans of the first day, at once: until they are there nothing moves."""
        while self._coming and isinstance(self._coming[0], Flight):
            self.write(sum(1 for _ in takewhile(lambda step: isinstance(step, Flight), self._coming)))

    def write(self, count: int) -> None:
        """Write the next *count* steps, or what is left: the plans in one transaction, then the movements in another."""
        steps = [self._coming.popleft() for _ in range(min(count, len(self._coming)))]
        self._look_ahead()
        plans = [step for step in steps if isinstance(step, Flight)]
        movements = [step for step in steps if isinstance(step, Movement)]
        if plans:
            publish_plan(self._connection, plans)
        if movements:
            record(self._connection, movements)
            self.day = f"{movements[-1].flight.day}"
        self.written += len(steps)

    def _look_ahead(self) -> None:
        self._coming.extend(islice(self._steps, AHEAD - len(self._coming)))
