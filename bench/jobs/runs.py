"""How jobs are submitted and worked off: processes of the contestants, looked at from outside."""

import json
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from bench.jobs.contestants import Contestant
from bench.jobs.ground import Ground, Place
from bench.relay.probe import cpu_seconds, memory
from bench.relay.runs import Stuck

LOOK = 0.25
"""Seconds between two looks at how many jobs are finished."""
STUCK = 60.0
WARM = 0.1
"""Part of the jobs that is not counted."""
Child = subprocess.Popen[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Submitted:
    """
    What submitting showed.

    Attributes:
        rate: Jobs accepted a second, by all processes.
        cpu, database: Processor microseconds a job, of the submitting processes, of Postgres (or of the Redis-compatible server).
    """

    rate: float
    cpu: float
    database: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Drained:
    """
    What working off a backlog showed, without start and warm-up.

    Attributes:
        rate: Jobs finished a second.
        cpu, database, broker: Processor microseconds a job, of the workers (and the relay), of the database server, of the broker.
        memory: Highest resident memory of the workers, MiB.
    """

    rate: float
    cpu: float
    database: float
    broker: float
    memory: float


@dataclass(frozen=True, slots=True, kw_only=True)
class _Look:
    done: int
    cpu: float
    database: float
    broker: float


def submitted(
    ground: Ground, contestant: Contestant, place: Place, count: int, per: int, processes: int = 1
) -> Submitted:
    """Submit *count* jobs, *per* in a transaction, by so many processes at once."""
    each = count // processes
    command = [*contestant.submitter(), "submit", str(each), str(per)]
    with ExitStack() as stack:
        log = stack.enter_context((place.folder / "submit.log").open("w+"))
        children = [
            subprocess.Popen(
                command, env=contestant.environment(place), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log,
                text=True,
            )
            for _ in range(processes)
        ]  # fmt: skip
        if any(_line(child) != "ready\n" for child in children):
            log.seek(0)
            raise Stuck(f"{contestant.name} submits nothing\n{log.read()[-1_500:]}")
        ground.checkpoint()
        before = stores(ground)
        for child in children:
            assert child.stdin is not None
            child.stdin.write("go\n")
            child.stdin.flush()
        told = [json.loads(_line(child)) for child in children]
        after = stores(ground)
        for child in children:
            child.communicate(timeout=60)
    return Submitted(
        rate=each * processes / max(seconds for seconds, _ in told),
        cpu=sum(cpu for _, cpu in told) / (each * processes) * 1e6,
        database=(after - before) / (each * processes) * 1e6,
    )


def _line(child: Child) -> str:
    assert child.stdout is not None
    return child.stdout.readline()


def stores(ground: Ground) -> float:
    """Return the processor seconds so far of what holds jobs: Postgres and the Redis-compatible server."""
    return sum(
        cpu_seconds(ground.processes[name]) for name in ("postgres", "redis") if name in ground.processes
    )


@contextmanager
def working(
    ground: Ground,
    contestant: Contestant,
    place: Place,
    processes: int = 1,
    settings: Mapping[str, str] | None = None,
) -> Iterator[list[Child]]:
    """Run the contestant's workers, and what it has beside them, for the block; the workers come first."""
    environment = {**contestant.environment(place), **(settings or {})}
    children: list[Child] = []
    with (place.folder / "log").open("a+") as log:

        def start(command: Sequence[str]) -> None:
            children.append(subprocess.Popen(command, env=environment, stdout=log, stderr=log, text=True))

        try:
            for _ in range(processes):
                start(contestant.worker())
            contestant.stand(ground, place, processes)
            for command in contestant.beside():
                start(command)
            yield children
        except (Stuck, TimeoutError) as error:
            log.seek(0)
            raise Stuck(f"{contestant.name}: {error}\n{log.read()[-1_500:]}") from None
        finally:
            end(children)


def end(children: Sequence[Child]) -> None:
    """End processes: politely, and after ten seconds without mercy."""
    for child in children:
        child.send_signal(signal.SIGTERM)
    for child in children:
        try:
            child.wait(10)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()


def drained(ground: Ground, contestant: Contestant, place: Place, jobs: int, processes: int = 1) -> Drained:
    """Submit *jobs* while nobody works, then let the contestant's workers do them."""
    contestant.before(place)
    place = contestant.from_here(place)
    submitted(ground, contestant, place, jobs, 100)
    ground.checkpoint()
    with working(ground, contestant, place, processes) as children:
        course, highest = _watched(ground, contestant, place, children, jobs, processes)
    times = contestant.times(place)
    counted = times[int(len(times) * WARM) :]
    first = next(look for look in course if look.done >= jobs * WARM)
    last = next(look for look in course if look.done == course[-1].done)
    if first.done == last.done:  # all came between two looks
        first = next(look for look in reversed(course) if look.done < last.done)
    part = last.done - first.done
    return Drained(
        rate=(len(counted) - 1) / (counted[-1] - counted[0]),
        cpu=(last.cpu - first.cpu) / part * 1e6,
        database=(last.database - first.database) / part * 1e6,
        broker=(last.broker - first.broker) / part * 1e6,
        memory=highest,
    )


def _watched(
    ground: Ground,
    contestant: Contestant,
    place: Place,
    children: Sequence[Child],
    wanted: int,
    processes: int,
) -> tuple[list[_Look], float]:
    """
    Look until *wanted* jobs are finished; return the looks and the highest memory of the workers.

    Raises:
        Stuck: A process ended before, or nothing came for a minute.
    """
    course: list[_Look] = []
    grown = time.monotonic()
    while True:
        look = _Look(
            done=contestant.count(place), cpu=sum(cpu_seconds(child.pid) for child in children),
            database=stores(ground), broker=cpu_seconds(ground.processes["kafka"]),
        )  # fmt: skip
        if not course or look.done > course[-1].done:
            grown = time.monotonic()
        course.append(look)
        if look.done >= wanted:
            return course, sum(memory(child.pid) for child in children[:processes])
        if time.monotonic() - grown > STUCK:
            raise Stuck(f"{look.done} of {wanted} jobs finished, nothing more for {STUCK:g} s")
        if any(child.poll() is not None for child in children):
            raise Stuck(f"exit status {[child.poll() for child in children]}")
        time.sleep(LOOK)
