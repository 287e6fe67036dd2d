"""What the pure middle asks of a connection: statements, and columns of many rows as one parameter."""

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar
from uuid import UUID

from packhorse.producer.rows import Row
from packhorse.producer.sql import Queries

MOST_ROWS = 5_000
MOST_BYTES = 16 * 1024 * 1024

T = TypeVar("T")
Answer = Sequence[tuple[Any, ...]]


@dataclass(frozen=True, slots=True)
class Statement:
    """
    One statement for the caller's connection.

    Attributes:
        text: The SQL, with %s for each parameter.
        parameters: Their values.
        returns: Its rows are wanted back.
        columns: Some parameters are columns of many rows.
    """

    text: bytes
    parameters: tuple[Any, ...]
    returns: bool = False
    columns: bool = False


Steps = Generator[Statement, Answer, T]
"""Yields statements one after another, is sent their rows, and ends with a result; it never does I/O itself."""


@dataclass(frozen=True, slots=True)
class Texts:
    """One text column of many rows."""

    values: Sequence[str | None]


@dataclass(frozen=True, slots=True)
class Uuids:
    """One uuid column of many rows."""

    values: Sequence[UUID]


@dataclass(frozen=True, slots=True)
class Bytes:
    """One bytea column of many rows."""

    values: Sequence[bytes | None]


_ID, _KEY, _PAYLOAD, _HEADERS = 0, 2, 5, 14
_ALIKE = (1, 3, 4, 6, 7, 8, 9, 10, 11, 12, 13)


def insert(rows: Sequence[Row], queries: Queries) -> Steps[None]:
    """Yield the statements that insert *rows* in their order: one, unless they are very many or very large."""
    if len(rows) == 1:
        yield Statement(queries.insert_one, rows[0])
        return
    for chunk in chunks(rows):
        yield _insert_many(chunk, queries)


def _insert_many(rows: Sequence[Row], queries: Queries) -> Statement:
    columns = list(zip(*rows, strict=True))
    ids, keys = Uuids(columns[_ID]), Texts(columns[_KEY])
    payloads, headers = Bytes(columns[_PAYLOAD]), Texts(columns[_HEADERS])
    if all(columns[n].count(columns[n][0]) == len(rows) for n in _ALIKE):
        shared = tuple(columns[n][0] for n in _ALIKE)
        return Statement(queries.insert_alike, (*shared, ids, keys, payloads, headers), columns=True)
    texts: list[Any] = [Texts(column) for column in columns]
    texts[_ID], texts[_PAYLOAD] = ids, payloads
    return Statement(queries.insert_mixed, tuple(texts), columns=True)


def chunks(
    rows: Sequence[Row], *, most_rows: int = MOST_ROWS, most_bytes: int = MOST_BYTES
) -> list[Sequence[Row]]:
    """Return *rows* cut, in order, so that no piece has more than *most_rows* or, unless alone, *most_bytes* of payload."""
    found: list[Sequence[Row]] = []
    start = size = 0
    for n, row in enumerate(rows):
        length = len(row[_PAYLOAD] or b"")
        if n > start and (n - start >= most_rows or size + length > most_bytes):
            found.append(rows[start:n])
            start, size = n, 0
        size += length
    if rows:
        found.append(rows[start:])
    return found
