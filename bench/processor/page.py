"""Puts what was measured into docs/performance.md, between its marks, and the pictures beside it."""

import time
from collections.abc import Mapping, Sequence

from bench.processor.latency import Latency
from bench.processor.report import Throughputs, there
from bench.relay.page import machine, picture, put
from bench.relay.plot import Picture


def put_table(name: str, told: str, table: Sequence[str]) -> None:
    """Write a table between the marks of `processor-<name>`, with when, on what and how much above it."""
    put(f"processor-{name}", [f"*{time.strftime('%Y-%m-%d %H:%M')}; {machine()}; {told}.*", "", *table])


def put_backlog_picture(name: str, found: Throughputs, kind: str) -> None:
    """Draw the rates over a backlog."""
    each = {who: [run.rate for run in there(runs)] for who, runs in found.items()}
    bars = {who: values for who, values in each.items() if values}
    title = f"From a topic to results in Postgres: {kind}"
    picture(f"processor-{name}", Picture(title=title, unit="results a second", bars=bars, logarithmic=True))


def put_latency_pictures(found: Mapping[str, Sequence[Latency | None]]) -> None:
    """Draw the times at a fixed rate."""
    for part in ("p50", "p99"):
        each = {who: [float(getattr(run, part)) for run in there(runs)] for who, runs in found.items()}
        bars = {who: values for who, values in each.items() if values}
        title = f"From the send to the durable result, {part}"
        picture(
            f"processor-latency-{part}",
            Picture(title=title, unit="milliseconds", bars=bars, logarithmic=True),
        )
