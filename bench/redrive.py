"""
How fast redriven messages and parked keys go through the processor, and what live messages of the group feel of it.

    python -m bench.redrive [--messages 100000] [--rounds 3] [--pace 500] [--before FOLDER --before-messages 3000]

Each round: live messages alone; the same while all quarantined messages are redriven at once, by the console's statements put
set-wise; the same while as many parked keys, each with one follower, are woken. Every message has a key of its own. Counted is
from the commit of the order until the last outcome is written and the last key let go. `--before` names another working tree of the project,
which takes turns with this one. Judge by the ratios within a run, and on a quiet machine.
"""

import argparse
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple
from uuid import UUID

import psycopg
from bench.processor.contestants import Contestant, packhorse
from bench.processor.ground import Ground, Place, private_ground
from bench.processor.runs import running
from bench.processor.waiting import park, quarantine
from bench.processor.watcher import watched_results
from bench.relay.probe import cpu_seconds
from bench.relay.runs import Stuck
from bench.turns import rounds

ROOTS = ("", "cli", "console", "core", "local", "processor", "producer", "relay", "schemas")
LIVE, REDRIVE, WAKES = "live alone", "redrive", "wakes"
FIRST_LIVE = 10_000_000
STUCK = 1_800.0
LOOK = 0.2
PACED = 0.1

