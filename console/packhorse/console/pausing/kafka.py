"""What the broker knows of groups and topics, for a pause."""

from functools import cached_property

from packhorse.processor.clients import admin_properties
from packhorse.processor.kafka.admin import BrokerQuestions
from packhorse.schemas.systems import KafkaSettings


class PausingBroker:
    """Ask the broker; it is spoken to at the first question. Raises BrokerUnavailable, or NotReady without the right."""

    def __init__(self, settings: KafkaSettings) -> None:
        self._settings = settings

    def knows(self, group: str) -> bool:
        """Return whether the broker has *group*."""
        return self._questions.group_state(group)[0] != "unknown"

    def partitions(self, topic: str) -> int | None:
        """Return how many partitions *topic* has; None: it does not exist."""
        found = self._questions.identities([topic])
        return found[topic][1] if topic in found else None

    @cached_property
    def _questions(self) -> BrokerQuestions:
        return BrokerQuestions(admin_properties(self._settings))
