"""What the tables and topics say about messages: plain values, read by the adapters and judged by the pure modules."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from uuid import UUID

from packhorse.console.truth.around import NOTHING_AROUND, Around
from packhorse.console.truth.jobs import JobFacts


class Outcome(StrEnum):
    """How a group has dealt with a message, as its inbox row says."""

    DONE = "done"
    SKIPPED = "skipped"
    RETRY = "retry"
    PARKED = "parked"
    QUARANTINE = "quarantine"
    UNCERTAIN = "uncertain"
    DISCARDED = "discarded"


class State(StrEnum):
    """What a person has decided about a quarantined message so far."""

    QUARANTINED = "quarantined"
    REDRIVEN = "redriven"
    DISCARDED = "discarded"


@dataclass(frozen=True, slots=True, kw_only=True)
class OutboxRow:
    """
    A row of the outbox without its payload.

    Attributes:
        published: The relay's horizon is past it: it is published unless a hold or a discard says otherwise; None when the database has no row of a relay.
        relay_ran: Whether a relay has ever owned the shard.
        payload_bytes: Size of the payload; None for a tombstone.
    """

    id: UUID
    aggregatetype: str
    key: str | None
    type: str
    schema_version: str
    payload_bytes: int | None
    created_at: datetime
    correlation_id: str | None
    causation_id: str | None
    origin: str | None
    tenant: str | None
    traceparent: str | None
    expires_at: str | None
    published: bool | None
    relay_ran: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """
    An open hold of the relay that an outbox row may wait in.

    Attributes:
        scope: row, key, partition or topic.
        partition, partitions: Of a partition: which, and of how many.
        heals: The relay releases it by itself.
        asked: A person ordered the release.
    """

    id: int
    scope: str
    partition: int | None
    partitions: int | None
    code: str
    reason: str
    heals: bool
    state: str
    asked: bool
    since: datetime

    @property
    def next(self) -> str:
        """Return what happens next, or what a person has to do."""
        if self.state == "releasing":
            return "its rows are on their way, in order"
        if self.asked:
            return "the release is ordered; the relay's owner begins it"
        if self.heals:
            return "the relay tries by itself and releases it"
        return f"packhorse relay hold show {self.id}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Discard:
    """Who gave an outbox row up, from which hold (0: a purge erased it), so that it is never published."""

    hold: int
    actor: str
    why: str | None
    at: datetime

    @property
    def way(self) -> str:
        """Return how it was given up."""
        return f"from hold {self.hold}" if self.hold else "by a purge"


@dataclass(frozen=True, slots=True, kw_only=True)
class InboxRow:
    """
    The durable fact that a group has dealt with a message; partition and offset are where it stands on its topic.

    Attributes:
        deliveries: Records with its id that were read: itself, itself once more, copies in tiers, wake-ups of its key.
        behind: The head of its key, which a parked message waits for; None when none is known: the key is paused, or about
            to be drained.
    """

    group: str
    topic: str
    outcome: Outcome
    attempt: int
    deliveries: int
    partition: int
    offset: int
    type: str | None
    due_at: datetime | None
    first_failed_at: datetime | None
    reason: str | None
    error: str | None
    recorded_at: datetime
    changed_at: datetime
    behind: UUID | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedAttempt:
    """One run of the handler that did not end well; `due_at` is when the next was to start."""

    group: str
    topic: str
    attempt: int
    failed_at: datetime
    reason: str
    error: str | None
    due_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class QuarantinedMessage:
    """A message that rests until a person decides; its bytes stay in the database and are read apart."""

    id: UUID
    group: str
    topic: str
    partition: int
    offset: int
    key: bytes | None
    payload_bytes: int | None
    type: str | None
    tenant: str | None
    reason: str
    error: str | None
    attempts: int
    first_failed_at: datetime
    quarantined_at: datetime
    state: State
    copy_partition: int | None
    copy_offset: int | None
    redrives: int
    redrive_sent_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Act:
    """One row of the audit: who did what, when and why."""

    at: datetime
    actor: str
    act: str
    group: str | None
    topic: str | None
    why: str | None
    detail: dict[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a record stands on a topic."""

    topic: str
    partition: int
    offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Forgotten:
    """A group whose inbox may have let the id's row go: closed rows of before *kept_from* are *days* old or older."""

    group: str
    kept_from: datetime
    days: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """All that one database knows about one id, read in one snapshot; `job` is None where the id is no job's."""

    id: UUID
    schema: str
    recorded: OutboxRow | None = None
    holds: tuple[Hold, ...] = ()
    discard: Discard | None = None
    inbox: tuple[InboxRow, ...] = ()
    attempts: tuple[FailedAttempt, ...] = ()
    quarantined: tuple[QuarantinedMessage, ...] = ()
    acts: tuple[Act, ...] = ()
    forgotten: tuple[Forgotten, ...] = ()
    job: JobFacts | None = None
    around: Around = NOTHING_AROUND
