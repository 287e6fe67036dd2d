"""What is purged and what became of it, as values. Pure: no I/O, no clock."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any
from uuid import UUID

from packhorse.core.partitions import partition_of
from packhorse.processor.erasing import Subject


class Table(StrEnum):
    """Tables that hold messages, in the order in which they are gone through: what waits behind a head goes before it is let go."""

    JOB = "job"
    PARKED = "parked_message"
    RETRY = "retry_message"
    QUARANTINE = "quarantined_message"
    OUTBOX = "outbox"


class Kind(StrEnum):
    """What a topic is to the message that lies on it."""

    SOURCE = "source"
    TIER = "tier"
    QUARANTINE = "quarantine"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """
    What is to go.

    Attributes:
        topic: Messages of this source topic alone; None: of all.
        aggregatetype: What the outbox calls it.
        group: Of this group alone; then the outbox, which is no group's, is left.
        unpublished: Rows of the outbox that are not published go too, and their messages are lost.
    """

    subject: Subject
    topic: str | None = None
    aggregatetype: str | None = None
    group: str | None = None
    unpublished: bool = False

    @property
    def tables(self) -> tuple[Table, ...]:
        """Return the tables that are gone through, in their order; the keys of the outbox, and what jobs hold, are text."""
        left: set[Table] = set()
        if self.group is not None:
            left.add(Table.OUTBOX)
        if self.subject.raw is not None:
            left |= {Table.OUTBOX, Table.JOB}
        return tuple(table for table in Table if table not in left)

    @property
    def by(self) -> str:
        """Return how the subject is given, without saying who it is."""
        return "key" if self.subject.path is None else f"field {self.subject.path}"

    @property
    def marked(self) -> str:
        """Return the text that stands for the subject, to be hashed."""
        if self.subject.raw is not None:
            return f"{self.by} in hexadecimal={self.subject.raw.hex()}"
        return f"{self.by}={self.subject.value if self.subject.key is None else self.subject.key}"


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Place:
    """Where on a topic a record of the subject lies; without an offset it is not known where in the partition."""

    topic: str
    partition: int
    offset: int | None = None
    kind: Kind = Kind.SOURCE

    def row(self) -> list[Any]:
        """Return it as the audit keeps it."""
        return [self.topic, self.partition, self.offset, self.kind.value]


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """
    A message of the subject in one table; an outbox row has no group and is named by its aggregate type.

    Attributes:
        named: It is the subject's whatever it holds: a job whose request key or name is theirs.
    """

    id: UUID
    group: str
    topic: str
    places: tuple[Place, ...] = ()
    named: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Left:
    """
    A row of the outbox that stays for now: it is not published, a stream may have it in hand, or a hold keeps it. Or a job that runs.

    Attributes:
        aggregatetype: Of a job its type.
    """

    id: UUID
    aggregatetype: str
    fate: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Erased:
    """What one transaction erased."""

    counts: Mapping[str, int]
    left: tuple[Left, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Unknown:
    """
    Messages that could not be looked into, because this database does not know their schema.

    Attributes:
        schema_id: None: their payload names none.
    """

    table: Table
    schema_id: int | None
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Schemas:
    """
    What is looked into where the subject is a field's value.

    Attributes:
        having: Ids of the schemas that have the field, and mark it personal.
        known: Ids of all schemas that this database knows.
    """

    having: tuple[int, ...]
    known: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stay:
    """A topic that may still hold records of the subject; no partition: any."""

    topic: str
    kind: Kind
    partition: int | None
    offsets: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """
    What a purge did, and what it could not do.

    Attributes:
        run: Names this run in the audit; None: nothing was done.
        counts: Rows by what was done to them.
        left: Rows of the outbox, and jobs that run, that stay for now, or would.
        keys: Parked keys that stay until a processor of their group looks, or a person resumes them.
        stays: Topics that may still hold records.
        unreadable: Payloads that could not be decoded, and so not be looked into.
        unknown: Messages that could not be looked into for want of their schema.
    """

    run: UUID | None
    counts: Mapping[str, int]
    left: tuple[Left, ...] = ()
    keys: int = 0
    stays: tuple[Stay, ...] = ()
    unreadable: int = 0
    unknown: tuple[Unknown, ...] = ()

    @property
    def is_whole(self) -> bool:
        """Return whether all there is was looked into, and neither a row of the outbox nor a job was left."""
        return not (self.left or self.unreadable or self.unknown)


@dataclass(slots=True, kw_only=True)
class Tally:
    """What a run has done so far."""

    counts: Counter[str] = field(default_factory=Counter)
    left: list[Left] = field(default_factory=list)
    unreadable: int = 0
    unknown: Counter[tuple[Table, int | None]] = field(default_factory=Counter)

    @property
    def unread(self) -> int:
        """Return how many messages could not be looked into."""
        return self.unreadable + self.unknown.total()

    def unknowns(self) -> tuple[Unknown, ...]:
        """Return the messages without a known schema by table and schema."""
        order = sorted(self.unknown, key=lambda one: (one[0], -1 if one[1] is None else one[1]))
        return tuple(Unknown(table=table, schema_id=at, count=self.unknown[table, at]) for table, at in order)

    def add(self, erased: Erased) -> None:
        """Add what one transaction did."""
        self.counts.update(erased.counts)
        self.left += erased.left


def stays_of(
    subject: Subject, sources: Mapping[str, int | None], places: Iterable[Place]
) -> tuple[Stay, ...]:
    """
    Return the topics that may still hold records of *subject*: its sources, and where copies are known to lie.

    *sources* says of each source topic how many partitions it has; None: no broker was asked.
    """
    offsets: dict[tuple[str, Kind, int], set[int]] = {}
    for place in places:
        known = offsets.setdefault((place.topic, place.kind, place.partition), set())
        if place.offset is not None:
            known.add(place.offset)
    found = [
        Stay(topic=topic, kind=kind, partition=partition, offsets=tuple(sorted(known)))
        for (topic, kind, partition), known in offsets.items()
    ]
    key = subject.key_bytes
    for topic, count in sources.items():
        at = None if key is None or count is None else partition_of(key, count)
        if not any(one.topic == topic and at in {None, one.partition} for one in found):
            found.append(Stay(topic=topic, kind=Kind.SOURCE, partition=at))
    return tuple(sorted(found, key=lambda one: (one.kind != Kind.SOURCE, one.topic, one.partition or 0)))


def batches(found: Sequence[Found], size: int) -> Iterable[Sequence[Found]]:
    """Yield *found* in pieces of at most *size*."""
    for first in range(0, len(found), size):
        yield found[first : first + size]
