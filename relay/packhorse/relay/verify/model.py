"""What a comparison asks and finds: values and their judgement, no I/O."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any
from uuid import UUID

from packhorse.core.errors import SettingsError
from packhorse.core.ids import time_of
from packhorse.core.partitions import partition_of

CLOCKS_APART = timedelta(seconds=60)
"""Topics carry the broker's clock, rows the database's: reading begins so long before the time that was asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """
    What is compared.

    Attributes:
        since, until: Rows written, and records appended, from then and up to then; aware.
        namespace: First part of the topics' names.
        topics: Names of topics; none: all that the outbox and the registered schemas know.
        listed: How many ids are kept of each kind.
    """

    since: datetime
    until: datetime | None
    namespace: str
    topics: tuple[str, ...] = ()
    listed: int = 20

    def __post_init__(self) -> None:
        if self.until is not None and self.until <= self.since:
            raise SettingsError(
                f"--until {self.until.isoformat()} is not after --since {self.since.isoformat()}"
            )
        for topic in self.topics:
            if not topic.startswith(f"{self.namespace}."):
                raise SettingsError(
                    f"topic {topic!r} is not in the namespace {self.namespace!r}; the outbox's topics are {self.namespace}.<aggregatetype>"
                )

    def aggregatetype(self, topic: str) -> str:
        """Return the aggregate type whose rows go to *topic*."""
        return topic.removeprefix(f"{self.namespace}.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """
    What is read of one partition.

    Attributes:
        low: First offset that the topic still has.
        start, end: Offsets to read, from and up to; fixed before reading.
    """

    topic: str
    partition: int
    low: int
    start: int
    end: int

    @property
    def empty(self) -> bool:
        """Return True when there is nothing to read."""
        return self.start >= self.end

    @property
    def maybe_cut(self) -> bool:
        """Return True when records from the time that was asked for may have been deleted: reading begins at the first one left."""
        return self.low > 0 and (self.start <= self.low or self.low >= self.end)


@dataclass(frozen=True, slots=True, kw_only=True)
class Topic:
    """
    One topic of the comparison.

    Attributes:
        partitions: How many; 0: it does not exist.
        compacted: It deletes records that a later one of their key replaces.
    """

    name: str
    partitions: int
    compacted: bool = False


class Found(StrEnum):
    """What a row is that counts as published and is not on its topic."""

    MISSING = "missing"
    HELD = "held"
    DISCARDED = "discarded"
    OLDER = "older than its topic keeps"
    COMPACTED = "on a compacted topic"


@dataclass(frozen=True, slots=True)
class Absent:
    """
    A row that the topic does not have.

    Attributes:
        held, discarded: By a hold of its row, key or topic; by a person.
        held_partitions: Held partitions of its topic that have not published it: (partition, of how many).
    """

    id: str
    seq: int
    aggregatetype: str
    key: str | None = field(repr=False)
    created_at: datetime
    held: bool
    discarded: bool
    held_partitions: tuple[tuple[int, int], ...]


@dataclass(slots=True)
class Kept:
    """
    Since when each partition has everything.

    Attributes:
        since: Time of the first record left, of partitions that have deleted some; None: nothing is left.
    """

    topics: dict[str, Topic]
    since: dict[tuple[str, int], datetime | None] = field(default_factory=dict)

    def judge(self, row: Absent, topic: str) -> Found:
        """Return what *row* is."""
        if row.discarded:
            return Found.DISCARDED
        if row.held or any(
            row.key is not None and partition_of(row.key.encode(), of) == number
            for number, of in row.held_partitions
        ):
            return Found.HELD
        known = self.topics[topic]
        if known.partitions and self._may_be_deleted(row, known):
            return Found.OLDER
        return Found.COMPACTED if known.compacted else Found.MISSING

    def _may_be_deleted(self, row: Absent, topic: Topic) -> bool:
        """Tell whether its record may be among those that the partition has deleted; without key it may be in any."""
        numbers = (
            range(topic.partitions)
            if row.key is None
            else (partition_of(row.key.encode(), topic.partitions),)
        )
        for number in numbers:
            cut = self.since.get((topic.name, number), row.created_at)
            if cut is None or row.created_at < cut:
                return True
        return False


def written_at(id_: UUID, appended: datetime) -> datetime:
    """
    Return when the message was written, as well as its record tells: a UUIDv7 has its time, else the record's counts.

    >>> from datetime import UTC
    >>> written_at(UUID("019b76da-a800-7000-8000-000000000000"), datetime(2027, 1, 1, tzinfo=UTC)).isoformat()
    '2026-01-01T00:00:00+00:00'
    """
    return time_of(id_) or appended


@dataclass(slots=True, kw_only=True)
class Report:
    """
    What a comparison found; ids and seqs, never keys or payloads.

    Attributes:
        records, messages, without_id: Records read, different ids among them, records of other producers.
        gone: Messages on topics that the outbox does not have; `gone_list` names the first ones.
        retired: The same, but written before `outbox_since`: what the outbox has let go of by retention.
        rows: Rows of the time, by what they are: published and found, waiting, and each `Found`.
        missing_list, missing_ranges: The first ones that are missing; their first and last seq by topic.
    """

    since: datetime
    until: datetime
    incarnation: str
    topics: list[str]
    absent_topics: list[str] = field(default_factory=list)
    records: int = 0
    messages: int = 0
    without_id: int = 0
    gone: int = 0
    gone_list: list[dict[str, Any]] = field(default_factory=list)
    retired: int = 0
    outbox_since: datetime | None = None
    rows: dict[str, int] = field(default_factory=dict)
    missing_list: list[dict[str, Any]] = field(default_factory=list)
    missing_ranges: dict[str, tuple[int, int]] = field(default_factory=dict)

    @property
    def missing(self) -> int:
        """Return how many rows count as published and are missing."""
        return self.rows.get(Found.MISSING, 0)

    @property
    def agrees(self) -> bool:
        """Return True when nothing is gone and nothing is missing."""
        return not self.gone and not self.missing

    def as_dict(self) -> dict[str, Any]:
        """Return what `--json` prints."""
        fields = {name: getattr(self, name) for name in self.__slots__}
        times = {name: value.isoformat() for name, value in fields.items() if isinstance(value, datetime)}
        return {"agrees": self.agrees, "missing": self.missing, **fields, **times}

    def lines(self) -> list[str]:
        """Return what people read."""
        found = [
            f"from {_time(self.since)} to {_time(self.until)}, {len(self.topics)} topics, server {self.incarnation}",
            f"topics: {self.records:,} records, {self.messages:,} different messages, {self.without_id:,} records without an id",
            "outbox: " + ", ".join(f"{count:,} {name}" for name, count in self.rows.items()),
            *(f"topic {name} does not exist" for name in self.absent_topics),
        ]
        if self.retired:
            found.append(
                f"{self.retired:,} messages were written before {_time(self.outbox_since)}, when the outbox now begins: not judged"
            )
        found.append(f"published and gone from the database: {self.gone:,}")
        found += [
            f"  {row['id']}  {row['topic']}/{row['partition']} offset {row['offset']}"
            for row in self.gone_list
        ]
        if self.gone:
            found.append(
                "  readers have them, this database does not: a restore or failover took them back; ask their readers, and write what is true anew"
            )
        found.append(f"counted as published and missing on the topic: {self.missing:,}")
        found += [f"  {row['id']}  seq {row['seq']}  {row['topic']}" for row in self.missing_list]
        found += [
            f"  send them again: packhorse relay republish --topic {topic} --from {first} --to {last} --dry-run"
            for topic, (first, last) in self.missing_ranges.items()
        ]
        return found


def _time(at: datetime | None) -> str:
    return "the beginning" if at is None else at.isoformat(sep=" ", timespec="seconds")
