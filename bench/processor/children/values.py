"""What every contestant but Packhorse needs: where it works, and how the number is read out of a payload."""

import io
import json
import os
from collections.abc import Callable, Iterable
from typing import Any

DATABASE = os.environ.get("PACKHORSE_DATABASE_URL", "")
SERVERS = os.environ.get("PACKHORSE_KAFKA_BOOTSTRAP_SERVERS", "")
TOPIC = os.environ.get("BENCH_TOPIC", "")
GROUP = os.environ.get("BENCH_GROUP", "")

INSERT_ONE = "INSERT INTO result (id, n) VALUES (%s, %s)"
INSERT_MANY = "INSERT INTO result (id, n) SELECT * FROM unnest(%s::uuid[], %s::bigint[])"


def number_reader() -> Callable[[bytes], Any]:
    """
    Return a function that gives the number in a payload.

    With Avro it decodes all fields by fastavro with the schema parsed once, the quickest way there is in Python;
    a fixed schema id is assumed, as somebody would who has one schema.
    """
    if os.environ.get("BENCH_FORM") == "bytes":
        return lambda value: int.from_bytes(value[5:13], "big")
    from fastavro import parse_schema, schemaless_reader

    schema = parse_schema(json.loads(os.environ["BENCH_SCHEMA"]))

    def read(value: bytes) -> Any:
        body = io.BytesIO(value)
        body.seek(5)
        found: Any = schemaless_reader(body, schema, None)
        return found["n"]

    return read


def id_of(headers: Iterable[tuple[str, bytes]]) -> str:
    """Return the header `id`, which a careful person looks for by name."""
    for name, value in headers:
        if name == "id":
            return value.decode()
    raise KeyError("id")
