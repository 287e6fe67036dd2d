"""From an outbox row to a Kafka record: topic, key, value, timestamp, headers. Bytes are moved, never made anew."""

from packhorse.core.message import HEADER_COLUMNS
from packhorse.relay.model import FIRST_HEADER, Row

HEADER_NAMES = tuple(name for name, _ in HEADER_COLUMNS)


def headers_of(row: Row) -> list[tuple[str, str | bytes | None]]:
    """
    Return the record's headers in the order of HEADER_COLUMNS; absent values are left out.

    >>> headers_of((7, "aircraft", "N1", b"", 0, "an-id", "airline.Landed", "1", None, None, None, None, "ops", None, None, None, None))
    [('id', 'an-id'), ('type', 'airline.Landed'), ('schema-version', '1'), ('origin', 'ops')]
    """
    return [
        (name, value)
        for name, value in zip(HEADER_NAMES, row[FIRST_HEADER:], strict=True)
        if value is not None
    ]
