"""How long results stay away after `kill -9`, with another process started at once, as a supervisor does."""

import statistics
import time
from contextlib import ExitStack
from dataclasses import dataclass

import psycopg
from bench.processor.contestants import Contestant
from bench.processor.ground import Filled, Ground
from bench.processor.runs import end, start
from bench.relay.runs import Stuck

QUARTERS = "SELECT floor(extract(epoch FROM at) * 4)::bigint, count(*) FROM result GROUP BY 1"
COUNT = "SELECT count(*), count(DISTINCT n) FROM result"
FIRST_AFTER = "SELECT extract(epoch FROM min(at))::float8 FROM result WHERE at > to_timestamp(%s)"
BEFORE = 4.0
"""Seconds at full rate before the kill."""
WITHIN = 40.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Takeover:
    """
    Seconds after the kill.

    Attributes:
        first: Until a result of the next process.
        full: Until half a second has nine tenths of the median rate of before.
        before: Results a second before the kill.
        twice: Results that are there twice.
    """

    first: float
    full: float
    before: float
    twice: int


def takeover(ground: Ground, contestant: Contestant, filled: Filled) -> Takeover:
    """Kill the process in the middle of a backlog and start another."""
    with ground.standing(filled) as place, ExitStack() as stack:
        contestant.before(place)
        ground.checkpoint()
        log = stack.enter_context((place.folder / "log").open("w+"))
        connection = stack.enter_context(psycopg.connect(place.database, autocommit=True))
        first = start(contestant, place, log)
        try:
            _until_results(connection)
            time.sleep(BEFORE)
        finally:
            first.kill()
            killed = time.time()
            first.wait()
        second = start(contestant, place, log)
        try:
            _until_full(connection, killed, filled.records)
        finally:
            end([second])
        return _told(connection, killed)


def _until_results(connection: psycopg.Connection) -> None:
    until = time.monotonic() + WITHIN
    while not (connection.execute(COUNT).fetchone() or (0,))[0]:
        if time.monotonic() > until:
            raise Stuck("no results before the kill")
        time.sleep(0.05)


def _until_full(connection: psycopg.Connection, killed: float, records: int) -> None:
    """Wait until there was time for the full rate, or all is done."""
    while (connection.execute(FIRST_AFTER, [killed + 0.5]).fetchone() or (None,))[0] is None:
        if time.time() > killed + WITHIN:
            raise Stuck("no results after the kill")
        time.sleep(0.2)
    until = time.monotonic() + 5
    while time.monotonic() < until and (connection.execute(COUNT).fetchone() or (0, 0))[1] < records:
        time.sleep(0.2)


def _told(connection: psycopg.Connection, killed: float) -> Takeover:
    quarters: dict[int, int] = dict(connection.execute(QUARTERS).fetchall())
    moment = int(killed * 4)
    rate = statistics.median(quarters.get(moment - n, 0) * 4 for n in range(2, int(BEFORE * 4) - 2))
    # What the killed process had sent may still be done by its server process: nothing of the next comes so soon.
    came = (connection.execute(FIRST_AFTER, [killed + 0.5]).fetchone() or (None,))[0]
    full = next(
        (
            at for at in range(moment + 4, max(quarters) + 1)
            if (quarters.get(at, 0) + quarters.get(at + 1, 0)) * 2 >= 0.9 * rate
        ),
        None,
    )  # fmt: skip
    if came is None or full is None:
        raise Stuck(f"never again at 0.9 of {rate:,.0f} results/s")
    every, different = connection.execute(COUNT).fetchone() or (0, 0)
    return Takeover(first=came - killed, full=full / 4 - killed, before=rate, twice=every - different)
