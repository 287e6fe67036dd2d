"""The operator's service: every act and every answer, whatever face asks. Rights and more acts join here."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from packhorse.console.facts import Act, Facts, FailedAttempt, InboxRow, QuarantinedMessage
from packhorse.console.pages import Filter, Page, Position, checked_limit
from packhorse.console.ports import Payloads, Tables, Topics
from packhorse.console.redrive import REDRIVE, Order, Preview, chosen, previewed
from packhorse.console.status import (
    NOT_ASKED,
    NOT_NEEDED,
    GroupStatus,
    Search,
    Status,
    delivery_known,
    status_of,
)
from packhorse.core.acts import Actor, checked_why
from packhorse.core.naming import topic_name

NO_ROW = Search(said="not searched: without an outbox row the topic, the key and the time are unknown")
NO_NAMESPACE = Search(said="not searched: PACKHORSE_NAMESPACE is not set, so the topic's name is unknown")
NO_BROKER = Search(said="not searched: PACKHORSE_KAFKA_BOOTSTRAP_SERVERS is not set")


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """
    One quarantined message with its history.

    Attributes:
        headers: As they arrived, in order; a null header is None.
        payload: The decoded payload as JSON-able values with personal fields masked; None unless it was asked for.
        payload_said: Why there is no payload to see.
    """

    message: QuarantinedMessage
    inbox: InboxRow | None
    attempts: tuple[FailedAttempt, ...]
    acts: tuple[Act, ...]
    headers: tuple[tuple[str, bytes | None], ...]
    payload: object | None
    payload_said: str | None


class OperatorService:
    """
    Answer operators and act for them, over one database.

    Args:
        tables: Where the facts are.
        topics: Where records are looked for; None when no broker is set.
        payloads: What decodes a payload; None when no registry is set.
        namespace: First part of the topics' names; None when unknown.
    """

    def __init__(
        self,
        tables: Tables,
        *,
        topics: Topics | None = None,
        payloads: Payloads | None = None,
        namespace: str | None = None,
    ) -> None:
        self._tables = tables
        self._topics = topics
        self._payloads = payloads
        self._namespace = namespace

    def status(self, message_id: UUID, *, search: bool) -> Status:
        """Return where *message_id* stands; look into its topic only if *search* and no delivery is known."""
        facts = self._tables.facts(message_id)
        return status_of(facts, self._search(facts, search=search))

    def page(self, wanted: Filter, *, after: Position | None, limit: int) -> Page:
        """
        Return one page of the quarantine.

        Raises:
            UsageError: *limit* is not allowed.
        """
        return self._tables.page(wanted, after=after, limit=checked_limit(limit))

    def show(self, message_id: UUID, *, group: str | None, topic: str | None, payload: bool) -> Shown:
        """
        Return one quarantined message; its payload, masked, only if *payload*.

        Raises:
            UsageError: None or several match; names them.
        """
        facts = self._tables.facts(message_id)
        message = chosen(facts.quarantined, message_id=message_id, group=group, topic=topic)
        raw, headers = self._tables.bytes_of(message)
        decoded, said = self._decoded(raw) if payload else (None, "not shown; --payload decodes it")
        return Shown(
            message=message,
            inbox=_inbox_of(facts, message),
            attempts=tuple(row for row in facts.attempts if _same(row, message)),
            acts=tuple(row for row in facts.acts if _same(row, message)),
            headers=tuple(headers),
            payload=decoded,
            payload_said=said,
        )

    def preview(
        self, message_id: UUID, *, group: str | None, topic: str | None, act: str = REDRIVE
    ) -> Preview:
        """
        Return what a redrive, or another *act*, would do; changes nothing.

        Raises:
            UsageError: None or several messages match; names them.
            OwnershipLost: Somebody has acted already; names who and when.
        """
        facts = self._tables.facts(message_id)
        message = chosen(facts.quarantined, message_id=message_id, group=group, topic=topic)
        acts = [act for act in facts.acts if _same(act, message)]
        return previewed(
            message,
            _inbox_of(facts, message),
            acts[-1] if acts else None,
            act=act,
            followers=self._tables.followers(message),
        )

    def redrive(self, order: Order, *, actor: Actor, why: str) -> datetime:
        """
        Order exactly the redrive that was previewed; return when it was recorded.

        Raises:
            UsageError: *why* is empty or too long.
            OwnershipLost: The message has moved since the preview; names who acted and when.
        """
        return self._tables.redrive(order, actor=actor.text, why=checked_why(why))

    def discard(self, order: Order, *, actor: Actor, why: str) -> datetime:
        """Give up exactly the message that was previewed; return when it was recorded. Raises what `redrive` does."""
        return self._tables.discard(order, actor=actor.text, why=checked_why(why))

    def progress(self, order: Order) -> GroupStatus:
        """Return how the group of *order* stands with the message now."""
        status = status_of(self._tables.facts(order.id), NOT_NEEDED)
        return next(row for row in status.groups if (row.group, row.topic) == (order.group, order.topic))

    def actor(self, user: str, claimed: str | None) -> Actor:
        """Return who acts: *user* of this machine under the database's role."""
        return Actor(user=user, role=self._tables.role(), claimed=claimed)

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

    def _decoded(self, raw: bytes | None) -> tuple[object | None, str | None]:
        if raw is None:
            return None, "none: the message is a tombstone"
        if self._payloads is None:
            return None, "not decoded: PACKHORSE_REGISTRY_URL is not set"
        return self._payloads.masked(raw)


def _inbox_of(facts: Facts, message: QuarantinedMessage) -> InboxRow | None:
    return next((row for row in facts.inbox if _same(row, message)), None)


def _same(row: InboxRow | FailedAttempt | Act, message: QuarantinedMessage) -> bool:
    return (row.group, row.topic) == (message.group, message.topic)
