"""Conditions that make queue tables slow (an old snapshot, an open writer, bloat), and very long backlogs."""

import itertools
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import psycopg
from bench.relay.carriers import CARRIERS, POLLING, Carrier
from bench.relay.ground import Ground, Place
from bench.relay.probe import Sample, window
from bench.relay.runs import running, watched
from bench.relay.tables import OUTBOX

BLOAT = 500_000
MILLION = 1_000_000


@contextmanager
def pinned_snapshot(ground: Ground, place: Place) -> Iterator[None]:
    """Hold a snapshot from before the first row: no dead row can be removed meanwhile."""
    del ground
    with psycopg.connect(place.database) as connection:
        connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        connection.execute("SELECT count(*) FROM packhorse.relay")
        yield


@contextmanager
def open_writer(ground: Ground, place: Place) -> Iterator[None]:
    """Keep a transaction open that has written a row before all others, as a batch job does for an hour."""
    del ground
    with psycopg.connect(place.database) as connection:
        values = {"id": "00000000-0000-7000-8000-000000000000", "key": "late", "payload": b"late"}
        connection.execute(OUTBOX.one(place).encode(), values)
        yield
        connection.rollback()


@contextmanager
def bloated(ground: Ground, place: Place) -> Iterator[None]:
    """Leave half a million published rows and as many dead ones in the table and its indexes, and let no vacuum take them."""
    OUTBOX.backlog(ground, place, BLOAT)
    with pinned_snapshot(ground, place), psycopg.connect(place.database) as connection:
        connection.execute(OUTBOX.fill.format(first=1, last=BLOAT).encode())
        connection.rollback()
        connection.execute("UPDATE packhorse.relay SET horizon = pg_current_snapshot()")
        connection.commit()
        yield


def conditions() -> list[Carrier]:
    """Return polling, and the loop by hand, under each condition."""
    by_name = {carrier.name: carrier for carrier in CARRIERS}
    relay, loop = by_name[POLLING], replace(by_name["loop 1,000"], latency=False)
    return [
        relay,
        replace(relay, name="packhorse, old snapshot", condition=pinned_snapshot),
        replace(relay, name="packhorse, open writer", condition=open_writer),
        replace(relay, name="packhorse, bloated", condition=bloated),
        loop,
        replace(loop, name="loop, old snapshot", condition=pinned_snapshot),
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """
    A part of a long backlog.

    Attributes:
        rows: Carried when it ended.
        rate, cpu, database: Rows a second, and processor seconds a million rows, within it.
        memory: Highest so far, MiB.
    """

    rows: int
    rate: float
    cpu: float
    database: float
    memory: float


def stages(course: Sequence[Sample], size: int) -> list[Stage]:
    """Cut a run into parts of about *size* rows each."""
    total = course[-1].records
    marks = [next(s for s in course if s.records >= at) for at in range(size, total + 1, size)]
    first = next((s for s in reversed(course) if s.records == 0), course[0])
    found = []
    for before, after in itertools.pairwise([first, *marks]):
        if (rows := after.records - before.records) > 0:
            found.append(
                Stage(
                    rows=after.records, rate=rows / (after.at - before.at), memory=after.memory,
                    cpu=(after.cpu - before.cpu) / rows * 1e6, database=(after.database - before.database) / rows * 1e6,
                )
            )  # fmt: skip
    return found


def long_backlog(ground: Ground, rows: int) -> tuple[list[Stage], dict[int, tuple[float, float]]]:
    """
    Carry backlogs of 10⁴ rows and ten times more up to *rows*.

    Returns:
        The largest in parts of a million rows, and (microseconds, own processor microseconds) a row for each size.
    """
    relay = next(carrier for carrier in CARRIERS if carrier.name == POLLING)
    sizes = [10**power for power in range(4, 9) if 10**power < rows] + [rows]
    costs: dict[int, tuple[float, float]] = {}
    course: list[Sample] = []
    for size in sizes:
        course = _carried(ground, relay, size)
        first, last = window(course, 0.0)
        first = next((s for s in reversed(course) if s.records == 0), first)
        costs[size] = (last.at - first.at) / size * 1e6, (last.cpu - first.cpu) / size * 1e6
        print(
            f"  {size:>12,} rows: {costs[size][0]:6.2f} µs a row, {costs[size][1]:6.2f} µs of the relay's processor time",
            flush=True,
        )
    parts = stages(course, max(rows // 10, 1) if rows < 10 * MILLION else MILLION)
    for part in parts:
        print(
            f"  to {part.rows:>12,}: {part.rate:>9,.0f} rows/s  {part.cpu:5.2f} + {part.database:5.2f} CPU s/M  {part.memory:6.0f} MiB",
            flush=True,
        )
    return parts, costs


def _carried(ground: Ground, relay: Carrier, rows: int) -> list[Sample]:
    with ground.place(rows) as place:
        OUTBOX.backlog(ground, place, rows)
        with running(relay, place) as child:
            return watched(ground, place, child, rows)