TOPIC_ID = """
SELECT topic_id FROM packhorse.watermark WHERE group_id = %(group)s AND topic = %(topic)s AND EXISTS (SELECT FROM result) LIMIT 1"""
QUARANTINED = "SELECT message_id FROM packhorse.quarantined_message WHERE group_id = %(group)s AND topic = %(topic)s AND state = 'quarantined'"
REDRIVEN = (
    """UPDATE packhorse.quarantined_message AS q SET state = 'redriven', redrives = q.redrives + 1, redrive_sent_at = NULL
WHERE q.group_id = %(group)s AND q.topic = %(topic)s AND q.message_id = ANY(%(members)s)""",
    """UPDATE packhorse.inbox AS i SET outcome = 'retry', attempt = i.attempt + 1, due_at = clock_timestamp(), changed_at = clock_timestamp()
WHERE i.group_id = %(group)s AND i.topic = %(topic)s AND i.message_id = ANY(%(members)s)""",
    """INSERT INTO packhorse.parked_key (group_id, topic, key_hash, key, partition, head_id, token)
SELECT q.group_id, q.topic, q.key_hash, q.key, q.partition, q.message_id, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint
FROM packhorse.quarantined_message AS q WHERE q.group_id = %(group)s AND q.topic = %(topic)s AND q.message_id = ANY(%(members)s)
ON CONFLICT DO NOTHING""",
)
"""What the console does of one message, of many."""
ASLEEP = "SELECT key_hash FROM packhorse.parked_key WHERE group_id = %(group)s AND topic = %(topic)s"
WOKEN = (
    """UPDATE packhorse.parked_key SET wake_at = clock_timestamp()
WHERE group_id = %(group)s AND topic = %(topic)s AND key_hash = ANY(%(members)s)""",
)
SLOWEST = """
SELECT calls, round(total_exec_time)::int, (mean_exec_time * 1000)::int, rows, substr(regexp_replace(query, '\\s+', ' ', 'g'), 1, 110)
FROM pg_stat_statements WHERE dbid = (SELECT oid FROM pg_database WHERE datname = current_database())
ORDER BY total_exec_time DESC LIMIT 25"""
OPEN = """
SELECT EXISTS (SELECT FROM packhorse.parked_key WHERE group_id = %(group)s)
    OR EXISTS (SELECT FROM packhorse.inbox WHERE group_id = %(group)s AND outcome NOT IN ('done', 'skipped'))"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """
    What one turn showed.

    Attributes:
        rate: Messages a second, order to end; 0 of live messages alone.
        p50, p99: Of live messages, milliseconds.
        cpu, database: Processor microseconds a message, of the process and of Postgres, live ones included.
    """

    rate: float
    p50: float
    p99: float
    cpu: float
    database: float


Fill = Callable[[Place, UUID, int], None]


class Way(NamedTuple):
    """How messages are put where they wait, what finds them there, and what lets those of a list go."""

    fill: Fill
    found: str
    orders: tuple[str, ...]


WAYS = {LIVE: None, REDRIVE: Way(quarantine, QUARANTINED, REDRIVEN), WAKES: Way(park, ASLEEP, WOKEN)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """How many messages go through, ordered *pace* a second (0: at once), and how many live ones come a second, in the least number of seconds."""

    messages: int
    rate: int
    seconds: float
    pace: int = 0
    statements: bool = False


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--messages", type=int, default=100_000, help="redriven, and woken [%(default)s]")
    add("--rounds", type=int, default=3, help="[%(default)s]")
    add("--pace", type=int, default=0, help="ordered a second; 0: all at once [%(default)s]")
    add("--rate", type=int, default=200, help="live messages a second; 0: none [%(default)s]")
    add("--seconds", type=float, default=15, help="of live messages alone [%(default)s]")
    add(
        "--mode", default="plain", help="how the handler writes: plain, pipelined, batch, async [%(default)s]"
    )
    add("--only", default=f"{LIVE},{REDRIVE},{WAKES}", help="[%(default)s]")
    add("--statements", action="store_true", help="print where the database's time went")
    add("--before", type=Path, help="another working tree, to compare with")
    add("--before-messages", type=int, default=3_000, help="it may be slow [%(default)s]")
    given = parser.parse_args()
    sizes = Sizes(
        messages=given.messages,
        rate=given.rate,
        seconds=given.seconds,
        pace=given.pace,
        statements=given.statements,
    )
    with private_ground() as ground:
        turns = _turns(ground, given.mode, sizes, given.only.split(","), {})
        if given.before is not None:
            path = ":".join(str(given.before / root) for root in ROOTS)
            few = replace(sizes, messages=given.before_messages, statements=False)
            others = _turns(ground, given.mode, few, given.only.split(","), {"PYTHONPATH": path})
            turns |= {f"{name}, before": run for name, run in others.items()}
        _print_ratios(rounds(list(turns), given.rounds, lambda name: turns[name](), _show))


def _turns(
    ground: Ground, mode: str, sizes: Sizes, only: list[str], settings: Mapping[str, str]
) -> dict[str, Callable[[], Found]]:
    contestant = packhorse("packhorse", mode, settings=settings)
    return {
        name: (lambda way=way: measured(ground, contestant, sizes, way))  # type: ignore[misc]
        for name, way in WAYS.items()
        if name in only
    }


def _show(found: Found) -> str:
    return f"{found.rate:>7,.0f}/s  live p50 {found.p50:6.1f} ms  p99 {found.p99:6.1f} ms  {found.cpu:6.0f} + {found.database:5.0f} µs"


def _print_ratios(found: Mapping[str, list[Found | None]]) -> None:
    """Print of each kind of work its rate, and how much longer live messages take beside it, round by round."""
    for name, turns in found.items():
        base = found.get(LIVE + name[len(name.partition(",")[0]) :], [])
        if name.startswith(LIVE):
            continue
        if not (rates := [turn.rate for turn in turns if turn]):
            continue
        print(f"{name}: {min(rates):,.0f} / {statistics.median(rates):,.0f} / {max(rates):,.0f} messages/s")
        p99s = [
            turn.p99 / alone.p99
            for turn, alone in zip(turns, base, strict=False)
            if turn and alone and alone.p99
        ]
        if p99s:
            print(f"  live p99 ÷ alone: {min(p99s):.2f} / {statistics.median(p99s):.2f} / {max(p99s):.2f}")
        if before := [turn.rate for turn in found.get(f"{name}, before", []) if turn]:
            print(f"  ÷ before: {statistics.median(rates) / statistics.median(before):.1f}")


def measured(ground: Ground, contestant: Contestant, sizes: Sizes, way: Way | None) -> Found:
    """Let *way*'s messages go through, beside live ones."""
    with ground.standing(ground.empty("avro")) as place:
        contestant.before(place)
        watched = watched_results(place) if sizes.rate else nullcontext(dict[int, float]())
        with watched as seen, running(contestant, place) as children:
            topic_id = _first_result(place)
            if way is not None:
                way.fill(place, topic_id, sizes.messages)
            ground.checkpoint()
            if sizes.statements:
                with psycopg.connect(place.database, autocommit=True) as connection:
                    connection.execute("CREATE EXTENSION IF NOT EXISTS pg_stat_statements")
                    connection.execute("SELECT pg_stat_statements_reset()")
            pids = children[0].pid, ground.processes["postgres"]
            with _live(place, sizes.rate) as live:
                time.sleep(2)
                cpu, began = [cpu_seconds(pid) for pid in pids], time.time()
                if way is None:
                    time.sleep(sizes.seconds)
                else:
                    began = _order(place, way, sizes.pace)
                    cpu = cpu if sizes.pace else [cpu_seconds(pid) for pid in pids]
                    _until_done(place, children[0])
                ended = time.time()
                cpu = [cpu_seconds(pid) - before for pid, before in zip(pids, cpu, strict=True)]
            sent = {n: at for n, at in live.items() if began <= at <= ended}
            if sizes.statements:
                _print_statements(place)
            until = time.monotonic() + 5
            while not sent.keys() <= seen.keys() and time.monotonic() < until:
                time.sleep(0.05)
            if unseen := sent.keys() - seen.keys():
                raise Stuck(f"{len(unseen)} of {len(sent)} live messages had no result")
            waits = sorted((seen[n] - at) * 1000 for n, at in sent.items()) or [0.0]
    count = len(sent) + (0 if way is None else sizes.messages)
    return Found(
        rate=0 if way is None else sizes.messages / (ended - began),
        p50=waits[len(waits) // 2], p99=waits[int(len(waits) * 0.99)],
        cpu=cpu[0] / max(count, 1) * 1e6, database=cpu[1] / max(count, 1) * 1e6,
    )  # fmt: skip


@contextmanager
def _live(place: Place, rate: int, *, first: int = FIRST_LIVE) -> Iterator[dict[int, float]]:
    """Send messages at a fixed rate while the block runs; gives, behind it, when each number was given to the client."""
    sent: dict[int, float] = {}
    if not rate:
        yield sent
        return
    numbers = [str(place.filled.schema_id), str(first), str(rate), str(STUCK)]
    command = [sys.executable, "-m", "bench.processor.children.writer", *numbers, "--until-told"]
    child = subprocess.Popen(
        command, env={**place.environment()}, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        yield sent
    finally:
        told = child.communicate(timeout=60)[0]
    sent |= dict(json.loads(told))


def _first_result(place: Place) -> UUID:
    """Wait until the processor works, and return the topic's id."""
    until, who = time.monotonic() + 60, {"group": place.group, "topic": place.topic}
    with _live(place, 10, first=0), psycopg.connect(place.database, autocommit=True) as connection:
        while (row := connection.execute(TOPIC_ID, who).fetchone()) is None:
            time.sleep(0.1)
            if time.monotonic() > until:
                raise Stuck("no result within 60 s")
    (found,) = row
    assert isinstance(found, UUID)
    return found


def _order(place: Place, way: Way, pace: int) -> float:
    """Give the orders, each portion in one transaction; return when the first was committed."""
    who: dict[str, object] = {"group": place.group, "topic": place.topic}
    with psycopg.connect(place.database) as connection:
        members = [found for (found,) in connection.execute(way.found.encode(), who)]
        connection.commit()
        if not members:
            raise Stuck("nothing waits to be ordered")
        portion, began = (max(1, round(pace * PACED)) if pace else len(members)), 0.0
        for first in range(0, len(members), portion):
            while began and (left := began + first / pace - time.time()) > 0:
                time.sleep(left)
            for order in way.orders:
                connection.execute(order.encode(), {**who, "members": members[first : first + portion]})
            connection.commit()
            began = began or time.time()
    return began


def _until_done(place: Place, child: "subprocess.Popen[str]") -> None:
    """Wait until no outcome is open and no key parked."""
    until = time.monotonic() + STUCK
    with psycopg.connect(place.database, autocommit=True) as connection:
        while connection.execute(OPEN, {"group": place.group}).fetchone() == (True,):
            if time.monotonic() > until or child.poll() is not None:
                raise Stuck(f"outcomes or keys are open; exit status {child.poll()}")
            time.sleep(LOOK)


def _print_statements(place: Place) -> None:
    """Print the statements that took most time: calls, ms in all, µs each, rows."""
    with psycopg.connect(place.database) as connection:
        for calls, total, mean, rows, text in connection.execute(SLOWEST.encode()):
            print(f"{calls:>8} calls {total:>7} ms {mean:>8} µs {rows:>8} rows  {text}")


if __name__ == "__main__":
    main()
