"""Statements as steps: a generator yields them, a shell executes them, sync or async; no I/O here."""

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple, TypeVar
from uuid import UUID

from packhorse.processor.record import HeaderList, Stream
from packhorse.processor.storing.rows import headers_of
from packhorse.processor.storing.sql import Queries

T = TypeVar("T")

BEGIN = b"BEGIN ISOLATION LEVEL READ COMMITTED"
COMMIT = b"COMMIT"
ROLLBACK = b"ROLLBACK"


class Statement(NamedTuple):
    """One statement and its named parameters."""

    text: bytes
    parameters: dict[str, Any]


class Answer(NamedTuple):
    """The rows that a statement returned, and how many it touched."""

    rows: Sequence[tuple[Any, ...]]
    touched: int


Steps = Generator[Statement, Answer, T]
"""Yields statements one after another, is sent their answers, and ends with a result."""


class Quarantined(NamedTuple):
    """
    One message as the tables keep it, for a copy of it.

    Attributes:
        attempt: The last, or of one that is tried again the next.
        tier: Where its copy goes: the tier's name, or to quarantine without one.
        due_at: Of one that is tried again when it may run.
    """

    id: UUID
    topic: str
    topic_id: UUID
    partition: int
    offset: int
    key: bytes | None
    payload: bytes | None
    headers: HeaderList
    reason: str
    error: str | None
    attempt: int
    first_failed_at: datetime
    tier: str | None = None
    due_at: datetime | None = None


class After(NamedTuple):
    """Behind which quarantined message a portion of them begins."""

    topic: str = ""
    partition: int = -1
    offset: int = -1
    id: UUID = UUID(int=0)


PORTION = 1_000
"""Copies and wake-ups of one kind that are sent at a time."""


def behind(portion: Sequence[Quarantined]) -> After:
    """Return where the portion after *portion* begins: behind its last one, or where all begin when it was not full."""
    if len(portion) < PORTION:
        return After()
    last = portion[-1]
    return After(last.topic, last.partition, last.offset, last.id)


class Place(NamedTuple):
    """Where the broker has put a copy."""

    id: UUID
    partition: int
    offset: int
    attempt: int
    tier: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Tables:
    """The tables of one group, and the statements on them."""

    queries: Queries
    group: str
    schema: str

    def _place(self, stream: Stream, partition: int) -> dict[str, Any]:
        return {"group": self.group, "topic_id": stream.topic_id, "partition": partition}


def kept(row: tuple[Any, ...]) -> Quarantined:
    """Return the message that a row tells of."""
    tier, due_at = row[12:] or (None, None)
    return Quarantined._make((*row[:7], headers_of(row[7]), *row[8:12], tier, due_at))
