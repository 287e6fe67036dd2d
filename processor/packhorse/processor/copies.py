"""Copies of messages for the group's own topics: the bytes as they were, and where they come from."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from types import MappingProxyType
from uuid import UUID

from packhorse.core.errors import BrokerUnavailable
from packhorse.core.ids import id_of
from packhorse.core.naming import quarantine_topic, retry_topic
from packhorse.processor.outcomes import Reason
from packhorse.processor.record import WAKE, Delivery, HeaderList
from packhorse.processor.storing.store import Place, Quarantined
from packhorse.processor.tiers.ladder import AT_ONCE, ReadTopic, in_order, tier_for, tier_seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Copy:
    """
    One record to produce.

    Attributes:
        id: The message's id; of a wake-up the head's.
        attempt: What the copy is for, or of quarantine the last one; of a wake-up 0.
        partition: The original's.
    """

    id: UUID
    attempt: int
    topic: str
    partition: int
    key: bytes | None
    value: bytes | None
    headers: HeaderList


class CopiesMissed(BrokerUnavailable):
    """
    Not all of some copies are confirmed.

    Attributes:
        places: Where those stand that are, by their number.
        refused: Why the broker did not take some of the others, by their number: for what they are, or for what is missing.
    """

    def __init__(
        self, text: str, places: Mapping[int, Place], refused: Mapping[int, str] = MappingProxyType({})
    ) -> None:
        super().__init__(text)
        self.places = places
        self.refused = refused


def to_quarantine(message: Quarantined, group: str) -> Copy:
    """Return the copy that rests in the quarantine topic."""
    return _copy(message, group, quarantine_topic(message.topic, group), due_at=None)


def copy_of(message: Quarantined, group: str, partitions: Mapping[str, int] = MappingProxyType({})) -> Copy:
    """
    Return the copy that *message* is to have now: in its tier, or at rest in quarantine where it has none.

    It keeps its partition, unless its topic was made anew with fewer *partitions*, of those that are known.
    """
    if message.tier is None or message.due_at is None:
        return fitting(to_quarantine(message, group), message.topic, partitions)
    return fitting(to_tier(message, group, message.tier, message.due_at), message.topic, partitions)


def fitting(copy: Copy, source: str, partitions: Mapping[str, int]) -> Copy:
    """Return *copy* for a partition that there is; equal ones for equal ones. Where the original stood its headers say."""
    count = partitions.get(source, copy.partition + 1)
    return copy if copy.partition < count else replace(copy, partition=copy.partition % count)


def where_read(message: Quarantined, group: str, read: Mapping[str, ReadTopic]) -> Quarantined:
    """
    Return *message* with a tier that is read, by topic, in *read*: its own, or where a ladder has lost it, the next longer.

    A retry may be recorded for a tier whose topic was deleted since, once no ladder had it any more.
    """
    if message.tier is None or retry_topic(message.topic, group, message.tier) in read:
        return message
    ladder = in_order(one.tier for one in read.values() if one.source == message.topic and one.tier)
    return message._replace(tier=tier_for(tier_seconds(message.tier), ladder)) if ladder else message


def to_tier(message: Quarantined, group: str, tier: str, due_at: datetime) -> Copy:
    """
    Return the copy that waits in *tier* for the attempt to come; when it is due the database knows, the header only tells.

    One of a message that is known by its place, since another had its id, goes on to say so, whatever it failed for since: by
    the reason alone whoever reads it knows which message it is.
    """
    if id_of(dict(message.headers).get("id")) not in {None, message.id}:
        message = message._replace(reason=Reason.ID_REUSED.value)
    return _copy(message, group, retry_topic(message.topic, group, tier), due_at=due_at)


def to_retry(message: Quarantined, group: str, now: datetime) -> Copy:
    """Return the copy that brings a redriven message back, due at once."""
    return to_tier(message, group, AT_ONCE, now)


def circling(delivery: Delivery, group: str, tier: str) -> Copy:
    """Return a copy as it was delivered, for another round in *tier*: the wait is longer than the longest tier."""
    record = delivery.record
    return Copy(
        id=delivery.id,
        attempt=delivery.attempt or 0,
        topic=retry_topic(delivery.origin.topic, group, tier),
        partition=record.partition,
        key=record.key,
        value=record.value,
        headers=record.headers,
    )


def wake_up(head: UUID, *, group: str, source: str, partition: int, key: bytes | None) -> Copy:
    """
    Return the record that lets the owner of a parked key look whether its *head* is finished.

    It carries no message: no payload, attempt 0, which no inbox row has to come, and the reason `wake`. It goes to the tier
    of no delay, into the partition *partition* that the *key* (its bytes) stood in when it was parked.
    """
    told = (
        ("attempt", "0"),
        ("reason", WAKE),
        ("source-topic", source),
        ("source-partition", str(partition)),
        ("group", group),
    )
    return Copy(
        id=head,
        attempt=0,
        topic=retry_topic(source, group, AT_ONCE),
        partition=partition,
        key=key,
        value=None,
        headers=(("id", str(head).encode()), *((name, text.encode()) for name, text in told)),
    )


def _copy(message: Quarantined, group: str, topic: str, *, due_at: datetime | None) -> Copy:
    told = (
        ("attempt", str(message.attempt)),
        ("first-failed-at", _iso(message.first_failed_at)),
        ("due-at", None if due_at is None else _iso(due_at)),
        ("reason", message.reason),
        ("error", message.error),
        ("source-topic", message.topic),
        ("source-topic-id", str(message.topic_id)),
        ("source-partition", str(message.partition)),
        ("source-offset", str(message.offset)),
        ("group", group),
    )
    return Copy(
        id=message.id,
        attempt=message.attempt,
        topic=topic,
        partition=message.partition,
        key=message.key,
        value=message.payload,
        headers=(*message.headers, *((name, text.encode()) for name, text in told if text is not None)),
    )


def _iso(at: datetime) -> str:
    return at.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
