"""Records of the range as messages of the group: which are wanted, who they are, and in what form they are handed over. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from functools import lru_cache
from typing import NamedTuple
from uuid import UUID

from packhorse.console.replaying.wanted import Wanted
from packhorse.core.ids import replayed_id
from packhorse.processor.record import (
    REPLAY_HANDLER,
    REPLAY_OF,
    Delivery,
    HeaderList,
    Record,
    Stream,
    digest_of,
    first_delivery,
    key_hash,
    text_of,
    time_of_header,
)

FREE_BUCKETS = 8
"""Stand-ins for the keys of messages that have none, so that several of them share a transaction."""

hashed = lru_cache(maxsize=50_000)(key_hash)
"""Hash of a key; the last ones are remembered."""
_typed = lru_cache(maxsize=1_000)(text_of)


class Standing(StrEnum):
    """How the group stands with one message of the range."""

    NEVER = "never"
    """It has no row, and the inbox would know: it was never done."""
    DONE = "done"
    DISCARDED = "discarded"
    """A person gave it up, so that its effect never came about."""
    EDITED = "edited"
    """It was given up for an edited copy, which stands in its place."""
    PURGED = "purged"
    """It was purged: what is kept of it is not to be kept anew."""
    OPEN = "open"
    """It waits in retry, in quarantine, as uncertain or behind its key: it is left to where it is."""
    REUSED = "reused"
    """Its id is in the inbox for another payload: it is left to a person."""
    OLDER = "older"
    """It is older than what the inbox keeps: nobody can say."""


class Seen(NamedTuple):
    """
    What the tables know of an id.

    Attributes:
        outcome: As the inbox says; where it has forgotten the row and the quarantine has not, that it is discarded.
        digest: Of the payload.
        edited: An edited copy has taken its place.
        purged: It was purged.
    """

    outcome: str
    digest: str | None
    edited: bool = False
    purged: bool = False


class Handing(NamedTuple):
    """
    One message as it is handed over.

    Attributes:
        id: Under which the inbox knows it from now on.
        headers: As handed.
        hash: Of the key that it is parked under.
        stand_in: Bytes of that key where the message has none; None: its own.
    """

    delivery: Delivery
    id: UUID
    headers: HeaderList
    hash: str
    stand_in: bytes | None


@dataclass(frozen=True, slots=True)
class Matcher:
    """Say which records of *stream* are wanted."""

    stream: Stream
    types: frozenset[bytes]
    keys: frozenset[bytes]
    left_out: frozenset[bytes]

    def __call__(self, records: Sequence[Record]) -> list[Delivery]:
        """Return those of *records* that are wanted, in order, as the group knows them."""
        types, keys, left_out, stream = self.types, self.keys, self.left_out, self.stream
        found = []
        for record in records:
            headers = dict(record.headers)
            kind = headers.get("type")
            if types and kind not in types:
                continue
            if (keys and record.key not in keys) or record.key in left_out:
                continue
            found.append(first_delivery(record, headers, _typed(kind), stream))
        return found

    def only(self, records: Sequence[Record]) -> Sequence[Record]:
        """Return those of *records* that are wanted, and ask no more of them: a fifth of the work."""
        if not (self.types or self.keys or self.left_out):
            return records
        return [one.record for one in self(records)]


def matcher_of(wanted: Wanted, topic_id: UUID) -> Matcher:
    """Return what says which records *wanted* means."""
    return Matcher(
        stream=Stream(topic=wanted.topic, topic_id=topic_id, source=wanted.topic),
        types=frozenset(name.encode() for name in wanted.types),
        keys=frozenset(key.encode() for key in wanted.keys),
        left_out=frozenset(key.encode() for key in wanted.left_out),
    )


def standing_of(delivery: Delivery, seen: Seen | None, kept_from: datetime | None) -> Standing:
    """
    Return how the group stands with *delivery*; *kept_from* is since when the inbox keeps every row, None: always.

    A row is at least as young as its record, so one that is younger than *kept_from* and has no row was never done.
    """
    if seen is None:
        young = kept_from is None or delivery.record.timestamp_ms >= kept_from.timestamp() * 1000
        return Standing.NEVER if young else Standing.OLDER
    if seen.purged:
        return Standing.PURGED
    if seen.digest is not None and seen.digest != digest_of(delivery.record.value):
        return Standing.REUSED
    if seen.edited:
        return Standing.EDITED
    if seen.outcome in {"done", "skipped"}:
        return Standing.DONE
    return Standing.DISCARDED if seen.outcome == "discarded" else Standing.OPEN


def is_handed(standing: Standing, wanted: Wanted) -> bool:
    """
    Return whether a message that stands so is handed over.

    What a person gave up is not: done again it would come about for the first time.

    >>> from datetime import UTC
    >>> safe = Wanted(group="g", topic="t", since=datetime(2026, 1, 1, tzinfo=UTC))
    >>> [is_handed(one, safe) for one in (Standing.NEVER, Standing.DONE, Standing.OLDER)]
    [True, False, False]
    """
    if standing is Standing.PURGED:
        return False
    if wanted.handler is not None:
        return True
    if standing is Standing.NEVER:
        return True
    if standing is Standing.DISCARDED:
        return wanted.with_discarded
    return wanted.again and standing in {Standing.DONE, Standing.OLDER}


def expired(delivery: Delivery, now: datetime) -> bool:
    """Return whether no handler starts for it any more."""
    at = time_of_header(delivery.headers.get("expires-at"))
    return at is not None and at <= now


def handing(delivery: Delivery, standing: Standing, wanted: Wanted, run: int) -> Handing:
    """
    Return how *delivery* is handed over in replay number *run*.

    What was never done keeps its identity. What is done once more, or goes to a named handler, gets one of run and message: the
    header `id` says it, since copies in tiers are known by that, and `replay-of` says which message it is.
    """
    record, message_id, headers = delivery.record, delivery.id, delivery.record.headers
    if wanted.handler is not None or standing is not Standing.NEVER:
        message_id = replayed_id(delivery.id, run, wanted.group)
        rest = [one for one in headers if one[0] not in {"id", REPLAY_OF, REPLAY_HANDLER}]
        own = [(REPLAY_OF, str(delivery.id).encode())]
        if wanted.handler is not None:
            own.append((REPLAY_HANDLER, wanted.handler.encode()))
        headers = (("id", str(message_id).encode()), *rest, *own)
    stand_in = None
    if record.key is None:
        stand_in = b"replay %d/%d/%d" % (run, record.partition, record.offset % FREE_BUCKETS)
    return Handing(delivery, message_id, headers, hashed(stand_in or record.key or b""), stand_in)
