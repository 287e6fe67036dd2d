"""Messages of a logical replication stream, written by hand: what `pgoutput` of version 1 sends."""

import struct
from collections.abc import Sequence

COLUMNS: dict[str, int] = {
    "id": 2950, "aggregatetype": 25, "aggregateid": 25, "type": 25, "schema_version": 25, "payload": 17,
    "traceparent": 25, "tracestate": 25, "correlation_id": 25, "causation_id": 25, "origin": 25, "actor": 25,
    "tenant": 25, "expires_at": 25, "headers": 3802, "created_at": 1114, "xid": 5069, "seq": 20,
}  # fmt: skip
"""The outbox's columns in the table's order, with the ids of their types."""
OUTBOX = 16_393
_FRAME = b"w" + bytes(24)


def keepalive(position: int, *, reply: bool = False) -> bytes:
    """Say how far the server is."""
    return b"k" + struct.pack(">QqB", position, 0, reply)


def begin(xid: int = 700) -> bytes:
    """Begin a transaction."""
    return _FRAME + b"B" + struct.pack(">QqI", 0, 0, xid)


def commit(end: int) -> bytes:
    """End a transaction, whose commit ends at *end*."""
    return _FRAME + b"C" + struct.pack(">BQQq", 0, end - 8, end, 0)


def relation(
    columns: dict[str, int] | None = None,
    *,
    table: str = "outbox",
    number: int = OUTBOX,
    schema: str = "packhorse",
) -> bytes:
    """Describe a table."""
    columns = COLUMNS if columns is None else columns
    described = b"".join(
        b"\0" + name.encode() + b"\0" + struct.pack(">Ii", type_, -1) for name, type_ in columns.items()
    )
    named = schema.encode() + b"\0" + table.encode() + b"\0d"
    return _FRAME + b"R" + struct.pack(">I", number) + named + struct.pack(">H", len(columns)) + described


def insert(values: Sequence[bytes | None], *, number: int = OUTBOX) -> bytes:
    """Insert a row of binary values."""
    cells = (b"n" if value is None else b"b" + struct.pack(">I", len(value)) + value for value in values)
    return _FRAME + b"I" + struct.pack(">I", number) + b"N" + struct.pack(">H", len(values)) + b"".join(cells)


def outbox_row(seq: int, *, xid: int = 700, key: str = "k", payload: bytes = b"x") -> bytes:
    """Insert a row of the outbox."""
    values: dict[str, bytes | None] = dict.fromkeys(COLUMNS)
    values |= {
        "id": seq.to_bytes(16, "big"), "aggregatetype": b"orders", "aggregateid": key.encode(), "type": b"t.T",
        "schema_version": b"1", "payload": payload, "created_at": bytes(8), "xid": struct.pack(">Q", xid),
        "seq": struct.pack(">q", seq),
    }  # fmt: skip
    return insert(list(values.values()))
