"""From results to the columns of statements, and headers to JSON and back; no I/O."""

import json
from base64 import b64decode, b64encode
from collections.abc import Iterable, Sequence
from typing import Any
from uuid import UUID

from packhorse.processor.outcomes import Outcome
from packhorse.processor.record import HeaderList, original_headers, text_of
from packhorse.processor.running.work import Result


def literal(values: Iterable[UUID | int | float | str | None]) -> str:
    """
    Return the array literal of *values*, which need no quotes (texts: hexadecimal alone); the driver's own way takes ten
    times as long.

    >>> literal([1, None, 3])
    '{1,NULL,3}'
    """
    return "{" + ",".join(["NULL" if value is None else str(value) for value in values]) + "}"


def span(ids: Sequence[UUID]) -> dict[str, Any]:
    """Return the least and the greatest of *ids*; of none a span in which nothing lies."""
    numbers = [one.int for one in ids] or [1, 0]
    low, high = (min(numbers), max(numbers)) if ids else (1, 0)
    return {"low": f"{low:032x}", "high": f"{high:032x}"}


def uuids(values: Iterable[UUID]) -> str:
    """
    Return the array literal of *values*, in the form that Postgres takes and Python is quickest at.

    >>> uuids([UUID(int=1)])
    '{00000000000000000000000000000001}'
    """
    return "{" + ",".join([f"{value.int:032x}" for value in values]) + "}"


def key_number(hashed: str) -> int:
    """
    Return the first half of a key's hash as Postgres reads it as a bigint.

    >>> key_number("ffffffffffffffff0000000000000000"), key_number("00000000000000100000000000000000")
    (-1, 16)
    """
    number = int(hashed[:16], 16)
    return number - (1 << 64) if number >> 63 else number


def new_rows(results: Sequence[Result]) -> dict[str, Any]:
    """Return the columns of first results."""
    return {
        "ids": uuids(r.delivery.id for r in results),
        "outcomes": [r.outcome.value for r in results],
        "attempts": literal(_recorded_attempt(r) for r in results),
        "partitions": literal(r.delivery.origin.partition for r in results),
        "offsets": literal(r.delivery.origin.offset for r in results),
        "types": [r.delivery.type for r in results],
        "delays": literal(r.delay for r in results),
        "reasons": [r.reason for r in results],
        "errors": [r.error for r in results],
        "digests": literal(r.digest for r in results),
    }


def is_plain(result: Result) -> bool:
    """Return whether *result* is what most are: done at the first attempt, where the message first stood."""
    return result.outcome is Outcome.DONE and result.row is None and result.delivery.copied is None


def done_rows(results: Sequence[Result]) -> dict[str, Any]:
    """Return the columns of results that are all plain, and of one partition."""
    deliveries = [result.delivery for result in results]
    return {
        "ids": uuids([one.id for one in deliveries]),
        "partition": deliveries[0].record.partition,
        "offsets": "{" + ",".join([str(one.record.offset) for one in deliveries]) + "}",
        "types": texts([one.type for one in deliveries]),
        "digests": literal([result.digest for result in results]),
    }


def texts(values: Sequence[str | None]) -> str:
    r"""
    Return the array literal of texts, quoted; each that is there again costs nothing more.

    >>> texts(["a", None, 'with " and \\', "a"])
    '{"a",NULL,"with \\" and \\\\","a"}'
    """
    quoted: dict[str | None, str] = {None: "NULL"}
    for value in set(values):
        if value is not None:
            escaped = value.replace("\\", "\\\\").replace('"', '\\"')
            quoted[value] = f'"{escaped}"'
    return "{" + ",".join([quoted[value] for value in values]) + "}"


def old_rows(results: Sequence[Result]) -> dict[str, Any]:
    """Return the columns of results of messages that the inbox knew; a follower that is run is not delivered once more."""
    known = [r.row.outcome for r in results if r.row is not None]
    return {
        **span([r.delivery.id for r in results]),
        "ids": uuids(r.delivery.id for r in results),
        "outcomes": [r.outcome.value for r in results],
        "attempts": literal(_recorded_attempt(r) for r in results),
        "more": literal(
            0 if r.again or was is Outcome.PARKED else 1 for r, was in zip(results, known, strict=True)
        ),
        "delays": literal(r.delay for r in results),
        "reasons": [r.reason for r in results],
        "errors": [r.error for r in results],
        "digests": literal(r.digest for r in results),
        "was": literal(was.value for was in known),
        "expected": literal(r.row.attempt for r in results if r.row is not None),
    }


def _recorded_attempt(result: Result) -> int:
    """Return what the inbox row says: of what is still to be run the attempt to come, else the one that was made."""
    if result.outcome is Outcome.PARKED:
        return 1 if result.row is None else result.row.attempt
    return result.attempt + 1 if result.outcome is Outcome.RETRY else result.attempt


def message_rows(results: Sequence[Result]) -> dict[str, Any]:
    """Return the columns of messages that are kept, byte for byte."""
    deliveries = [result.delivery for result in results]
    return {
        "ids": uuids(d.id for d in deliveries),
        "topic_ids": literal(d.origin.topic_id for d in deliveries),
        "partitions": literal(d.origin.partition for d in deliveries),
        "offsets": literal(d.origin.offset for d in deliveries),
        "epochs": literal(d.record.leader_epoch for d in deliveries),
        "timestamps": literal(d.record.timestamp_ms for d in deliveries),
        "keys": [d.record.key for d in deliveries],
        "payloads": [d.record.value for d in deliveries],
        "headers": [headers_text(original_headers(d)) for d in deliveries],
        "types": [d.type for d in deliveries],
        "tenants": [text_of(d.headers.get("tenant")) for d in deliveries],
        "hashes": literal(r.key for r in results),
    }


def quarantine_rows(results: Sequence[Result]) -> dict[str, Any]:
    """Return the columns of messages that stop."""
    return {
        **message_rows(results),
        "reasons": [r.reason for r in results],
        "errors": [r.error for r in results],
        "attempts": literal(r.attempt for r in results),
    }


def retry_rows(results: Sequence[Result]) -> dict[str, Any]:
    """Return the columns of messages that wait for another attempt."""
    return {
        **quarantine_rows(results),
        "attempts": literal(_recorded_attempt(r) for r in results),
        "tiers": [r.tier for r in results],
        "spent": literal(r.spent for r in results),
    }


def key_rows(results: Sequence[Result]) -> dict[str, Any]:
    """Return the columns of keys that are parked with these as their heads."""
    return {
        "hashes": literal(r.key for r in results),
        "keys": [r.delivery.record.key for r in results],
        "partitions": literal(r.delivery.origin.partition for r in results),
        "heads": uuids(r.delivery.id for r in results),
    }


def headers_text(headers: HeaderList) -> str:
    """Return headers as the JSON that keeps names, order and bytes."""
    return json.dumps(
        [[name, None if value is None else b64encode(value).decode()] for name, value in headers]
    )


def headers_of(text: str) -> HeaderList:
    """
    Return the headers that `headers_text` has written.

    >>> headers_of(headers_text((("id", b"1"), ("id", None))))
    (('id', b'1'), ('id', None))
    """
    return tuple((name, None if value is None else b64decode(value)) for name, value in json.loads(text))
