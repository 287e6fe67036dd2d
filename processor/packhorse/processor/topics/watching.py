"""Notice that a topic that is read was deleted, made anew, or has grown: the group's protocol does not always say so."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol
from uuid import UUID

from packhorse.core.errors import BrokerUnavailable, NotReady
from packhorse.core.logs import Log
from packhorse.processor.tiers.ladder import ReadTopic

EVERY = 2.0
"""Least seconds between two looks."""
RUNBOOK = "docs/runbooks/topics-changed.md"


class Standing(NamedTuple):
    """A topic's id and how many partitions it has."""

    id: UUID
    partitions: int


class KnowsTopics(Protocol):
    """Ask the broker."""

    def identities(self, topics: Sequence[str]) -> Mapping[str, Standing]:
        """Return those of *topics* that exist. Raises BrokerUnavailable, NotReady."""


class TopicWatch:
    """
    Look at the topics that are read, now and then; for one thread.

    With the classic protocol a topic that was deleted and made anew is fetched on at the old offset, as if nothing had
    happened, and what stands below it is never read; with KIP-848 that lasts until the next heartbeat. So whoever learns here
    that an id has changed lets the partitions be opened again: they start at the new topic's first record, and what was handled
    before that is a duplicate.

    Args:
        read: What is read, by topic.
        broker: Is asked.
        log: Is told once of each change.
    """

    def __init__(self, read: Mapping[str, ReadTopic], broker: KnowsTopics, log: Log) -> None:
        self._read = read
        self._broker = broker
        self._log = log
        self._known: dict[str, Standing] = {}
        self._missing: set[str] = set()
        self._grown: dict[str, int] = {}
        self._looked_at: float | None = None

    def look(self, now: float) -> frozenset[str]:
        """
        Return the topics that have another id than at the last look; call it as often as you like.

        Call it once before the first partition is opened, so that no change falls in between. Never raises because of the
        broker: what changed while it was away is found when it answers.
        """
        if self._looked_at is not None and now - self._looked_at < EVERY:
            return frozenset()
        self._looked_at = now
        try:
            found = self._broker.identities(list(self._read))
        except (BrokerUnavailable, NotReady):
            return frozenset()
        anew = frozenset(
            topic
            for topic, standing in found.items()
            if topic in self._known and self._known[topic].id != standing.id
        )
        self._known.update(found)
        self._tell_missing(found)
        self._tell_grown(found)
        for topic in sorted(anew):
            self._log.error(
                "a topic was deleted and made anew; it is read from its first record, and what was in it before and had no "
                "result is lost, but for what waits in retry, parked or in quarantine",
                topic=topic,
                runbook=RUNBOOK,
            )
        return anew

    def _tell_missing(self, found: Mapping[str, Standing]) -> None:
        missing = {topic for topic in self._read if topic not in found}
        for topic in sorted(missing - self._missing):
            self._log.error(
                "a topic does not exist any more, or this client may not describe it; what waits for it is kept in the "
                "database",
                topic=topic,
                runbook=RUNBOOK,
            )
        self._missing = missing

    def _tell_grown(self, found: Mapping[str, Standing]) -> None:
        for topic, read in self._read.items():
            source = found.get(read.source)
            mine = found.get(topic)
            if source is None or mine is None or mine.partitions >= source.partitions:
                continue
            if self._grown.get(topic) != source.partitions:
                self._grown[topic] = source.partitions
                self._log.error(
                    "a source has more partitions than a tier of it; the new ones are not read, since what fails in them "
                    "would have no place to wait in",
                    topic=topic,
                    partitions=mine.partitions,
                    source=read.source,
                    source_partitions=source.partitions,
                    runbook=RUNBOOK,
                )
