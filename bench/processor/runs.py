"""The measurement of a backlog: how fast results come, as the database tells it."""

import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

import psycopg
from bench.processor.contestants import Contestant, environment
from bench.processor.ground import Filled, Ground, Place
from bench.relay.probe import Sample, cpu_seconds, memory, window
from bench.relay.runs import Stuck

LOOK = 0.1
"""Seconds between two looks at the table."""
STUCK = 60.0
WARM = 0.1
"""Part of the results that is not counted."""

SIZE = "SELECT pg_relation_size('result')"
COUNT = "SELECT count(*), count(DISTINCT n) FROM result WHERE {rest}"
SPAN = """
SELECT count(*), extract(epoch FROM max(at) - min(at))::float8
  FROM (SELECT at FROM result WHERE {rest} ORDER BY at OFFSET %(warm)s LIMIT %(counted)s) AS counted
"""
"""Between the first and the last result that count, by the time at which the database put each row in."""
ALL = "true"
Rest = str | Callable[[Place], str]
"""Which results count: a condition, or what gives one when the processes run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Throughput:
    """
    What one run over a backlog showed, without start and warm-up.

    Attributes:
        rate: Results a second.
        cpu, database, broker: Processor microseconds a result, of the contestant's processes, of Postgres, of Kafka.
        memory: Highest resident memory of the contestant's processes, MiB.
        statements: Statements a thousand results.
        wal: Bytes of write-ahead log a result.
        twice: Results that are there twice.
    """

    rate: float
    cpu: float
    database: float
    broker: float
    memory: float
    statements: float
    wal: float
    twice: int


@contextmanager
def running(
    contestant: Contestant, place: Place, processes: int = 1
) -> Iterator[list["subprocess.Popen[str]"]]:
    """Run the contestant's processes for the block, then end them: politely, and after ten seconds without mercy."""
    with ExitStack() as stack:
        log = stack.enter_context((place.folder / "log").open("w+"))
        children = [start(contestant, place, log) for _ in range(processes)]
        try:
            yield children
        except Stuck as error:
            log.seek(0)
            raise Stuck(f"{contestant.name}: {error}\n{log.read()[-1_500:]}") from None
        finally:
            end(children)


def start(contestant: Contestant, place: Place, log: "subprocess._FILE") -> "subprocess.Popen[str]":
    """Start one process of the contestant."""
    return subprocess.Popen(
        contestant.command, env=environment(contestant, place), stdout=log, stderr=log, text=True
    )


def end(children: Sequence["subprocess.Popen[str]"]) -> None:
    """End them."""
    for child in children:
        child.send_signal(signal.SIGTERM)
    for child in children:
        try:
            child.wait(10)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()


def throughput(
    ground: Ground,
    contestant: Contestant,
    filled: Filled,
    *,
    rest: Rest = ALL,
    wanted: int = 0,
    processes: int = 1,
) -> Throughput:
    """Let the contestant work through a topic in a fresh database; *wanted* results of *rest* end it."""
    with ground.standing(filled) as place:
        contestant.before(place)
        return worked_through(
            ground, contestant, place, rest=rest, wanted=wanted or contestant.wanted(filled.records), processes=processes
        )  # fmt: skip


def worked_through(
    ground: Ground, contestant: Contestant, place: Place, *, rest: Rest, wanted: int, processes: int = 1
) -> Throughput:
    """Let the contestant work in *place* until there are *wanted* results of *rest*."""
    ground.checkpoint()
    before = ground.counters(place)
    with running(contestant, place, processes) as children:
        condition = rest if isinstance(rest, str) else rest(place)
        course = watched(ground, place, children, condition, wanted)
    after = ground.counters(place)
    with psycopg.connect(place.database) as connection:
        values = {"warm": int(wanted * WARM), "counted": wanted - int(wanted * WARM)}
        counted, seconds = connection.execute(
            SPAN.format(rest=condition.replace("%", "%%")).encode(), values
        ).fetchone() or (0, 0)
        every, different = connection.execute(COUNT.format(rest=ALL).encode()).fetchone() or (0, 0)
    first, last = window(course, WARM)
    part = (last.records - first.records) / course[-1].records * every
    return Throughput(
        rate=(counted - 1) / seconds,
        cpu=(last.cpu - first.cpu) / part * 1e6,
        database=(last.database - first.database) / part * 1e6,
        broker=(last.broker - first.broker) / part * 1e6,
        memory=max(sample.memory for sample in course),
        statements=(after.statements - before.statements) / every * 1e3,
        wal=(after.wal - before.wal) / every,
        twice=every - different,
    )


def watched(
    ground: Ground, place: Place, children: Sequence["subprocess.Popen[str]"], rest: str, wanted: int
) -> list[Sample]:
    """
    Look at the table's size, which costs the server nothing, and count when it rests, until there are *wanted* results.

    Returns:
        Samples whose `records` are bytes of the table.

    Raises:
        Stuck: A process ended before, or nothing came for a minute.
    """
    course: list[Sample] = []
    grown = time.monotonic()
    bytes_wanted = 0.0
    with psycopg.connect(place.database, autocommit=True) as connection:
        count = COUNT.partition(",")[0] + " FROM result WHERE " + rest
        while True:
            size = int((connection.execute(SIZE).fetchone() or (0,))[0])
            sample = Sample(
                at=time.monotonic(), records=size, cpu=sum(cpu_seconds(child.pid) for child in children),
                database=cpu_seconds(ground.processes["postgres"]), broker=cpu_seconds(ground.processes["kafka"]),
                memory=sum(memory(child.pid) for child in children),
            )  # fmt: skip
            rests = bool(course) and size == course[-1].records
            if not course or size > course[-1].records:
                grown = sample.at
            course.append(sample)
            if size and (rests or size >= bytes_wanted):
                found = int((connection.execute(count.encode()).fetchone() or (0,))[0])
                if found >= wanted:
                    return course
                # Rows are alike: so many bytes will be wanted, less a little so that the end is not missed.
                bytes_wanted = size / max(found, 1) * wanted * 0.99 if found else 0.0
                bytes_wanted = max(bytes_wanted, size + 1)
            if sample.at - grown > STUCK:
                raise Stuck(f"{size} bytes of results for {STUCK:g} s, {wanted} results wanted")
            if any(child.poll() is not None for child in children):
                raise Stuck(f"exit status {[child.poll() for child in children]}")
            time.sleep(LOOK)
