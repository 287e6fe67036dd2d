"""Where source topics end, in one bounded question to the broker."""

from collections.abc import Collection, Mapping

from packhorse.console.top.facts import Ends, Place
from packhorse.core.errors import PackhorseError
from packhorse.core.kafka_properties import Property
from packhorse.processor.kafka.admin import BrokerQuestions

MOST = 5_000
"""Partitions that one question is about."""


class TopicEnds:
    """Ask one broker; never raises for the broker's sake: that it is away is what the answer says."""

    def __init__(self, properties: Mapping[str, Property]) -> None:
        self._broker = BrokerQuestions(properties)

    def ends(self, places: Collection[Place]) -> Ends:
        """Return where each of *places* ends; those above the bound are left out."""
        wanted = sorted(places)[:MOST]
        try:
            found = self._broker.ends(wanted)
        except PackhorseError as error:
            return Ends(of={}, said=str(error))
        said = sorted({one for one in found.values() if isinstance(one, str)})
        if len(places) > MOST:
            said.append(f"only {MOST} partitions are asked about")
        return Ends(
            of={place: one for place, one in found.items() if isinstance(one, int)},
            said=said[0] if said else None,
        )
