"""Records of one partition that are read and not dealt with."""

from collections import deque
from collections.abc import Iterable
from itertools import islice

from packhorse.processor.record import Record


class Buffer:
    """A queue in offset order; for one thread."""

    __slots__ = ("_records",)

    def __init__(self) -> None:
        self._records: deque[Record] = deque()

    def __len__(self) -> int:
        return len(self._records)

    def extend(self, records: Iterable[Record]) -> None:
        """Append *records*, which lie behind all that is here."""
        self._records.extend(records)

    def first(self, limit: int, *, alone: int | None = None) -> list[Record]:
        """Return up to *limit* records from the head, left in place; the one at offset *alone* comes by itself."""
        head = list(islice(self._records, limit))
        if alone is None or not head or head[0].offset > alone:
            return head
        if head[0].offset == alone:
            return head[:1]
        return [record for record in head if record.offset < alone]

    def drop_below(self, offset: int) -> None:
        """Take the records below *offset* out."""
        records = self._records
        while records and records[0].offset < offset:
            records.popleft()

    def clear(self) -> None:
        """Take all out."""
        self._records.clear()


def bytes_of(records: Iterable[Record]) -> int:
    """Return the bytes of keys, values and headers: any of them can be what fills the memory."""
    return sum(
        len(record.key or b"")
        + len(record.value or b"")
        + sum(len(name) + len(value or b"") for name, value in record.headers)
        for record in records
    )
