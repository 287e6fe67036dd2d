"""Where one message stands, as the API answers it."""

from datetime import datetime
from uuid import UUID

from packhorse.console.api.models.base import Answer, Asked, WithKey
from packhorse.console.api.models.jobs import JobAnswer
from packhorse.console.api.models.quarantine import QuarantinedAnswer
from packhorse.console.facts import Act, Discard, FailedAttempt, Forgotten, Hold, InboxRow, Place
from packhorse.console.truth.around import (
    Carrier,
    Crew,
    Fate,
    Key,
    Membership,
    Parent,
    Pause,
    Queued,
    Retry,
)
from packhorse.console.truth.awaited import Awaited
from packhorse.console.truth.groups import Redrive
from packhorse.console.truth.replays import Replayed, ReplayOf
from packhorse.console.truth.status import Published


class StatusAsked(Asked):
    """
    How to look for a message.

    Attributes:
        search: Where no delivery is known, look into the key's partition of its topic, within bounds.
        show_key: Show the message's key.
    """

    search: bool = False
    show_key: bool = False


class RecordedAnswer(WithKey):
    """A row of the outbox without its payload."""

    aggregatetype: str
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


class GroupAnswer(Answer):
    """How one group stands with the message of one topic."""

    group: str
    topic: str
    standing: str
    redrive: Redrive
    inbox: InboxRow | None
    failed_attempts: list[FailedAttempt]
    quarantined: QuarantinedAnswer | None
    retry: Retry | None
    parked_key: Key | None
    queue: Queued | None
    pause: Pause | None
    processors: Crew
    fate: Fate | None
    redrives: list[Membership]
    replays: list[Replayed]


class StatusAnswer(Answer):
    """
    The way of one message so far.

    Attributes:
        known: False when this database has no row of the id: it is not recorded, not pending, nothing.
        standing: The answer in one line.
        now: The database's clock, in the snapshot that all of it is from.
        outbox_rows: How many outbox rows bear the id.
        replay_of: Of which message it is the identity in a replay.
        awaited: Groups that read the topic and have no row of the message.
        relay: The relay that has to publish it, or had.
        job: How the job of this id stands; null where it is no job's.
    """

    id: UUID
    known: bool
    standing: str
    recorded: RecordedAnswer | None
    published: Published
    published_why: str
    place: Place | None
    hold: Hold | None
    discard: Discard | None
    search: str
    groups: list[GroupAnswer]
    acts: list[Act]
    forgotten: list[Forgotten]
    job: JobAnswer | None
    now: datetime | None
    outbox_rows: int
    edited_copy_of: list[Parent]
    replay_of: ReplayOf | None
    awaited: list[Awaited]
    relay: Carrier | None
