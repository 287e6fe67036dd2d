# mypy: ignore-errors
"""
Submits Packhorse's jobs, or writes the same rows by hand: `python -m bench.jobs.children.submitter packhorse|hand|statement WAY …`.

*hand* writes a job's row, its message and its first transition by three statements, as a careful person would: prepared, in a
pipeline; *statement* by one. Its tables of jobs and transitions are copies of Packhorse's without triggers.
"""

import json
import os
import sys

import psycopg
from bench.jobs.children.talk import serve
from bench.jobs.messages import work

from packhorse.core.clock import SYSTEM_CHANCE, SYSTEM_CLOCK
from packhorse.producer import JobDraft, Outbox
from packhorse.producer.jobs.messages import JobReference
from packhorse.schemas.codec import encode_message

DATABASE, NAMESPACE = os.environ["BENCH_DATABASE"], os.environ["BENCH_NAMESPACE"]
IDS = json.loads(os.environ["BENCH_SCHEMA_IDS"])
Work = work(NAMESPACE, os.environ.get("BENCH_TYPE", "work"))
KIND = Work.__packhorse__

JOB = """
INSERT INTO hand_job (id, type, version, topic, input, origin, changed_by) VALUES (%s, %s, %s, %s, %s, 'bench', 'bench')"""
OUTBOX = """
INSERT INTO packhorse.outbox (id, aggregatetype, type, schema_version, payload, origin) VALUES (%s, %s, %s, %s, %s, 'bench')"""
TRANSITION = """
INSERT INTO hand_job_transition (job_id, after, actor, attempt) VALUES (%s, 'accepted', 'bench', 0)"""
ONE = """
WITH i AS (SELECT * FROM unnest(%s::uuid[], %s::bytea[], %s::bytea[]) AS i (id, input, payload)
), job AS (
    INSERT INTO hand_job (id, type, version, topic, input, origin, changed_by)
    SELECT i.id, %s, %s, %s, i.input, 'bench', 'bench' FROM i
), moved AS (
    INSERT INTO hand_job_transition (job_id, after, actor, attempt) SELECT i.id, 'accepted', 'bench', 0 FROM i
)
INSERT INTO packhorse.outbox (id, aggregatetype, type, schema_version, payload, origin)
SELECT i.id, %s, %s, %s, i.payload, 'bench' FROM i"""


def values(n):
    """Return what both ways by hand write: id, input, payload."""
    job_id = SYSTEM_CHANCE.message_id(SYSTEM_CLOCK.now())
    reference = JobReference(id=str(job_id), type=KIND.type, version=KIND.version)
    return job_id, encode_message(Work(n=n), IDS["input"]), encode_message(reference, IDS["reference"])


def by_hand(connection):
    """Return what writes by three statements."""

    def submit(numbers):
        rows = [values(n) for n in numbers]
        jobs = [(i, KIND.type, KIND.version, KIND.topic, given) for i, given, _ in rows]
        messages = [(i, KIND.aggregatetype, KIND.type, str(KIND.version), payload) for i, _, payload in rows]
        with connection.transaction(), connection.cursor() as cursor:
            if len(rows) == 1:
                cursor.execute(JOB, jobs[0])
                cursor.execute(OUTBOX, messages[0])
                cursor.execute(TRANSITION, (rows[0][0],))
            else:
                cursor.executemany(JOB, jobs)
                cursor.executemany(OUTBOX, messages)
                cursor.executemany(TRANSITION, [(i,) for i, _, _ in rows])

    return submit


def by_statement(connection):
    """Return what writes by one statement."""

    def submit(numbers):
        ids, inputs, payloads = zip(*map(values, numbers), strict=True)
        told = (KIND.type, KIND.version, KIND.topic, KIND.aggregatetype, KIND.type, str(KIND.version))
        with connection.transaction():
            connection.execute(ONE, (list(ids), list(inputs), list(payloads), *told))

    return submit


def packhorse(connection):
    """Return what submits."""
    outbox = Outbox(origin="bench")

    def submit(numbers):
        with connection.transaction():
            if len(numbers) == 1:
                outbox.submit(connection, Work(n=numbers[0]))
            else:
                outbox.submit_many(connection, [JobDraft(input=Work(n=n)) for n in numbers])

    return submit


if __name__ == "__main__":
    ways = {"packhorse": packhorse, "hand": by_hand, "statement": by_statement}
    with psycopg.connect(DATABASE, autocommit=True) as connection:
        serve(ways[sys.argv[1]](connection), sys.argv[2:])
