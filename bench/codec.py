"""
Encoding and decoding of message classes against bare fastavro on dicts, in the same run.

    python -m bench.codec [--seconds 1.0]

Bare fastavro checks nothing and knows no classes; the ratio is the price of both.
"""

import argparse
import dataclasses
import datetime as dt
import json
import timeit
from collections.abc import Callable
from decimal import Decimal
from io import BytesIO
from typing import Any
from uuid import UUID

import fastavro
from tests.support import shop

from examples.flights.messages import FlightDeparted
from packhorse.schemas import Decoder, encode_message
from packhorse.schemas.binding import message_type

NOW = dt.datetime(2026, 1, 2, 3, 4, 5, 678_000, tzinfo=dt.UTC)
PRICE = shop.Money(amount=Decimal("9.90"), currency=shop.Currency.EUR)
MESSAGES: dict[str, Any] = {
    "FlightDeparted (flat)": FlightDeparted(
        flight_id="2013-01-01 UA 1545 EWR",
        tail_number="N14228",
        origin="EWR",
        destination="IAH",
        distance_miles=1400,
        departed_at=NOW,
        delay_minutes=2,
    ),
    "OrderPlaced (nested)": shop.OrderPlaced(
        order_id=UUID(int=7),
        email="anna@example",
        lines=tuple(shop.Line(sku=f"A-{n}", quantity=n, price=PRICE) for n in range(3)),
        placed_at=NOW,
        delivery=shop.Pickup(shop="Lund"),
        labels={"a": "b"},
    ),
}


class Own:
    """A source that knows the schema of one class."""

    def __init__(self, cls: type) -> None:
        self._text = message_type(cls).schema

    def schema_of(self, schema_id: int) -> str:
        del schema_id
        return self._text


def plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value):
        return {
            item.name.removesuffix("_"): plain(getattr(value, item.name))
            for item in dataclasses.fields(value)
        }
    return [plain(item) for item in value] if isinstance(value, tuple) else value


def rates(calls: list[Callable[[], object]], seconds: float) -> list[float]:
    """Return the calls a second of each: the best of ten runs, which take turns so that a busy moment hits all alike."""
    timers = [timeit.Timer(call) for call in calls]
    number = max(1, int(seconds / 10 / (max(timer.timeit(200) for timer in timers) / 200)))
    runs = [[timer.timeit(number) for timer in timers] for _ in range(10)]
    return [number / min(run[index] for run in runs) for index in range(len(timers))]


def bare_encoder(schema: Any, value: Any) -> Callable[[], bytes]:
    def encode() -> bytes:
        buffer = BytesIO()
        fastavro.schemaless_writer(buffer, schema, value)
        return buffer.getvalue()

    return encode


def measure(name: str, message: Any, seconds: float) -> None:
    cls = type(message)
    schema = fastavro.parse_schema(json.loads(message_type(cls).schema))
    payload = encode_message(message, 7)
    body, decoder = payload[5:], Decoder(Own(cls))
    assert decoder.decode(payload, cls) == message
    bare = bare_encoder(schema, plain(message))
    assert bare() == body
    calls: dict[str, list[Callable[[], object]]] = {
        "encode": [lambda: encode_message(message, 7), bare],
        "decode": [
            lambda: decoder.decode(payload, cls),
            lambda: fastavro.schemaless_reader(BytesIO(body), schema, None),
        ],
    }
    for what, pair in calls.items():
        ours, theirs = rates(pair, seconds)
        print(
            f"{name:22} {len(payload):4} bytes  {what}  {ours:9,.0f}/s  bare {theirs:9,.0f}/s  ratio {ours / theirs:.2f}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=1.0, help="for each measurement")
    seconds = parser.parse_args().seconds
    for name, message in MESSAGES.items():
        measure(name, message, seconds)


if __name__ == "__main__":
    main()
