"""The two measurements: a backlog carried as fast as it goes, and rows carried at a fixed rate."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from bench.relay.carriers import Carrier
from bench.relay.ground import Counters, Ground, Place
from bench.relay.probe import Sample, TopicEnd, cpu_seconds, memory, window
from confluent_kafka import Consumer

LOOK = 0.04
"""Seconds between two looks at the topic."""
STILL = 0.5
"""A topic that has all rows and does not grow for so long is complete."""
STUCK = 90.0
WARM = 4.0
"""Seconds at the fixed rate that are not counted: Java compiles."""


class Stuck(RuntimeError):
    """A carrier ended or stood still before its work was done."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Throughput:
    """
    What one run over a backlog showed, without start and warm-up.

    Attributes:
        rate: Rows a second.
        cpu, database, broker: Processor seconds a million rows, of the carrier's processes, of Postgres, of Kafka.
        memory: Highest resident memory of the carrier's processes, MiB.
        statements: Statements a thousand rows; None where nobody counts them.
        wal: Bytes of write-ahead log a row, the backlog's own left out.
    """

    rate: float
    cpu: float
    database: float | None = None
    broker: float | None = None
    memory: float | None = None
    statements: float | None = None
    wal: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Latency:
    """
    From the commit's return to the record in a consumer's hands, in milliseconds; `core` is the part of one processor.

    Attributes:
        unseen: Rows committed and never seen.
    """

    p50: float
    p99: float
    p999: float
    core: float
    database: float
    memory: float
    rate: float
    unseen: int


@contextmanager
def running(carrier: Carrier, place: Place) -> Iterator[subprocess.Popen[str]]:
    """Run the carrier's process for the block, then end it: politely, and after ten seconds without mercy."""
    environment = {**os.environ, **place.environment(), **carrier.settings}
    log = (place.folder / "carrier.log").open("w+")
    # A pipe that nobody reads would stop a carrier that logs much.
    child = subprocess.Popen(carrier.command(place), env=environment, stdout=log, stderr=log, text=True)
    try:
        yield child
    except Stuck as error:
        log.seek(0)
        raise Stuck(f"{carrier.name}: {error}\n{log.read()[-800:]}") from None
    finally:
        child.send_signal(signal.SIGTERM)
        try:
            child.wait(10)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
        log.close()


def throughput(ground: Ground, carrier: Carrier, rows: int) -> Throughput:
    """Let the carrier carry a backlog of *rows* in a fresh database and topic."""
    with ground.place(rows) as place, ExitStack() as stack:
        carrier.table.prepare(place)
        carrier.before(place)
        stack.enter_context(carrier.condition(ground, place))
        if not carrier.live:
            carrier.table.backlog(ground, place, min(rows, carrier.stock or rows))
        before = ground.counters(place)
        with running(carrier, place) as child:
            if carrier.name == "fetching alone":
                return _told(child, place, rows)
            writer = None
            if carrier.live:
                wait_ready(carrier, place)
                before = ground.counters(place)
                writer = threading.Thread(target=carrier.table.backlog, args=(ground, place, rows))
                writer.start()
            course = watched(ground, place, child, rows)
            if writer is not None:
                writer.join()
        return _result(carrier, course, rows, before, ground.counters(place))


def _told(child: subprocess.Popen[str], place: Place, rows: int) -> Throughput:
    if child.wait(STUCK):
        raise Stuck(f"exit status {child.returncode}")
    seconds, cpu = (float(word) for word in (place.folder / "carrier.log").read_text().split()[-2:])
    return Throughput(rate=rows / seconds, cpu=cpu / rows * 1e6)


def _result(
    carrier: Carrier, course: list[Sample], rows: int, before: Counters, after: Counters
) -> Throughput:
    if course[0].records >= rows:
        raise Stuck("all was done before the first look; give it more rows")
    first, last = window(course, carrier.warm_part(rows))
    # Markers of transactions count as records: the part of the topic stands for the part of the rows.
    carried = (last.records - first.records) / course[-1].records * rows
    return Throughput(
        rate=carried / (last.at - first.at),
        cpu=(last.cpu - first.cpu) / carried * 1e6,
        database=(last.database - first.database) / carried * 1e6,
        broker=(last.broker - first.broker) / carried * 1e6,
        memory=max(sample.memory for sample in course),
        statements=(after.statements - before.statements) / rows * 1e3,
        wal=None if carrier.live or carrier.stock else (after.wal - before.wal) / rows,
    )


