"""People ask for reports: those that are made at once, late, only later, never by themselves, or with a letter in doubt."""

import random
from datetime import timedelta
from typing import Any

import psycopg

from examples.flights.serving.messages import PunctualityRequest, Shows
from examples.flights.serving.schedule import Happening, Kind
from packhorse.core.clock import SYSTEM_CLOCK, Clock
from packhorse.producer import Outbox

OUTBOX = Outbox(origin="desk")
PEOPLE = (("ann", "north"), ("ben", "south"), ("eve", "north"))
CARRIERS = ("AA", "B6", "DL", "EV", "MQ", "UA", "US", "WN")
_SHOWS = {Kind.SLOW_REPORT: Shows.SLOW, Kind.DOUBTFUL_REPORT: Shows.IN_DOUBT}
REPORTS = frozenset(kind for kind in Kind if kind.value.endswith("report"))


class Desk:
    """Where reports are asked for."""

    def __init__(self, connection: psycopg.Connection[Any], seed: int, clock: Clock = SYSTEM_CLOCK) -> None:
        self._connection = connection
        self._chance = random.Random(seed)
        self._clock = clock

    def ask(self, happening: Happening) -> None:
        """Ask for the report that *happening* tells of: a job, accepted with the commit."""
        now = self._clock.now()
        then = now + timedelta(seconds=happening.lasts)
        person, tenant = self._chance.choice(PEOPLE)
        is_later = happening.kind is Kind.LATER_REPORT
        request = PunctualityRequest(
            carrier=self._chance.choice(CARRIERS),
            person=person,
            closed_at=now if is_later else then,
            shows=_SHOWS.get(happening.kind, Shows.USUAL),
        )
        with self._connection.transaction():
            OUTBOX.submit(
                self._connection, request, actor=person, tenant=tenant, not_before=then if is_later else None
            )
