"""The same on empty tables and on tables full of jobs that have ended."""

import argparse
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import psycopg
from bench.jobs.contestants import CONTESTANTS, DEFAULT, QUICK
from bench.jobs.ground import Ground, Place
from bench.jobs.runs import drained, submitted
from bench.jobs.starting import started

FILL = """
SET session_replication_role = replica;
SET synchronous_commit = off;
INSERT INTO packhorse.job (id, type, version, topic, group_id, state, attempt, input, changed_by, accepted_at, changed_at, started_at,
    finished_at)
SELECT uuidv7(-(interval '20 days' * (1 - n / {jobs}.0) + interval '1 hour')), 'bench.Work', 1, 'earlier.work', 'earlier', 'succeeded', 1,
    '\\x0000000001ff'::bytea, 'worker', at, at, at, at
  FROM generate_series(1, {jobs}) AS n,
       LATERAL (SELECT now() - (interval '20 days' * (1 - n / {jobs}.0) + interval '1 hour') AS at) AS t;
INSERT INTO packhorse.job_transition (job_id, at, before, after, actor, attempt)
SELECT j.id, j.changed_at, s.before, s.after, 'worker', 1
  FROM packhorse.job AS j, (VALUES (NULL, 'accepted'), ('accepted', 'running'), ('running', 'succeeded')) AS s (before, after);
"""
INBOX = """
INSERT INTO packhorse.inbox (group_id, topic, message_id, outcome, attempt, partition, "offset", type)
SELECT 'earlier', 'earlier.work', uuidv7(-(interval '20 hours' * n / {jobs})), 'done', 1, n % 6, n, 'bench.Work'
  FROM generate_series(1, {jobs}) AS n"""


def fill(ground: Ground, database: str, jobs: int) -> None:
    """Put so many succeeded jobs into a database, with their changes of state and their messages in the inbox."""
    with psycopg.connect(database, autocommit=True) as connection:
        for statement in (FILL, INBOX):
            connection.execute(statement.format(jobs=jobs).encode())
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("VACUUM ANALYZE packhorse.job")
        connection.execute("VACUUM ANALYZE packhorse.job_transition")
        connection.execute("VACUUM ANALYZE packhorse.inbox")
    ground.checkpoint()


EMPTY = "empty tables"


@dataclass(frozen=True, slots=True, kw_only=True)
class Aged:
    """
    What is measured on empty and on full tables.

    Attributes:
        name: For the table.
        work: Measures it once.
        value: What of a run counts; more of it is slower.
        unit, form: How it is shown.
    """

    name: str
    work: Callable[[Place], Any]
    value: Callable[[Any], float]
    unit: str = "µs a job"
    form: str = "{:,.0f}"


def _slowness(run: Any) -> float:
    return 1e6 / float(run.rate)


def _lines(ground: Ground, given: argparse.Namespace) -> Sequence[Aged]:
    quick, default = (next(one for one in CONTESTANTS if one.name == name) for name in (QUICK, DEFAULT))
    return (
        Aged(
            name="submit, one transaction each", value=_slowness,
            work=lambda place: submitted(ground, default, place, given.one, 1),
        ),
        Aged(
            name="submit, 100 a transaction", value=_slowness,
            work=lambda place: submitted(ground, default, place, given.jobs, 100),
        ),
        Aged(name="drain, quick", value=_slowness, work=lambda place: drained(ground, quick, place, given.jobs)),
        Aged(name="drain", value=_slowness, work=lambda place: drained(ground, default, place, given.jobs // 10)),
        Aged(
            name="start, p50", value=lambda run: float(run.p50), unit="ms", form="{:.1f}",
            work=lambda place: started(ground, default, place, given.rate, given.seconds / 2),
        ),
    )  # fmt: skip


def _run(ground: Ground, line: Aged, template: str) -> Any:
    with ground.standing(template) as place:
        return line.work(place)


@contextmanager
def both(
    ground: Ground, given: argparse.Namespace, full: str
) -> Iterator[tuple[Sequence[Aged], Mapping[str, Callable[[], Any]]]]:
    """Give what is measured, and its runs by name, each on a fresh copy of empty or of full tables; these end with *full*."""
    filled = ground.template(
        "filled", lambda database: fill(ground, database, given.finished), like="packhorse"
    )
    lines = _lines(ground, given)
    yield (
        lines,
        {
            f"{line.name}, {end}": partial(_run, ground, line, template)
            for line in lines
            for end, template in ((EMPTY, ""), (full, filled))
        },
    )
