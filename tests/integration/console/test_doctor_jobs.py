"""The doctor's look at jobs on a real database."""

from datetime import timedelta
from typing import Any

import psycopg
from tests.support.job_lives import TYPE, jobs, policy

from packhorse.console.doctor.postgres import DatabaseCheck

CHECKS = {"jobs", "uncertain jobs", "left jobs", "late jobs", "unhandled jobs", "job retention"}


def told(url: str) -> dict[str, str]:
    found = DatabaseCheck(url, schema="packhorse", timeout=20).findings()
    return {each.check: each.found for each in found if each.check in CHECKS}


def test_jobs_that_wait_for_somebody_are_counted_and_nothing_is_said_of_others(
    connection: psycopg.Connection[Any], database: str
) -> None:
    """Fails when a look asks the wrong state, or takes what is a moment old for late."""
    assert told(database) == {}
    for state in (
        "accepted",
        "running",
        "retrying",
        "succeeded",
        "quarantined",
        "discarded",
        "cancelled",
        "expired",
    ):
        jobs(connection, state)
    policy(connection)
    assert list(told(database)) == ["jobs"]
    jobs(connection, "uncertain", ago=timedelta(hours=3), count=2)
    (left,) = jobs(connection, "running", ago=timedelta(hours=1))
    connection.execute(
        "UPDATE packhorse.job SET lease_until = clock_timestamp() - interval '5 minutes' WHERE id = %s",
        (left,),
    )
    for minutes in (-1, 0, 5):
        (waits,) = jobs(connection, "accepted")
        connection.execute(
            "INSERT INTO packhorse.job_due (job_id, due_at, aggregatetype, type, schema_version)"
            " VALUES (%s, clock_timestamp() - %s, 'reports', %s, '1')",
            (waits, timedelta(minutes=minutes), TYPE),
        )
    for kind in ("b", "a", "b"):
        jobs(connection, "accepted", kind=kind)
    connection.execute(
        "INSERT INTO packhorse.job_retention (type, detail) VALUES ('', jsonb_build_object('at', clock_timestamp() - interval '3 days'))"
    )
    connection.execute(
        "INSERT INTO packhorse.processor_member (group_id, member, host, pid) VALUES ('g', gen_random_uuid(), 'h', 7)"
    )
    found = told(database)
    assert found == {
        "uncertain jobs": "2 jobs uncertain, the oldest for 3 h",
        "left jobs": "1 job running without a lease, the oldest for 5 min",
        "late jobs": "1 job not sent though their time has come, the oldest 5 min ago",
        "unhandled jobs": "jobs of the type a, b wait, and no processor has declared it here",
        "job retention": "it ran last 3 d ago, and a processor runs",
    }
