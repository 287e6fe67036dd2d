"""Where source topics end, in one bounded question to the broker."""

from collections.abc import Collection, Mapping

from packhorse.console.top.facts import Ends, Place
from packhorse.core.clock import SYSTEM_CLOCK, Clock
from packhorse.core.errors import PackhorseError
from packhorse.core.kafka_properties import Property
from packhorse.processor.kafka.admin import BrokerQuestions

MOST = 5_000
"""Partitions that one question is about."""
REST = 10.0
"""Seconds for which a broker that did not answer is asked nothing: each question waits its whole time-out, and a page with it."""


class TopicEnds:
    """Ask one broker; never raises for the broker's sake: that it is away is what the answer says."""

    def __init__(self, properties: Mapping[str, Property], *, clock: Clock = SYSTEM_CLOCK) -> None:
        self._broker = BrokerQuestions(properties)
        self._clock = clock
        self._away: tuple[float, str] | None = None

    def ends(self, places: Collection[Place]) -> Ends:
        """Return where each of *places* ends; those above the bound are left out."""
        wanted = sorted(places)[:MOST]
        if self._away is not None and self._clock.monotonic() < self._away[0]:
            return Ends(of={}, said=self._away[1])
        try:
            found = self._broker.ends(wanted)
        except PackhorseError as error:
            self._away = self._clock.monotonic() + REST, str(error)
            return Ends(of={}, said=str(error))
        of = {place: one for place, one in found.items() if isinstance(one, int)}
        said = sorted({one for one in found.values() if isinstance(one, str)})
        if said and not of:
            self._away = self._clock.monotonic() + REST, said[0]
        if len(places) > MOST:
            said.append(f"only {MOST} partitions are asked about")
        return Ends(of=of, said=said[0] if said else None)
