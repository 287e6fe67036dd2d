"""Where a message stands: the one answer for one id, whatever face asks."""

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol
from uuid import UUID

from packhorse.console.acting.person import Person
from packhorse.console.facts import Facts
from packhorse.console.truth.explain_key import explain_key
from packhorse.console.truth.explaining import explain
from packhorse.console.truth.explanation import Explanation
from packhorse.console.truth.groups import GroupStatus
from packhorse.console.truth.keys import KeyFacts
from packhorse.console.truth.moments import Local, Viewer
from packhorse.console.truth.status import (
    NOT_ASKED,
    NOT_NEEDED,
    Search,
    Status,
    delivery_known,
    status_of,
)
from packhorse.core.naming import topic_name

NO_ROW = Search(said="not searched: without an outbox row the topic, the key and the time are unknown")
NO_NAMESPACE = Search(said="not searched: PACKHORSE_NAMESPACE is not set, so the topic's name is unknown")
NO_BROKER = Search(said="not searched: PACKHORSE_KAFKA_BOOTSTRAP_SERVERS is not set")


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """Where a message stands and the same in words, both of one snapshot."""

    status: Status
    explanation: Explanation


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyTold:
    """How a group stands with a key and the same in words, both of one snapshot."""

    facts: KeyFacts
    explanation: Explanation


class FactSource(Protocol):
    """
    Read what one database knows; each method sees one snapshot and leaves no transaction open.

    Raises, each of them:
        DatabaseUnavailable: The database does not answer, or not in time.
        NotReady: A table or right is missing.
        Forbidden: The person may not look.
    """

    def facts(self, message_id: UUID, person: Person) -> Facts:
        """Return all that is known about *message_id*; empty facts when nothing is."""

    def key(self, group: str, topic: str, hashed: str, person: Person) -> KeyFacts:
        """Return how *group* stands with the key of *topic* that *hashed* stands for."""


class Topics(Protocol):
    """Look into topics; commits nothing, joins no group."""

    def look(self, topic: str, *, key: str | None, message_id: UUID, since: datetime) -> Search:
        """
        Search the partition of *key* (every partition without one) for *message_id*, from *since* on, within bounds.

        Never raises for the broker's sake: an absent broker or topic is what the answer says.
        """


class Truth:
    """
    Answer where messages stand.

    Args:
        facts: Where the facts are.
        topics: Where records are looked for; None when no broker is set.
        namespace: First part of the topics' names; None when unknown.
    """

    def __init__(
        self, facts: FactSource, person: Person, *, topics: Topics | None = None, namespace: str | None = None
    ) -> None:
        self._source = facts
        self._person = person
        self._topics = topics
        self._namespace = namespace

    def facts(self, message_id: UUID) -> Facts:
        """Return all that the tables know about *message_id*; empty facts when nothing is."""
        return self._source.facts(message_id, self._person)

    def status(self, message_id: UUID, *, search: bool) -> Status:
        """Return where *message_id* stands; look into its topic only if *search* and no delivery is known."""
        facts = self.facts(message_id)
        return status_of(facts, self._search(facts, search=search))

    def explain(self, message_id: UUID, *, search: bool, local: Local) -> Explanation:
        """
        Return in words where *message_id* stands, what it waits for, what comes next and what a person can do.

        Its topic is looked into as by `status`; *local* puts a moment into the viewer's zone.
        """
        return self.told(message_id, search=search, local=local).explanation

    def told(self, message_id: UUID, *, search: bool, local: Local) -> Told:
        """Return what `status` and `explain` do, so that the one can't be later than the other."""
        facts = self.facts(message_id)
        status = status_of(facts, self._search(facts, search=search))
        now = facts.around.now
        assert now is not None, "the facts come with the database's time"
        viewer = Viewer(now=now, local=local)
        return Told(status=status, explanation=explain(status, viewer, schema=facts.schema))

    def explain_key(self, group: str, topic: str, hashed: str, *, local: Local) -> Explanation:
        """Return in words how *group* stands with the key of *topic* that *hashed* stands for."""
        return self.told_key(group, topic, hashed, local=local).explanation

    def told_key(self, group: str, topic: str, hashed: str, *, local: Local) -> KeyTold:
        """Return the same, with what it rests on."""
        facts = self._source.key(group, topic, hashed, self._person)
        return KeyTold(facts=facts, explanation=explain_key(facts, Viewer(now=facts.now, local=local)))

    def of_group(self, message_id: UUID, *, group: str, topic: str) -> GroupStatus:
        """Return how *group* stands with the message now."""
        status = status_of(self.facts(message_id), NOT_NEEDED)
        return next(row for row in status.groups if (row.group, row.topic) == (group, topic))

    def _search(self, facts: Facts, *, search: bool) -> Search:
        if delivery_known(facts):
            return NOT_NEEDED
        row = facts.recorded
        if row is None:
            return NO_ROW
        if not search:
            return NOT_ASKED
        if self._namespace is None:
            return NO_NAMESPACE
        if self._topics is None:
            return NO_BROKER
        topic = topic_name(self._namespace, row.aggregatetype)
        return self._topics.look(topic, key=row.key, message_id=row.id, since=row.created_at)