def watched(ground: Ground, place: Place, child: subprocess.Popen[str], rows: int) -> list[Sample]:
    """
    Look at the topic until it has *rows* records and rests.

    Raises:
        Stuck: The carrier ended before, or nothing came for 90 seconds.
    """
    end, grown = TopicEnd(place.servers, place.topic), time.monotonic()
    course: list[Sample] = []
    while True:
        records = end.records()
        sample = Sample(
            at=time.monotonic(), records=records, cpu=cpu_seconds(child.pid),
            database=cpu_seconds(ground.processes["postgres"]), broker=cpu_seconds(ground.processes["kafka"]),
            memory=memory(child.pid),
        )  # fmt: skip
        if not course or records > course[-1].records:
            grown = sample.at
        course.append(sample)
        if records >= rows and sample.at - grown > STILL:
            return course
        if sample.at - grown > STUCK or (child.poll() is not None and sample.at - grown > STILL):
            raise Stuck(f"{records} of {rows} records, exit status {child.poll()}")
        time.sleep(LOOK)


def wait_ready(carrier: Carrier, place: Place) -> None:
    """Wait until the carrier is in the state that is to be measured."""
    if carrier.ready is None:
        return
    until = time.monotonic() + 60
    while not carrier.ready(place):
        if time.monotonic() > until:
            raise Stuck("not ready within 60 s")
        time.sleep(0.1)


def latency(ground: Ground, carrier: Carrier, rate: int, seconds: float) -> Latency:
    """Let 16 writers commit *rate* rows a second, one a transaction, and look when each can be read."""
    with ground.place() as place, ExitStack() as stack:
        carrier.table.prepare(place)
        carrier.before(place)
        stack.enter_context(carrier.condition(ground, place))
        ground.checkpoint()
        with running(carrier, place) as child, _consumer(place) as seen:
            _first_record(carrier, place, child, seen)
            wait_ready(carrier, place)
            _write(carrier, place, rate, WARM)
            cpu, database, began = (
                cpu_seconds(child.pid),
                cpu_seconds(ground.processes["postgres"]),
                time.monotonic(),
            )
            committed = _write(carrier, place, rate, seconds)
            took_seconds = time.monotonic() - began
            cpu = cpu_seconds(child.pid) - cpu
            database = cpu_seconds(ground.processes["postgres"]) - database
            until = time.monotonic() + 5
            while not committed.keys() <= seen.keys() and time.monotonic() < until:
                time.sleep(0.05)
            most = memory(child.pid)
    took = sorted((seen[id_] - at) * 1000 for id_, at in committed.items() if id_ in seen)
    if not took:
        raise Stuck(f"{carrier.name}: none of {len(committed)} rows came")
    return Latency(
        p50=_at(took, 0.5), p99=_at(took, 0.99), p999=_at(took, 0.999), core=cpu / took_seconds,
        database=database / took_seconds, memory=most, rate=len(committed) / seconds, unseen=len(committed) - len(took),
    )  # fmt: skip


def _at(values: list[float], part: float) -> float:
    return values[min(int(len(values) * part), len(values) - 1)]


def _write(carrier: Carrier, place: Place, rate: int, seconds: float) -> dict[str, float]:
    command = [sys.executable, "-m", "bench.relay.writers", place.database, carrier.table.one(place)]
    done = subprocess.run(
        [*command, str(rate), str(seconds)], capture_output=True, text=True, check=True, timeout=seconds + 60
    )
    return dict(json.loads(done.stdout))


def _first_record(
    carrier: Carrier, place: Place, child: subprocess.Popen[str], seen: dict[str, float]
) -> None:
    """Write one row now and then until one has come: the carrier has started."""
    until = time.monotonic() + 60
    while not seen:
        _write(carrier, place, 16, 0.2)
        time.sleep(0.5)
        if time.monotonic() > until or child.poll() is not None:
            raise Stuck(f"no record within 60 s, exit status {child.poll()}")


@contextmanager
def _consumer(place: Place) -> Iterator[dict[str, float]]:
    """Read the topic in a thread of its own; gives each id, the payload's first 36 bytes, and when it was first seen."""
    seen: dict[str, float] = {}
    stop, ready = threading.Event(), threading.Event()

    def read() -> None:
        consumer = Consumer(
            {"bootstrap.servers": place.servers, "group.id": place.namespace, "auto.offset.reset": "earliest",
             "fetch.wait.max.ms": 100, "enable.auto.commit": False, "isolation.level": "read_committed"}
        )  # fmt: skip
        consumer.subscribe([place.topic], on_assign=lambda *_: ready.set())
        while not stop.is_set():
            message = consumer.poll(0.2)
            if message is not None and message.error() is None and (value := message.value()) is not None:
                seen.setdefault(value[:36].decode(), time.time())
        consumer.close()

    thread = threading.Thread(target=read, daemon=True)
    thread.start()
    ready.wait(30)
    try:
        yield seen
    finally:
        stop.set()
        with contextlib.suppress(RuntimeError):
            thread.join(10)
