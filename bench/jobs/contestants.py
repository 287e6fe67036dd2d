"""Who is measured: how each one's jobs are submitted, run and counted, and why one may be missing."""

import json
import os
import subprocess
import sys
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import psycopg
from bench.jobs import peers, redis
from bench.jobs.ground import Ground, Place, checked

from packhorse.core.clock import SYSTEM_CHANCE, SYSTEM_CLOCK

CHILDREN = Path(__file__).parent / "children"
PACKHORSE = [sys.executable, "-m", "packhorse.cli.main"]
APP = "bench.jobs.children.app:app"
SUBMITTER = [sys.executable, "-m", "bench.jobs.children.submitter"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Contestant:
    """
    One way from a submitted job to a finished one.

    Attributes:
        settings: On top of the place's own variables.
        share: Part of the asked jobs that it gets: the slow ones need fewer for a rate.
        keeps: What it keeps of a job, for the table.
    """

    name: str
    settings: Mapping[str, str] = field(default_factory=dict)
    share: float = 1.0
    keeps: str = ""

    def environment(self, place: Place) -> dict[str, str]:
        """Return the environment of its processes."""
        return {**os.environ, **place.environment(), **self.settings}

    @contextmanager
    def standing(self, ground: Ground) -> Iterator[Place]:
        """Provide a fresh place with its tables."""
        with ground.standing() as place:
            yield place

    def from_here(self, place: Place) -> Place:
        """Return the place as one in which only jobs count that are submitted from now on."""
        return place

    def before(self, place: Place, settings: Mapping[str, str] | None = None) -> None:
        """Make what its workers need beside tables."""

    def stand(self, ground: Ground, place: Place, workers: int) -> None:
        """Wait until its workers stand, where they take long to share their work out."""

    def beside(self) -> list[Sequence[str]]:
        """Return the commands that run once, beside its workers, and start when these stand."""
        return []

    def missing(self) -> str | None:
        """Say why it can't run here, or None."""
        return None

    @abstractmethod
    def worker(self) -> Sequence[str]:
        """Return the command of one worker; it goes on until SIGTERM."""

    @abstractmethod
    def submitter(self) -> Sequence[str]:
        """Return the command that submits, as `children/talk.py` says."""

    @abstractmethod
    def count(self, place: Place) -> int:
        """Return how many jobs are finished, by its own records."""

    @abstractmethod
    def times(self, place: Place) -> list[float]:
        """Return when each was finished, by its own records, in order; seconds since the epoch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _InPostgres(Contestant):
    """One whose jobs are rows: `finished` is the condition, `at` the epoch of the end."""

    table: str
    finished: str
    at: str

    def count(self, place: Place) -> int:
        with psycopg.connect(place.database) as connection:
            query = f"SELECT count(*) FROM {self.table} WHERE {self.finished.format(since=place.since)}"
            return int((connection.execute(query.encode()).fetchone() or (0,))[0])

    def times(self, place: Place) -> list[float]:
        with psycopg.connect(place.database) as connection:
            query = f"SELECT ({self.at})::float8 FROM {self.table} WHERE {self.finished.format(since=place.since)} ORDER BY 1"
            return [row[0] for row in connection.execute(query.encode())]


@dataclass(frozen=True, slots=True, kw_only=True)
class Packhorse(_InPostgres):
    """Relay and processor with default settings."""

    table: str = "packhorse.job"
    finished: str = "id >= '{since}' AND state = 'succeeded'"
    at: str = "extract(epoch FROM finished_at)"
    keeps: str = "job, each change of state, inbox; one end a job"

    def from_here(self, place: Place) -> Place:
        return replace(place, since=str(SYSTEM_CHANCE.message_id(SYSTEM_CLOCK.now())))

    def before(self, place: Place, settings: Mapping[str, str] | None = None) -> None:
        checked([*PACKHORSE, "topics", "apply", APP], {**self.environment(place), **(settings or {})})

    def stand(self, ground: Ground, place: Place, workers: int) -> None:
        ground.at_rest(place.namespace, workers)

    def beside(self) -> list[Sequence[str]]:
        return [[sys.executable, "-m", "packhorse.relay", "run"]]

    def worker(self) -> Sequence[str]:
        return [*PACKHORSE, "processor", "run", APP]

    def submitter(self) -> Sequence[str]:
        return [*SUBMITTER, "packhorse"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ByHand(Packhorse):
    """The same rows written by hand; nobody works them off."""

    way: str
    keeps: str = "the same rows"

    def submitter(self) -> Sequence[str]:
        return [*SUBMITTER, self.way]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Peer(_InPostgres):
    """Another library on the same database server, in an environment of its own."""

    script: str
    package: str

    @contextmanager
    def standing(self, ground: Ground) -> Iterator[Place]:
        def prepare(database: str) -> None:
            checked([*self._script(), "prepare"], {**os.environ, "BENCH_DATABASE": database})

        with ground.standing(ground.template(self.package, prepare)) as place:
            yield place

    def missing(self) -> str | None:
        return peers.missing(self.package)

    def worker(self) -> Sequence[str]:
        return [*self._script(), "worker"]

    def submitter(self) -> Sequence[str]:
        return self._script()

    def _script(self) -> list[str]:
        return [str(peers.python(self.package)), str(CHILDREN / self.script)]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Celery(Contestant):
    """Celery on a server that speaks Redis."""

    keeps: str = "message and result in Redis, up to a second of them lost; no history"

    def missing(self) -> str | None:
        return redis.missing()

    def worker(self) -> Sequence[str]:
        return [*self._script(), "worker"]

    def submitter(self) -> Sequence[str]:
        return self._script()

    def count(self, place: Place) -> int:
        return int(redis.ask(redis.results(place.redis), "DBSIZE")[1:])

    def times(self, place: Place) -> list[float]:
        done = subprocess.run(
            [*self._script(), "finished"],
            env=self.environment(place),
            capture_output=True,
            text=True,
            check=True,
        )
        return [float(at) for at in json.loads(done.stdout)]

    def _script(self) -> list[str]:
        return [str(peers.python("celery")), str(CHILDREN / "celery_app.py")]


QUICK, DEFAULT = "packhorse quick", "packhorse"
PROCRASTINATE, DBOS, CELERY, SOLO = "procrastinate", "dbos", "celery", "celery solo"
HAND, STATEMENT = "by hand", "by hand, one statement"

CONTESTANTS: tuple[Contestant, ...] = (
    Packhorse(name=QUICK, settings={"BENCH_QUICK": "1"}),
    Packhorse(name=DEFAULT, share=0.1),
    _Peer(
        name=PROCRASTINATE, script="procrastinate_app.py", package="procrastinate", share=0.05,
        table="procrastinate_events", finished="type = 'succeeded'", at="extract(epoch FROM at)",
        keeps="job, each change of state; at least once",
    ),
    _Peer(
        name=DBOS, script="dbos_app.py", package="dbos", share=0.05, table="dbos.workflow_status",
        finished="status = 'SUCCESS'", at="completed_at / 1000.0", keeps="workflow with its last state; at least once",
    ),
    _Celery(name=CELERY, share=0.1),
    _Celery(name=SOLO, share=0.1, settings={"BENCH_POOL": "solo", "BENCH_CONCURRENCY": "1"}),
)  # fmt: skip

SUBMITTING: tuple[Contestant, ...] = (
    Packhorse(name=DEFAULT),
    ByHand(name=HAND, way="hand"),
    ByHand(name=STATEMENT, way="statement"),
    *(one for one in CONTESTANTS if one.name in {PROCRASTINATE, DBOS, CELERY}),
)
