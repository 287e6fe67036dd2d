"""Changes of a job that follow its message name the person who acted on the message."""

from typing import Any
from uuid import UUID

import psycopg
import pytest
from tests.support.console_rows import one
from tests.support.job_rows import stopped

from packhorse.console.acting.postgres import Database
from packhorse.console.redriving.shell import ask
from packhorse.console.service import Service

LAST = (
    "SELECT after || ' by ' || actor FROM packhorse.job_transition WHERE job_id = %s ORDER BY id DESC LIMIT 1"
)


def last(connection: psycopg.Connection[Any], job_id: UUID) -> str:
    return str(one(connection, LAST, job_id))


@pytest.mark.case("X-02")
def test_what_a_person_does_with_the_message_of_a_job_is_that_persons_change_of_the_job(
    service: Service, connection: psycopg.Connection[Any]
) -> None:
    """Fails when the acting transaction does not say who acts: a worker would be named."""
    job_id = stopped(connection)
    assert last(connection, job_id) == "quarantined by worker"
    actor = service.people.actor()
    service.quarantine.discard(
        service.quarantine.preview(job_id, group=None, topic=None, act="discard").order, why="x"
    )
    assert last(connection, job_id) == f"discarded by {actor}"
    preview = service.restoring.preview(job_id)
    service.restoring.restore(preview, why="x", out_of_order=True)
    assert last(connection, job_id) == f"quarantined by {actor}"
    service.quarantine.redrive(service.quarantine.preview(job_id, group=None, topic=None).order, why="x")
    assert last(connection, job_id) == f"retrying by {actor}"


def test_a_redrive_of_a_set_is_the_change_of_who_confirmed_it(
    tables: Database, connection: psycopg.Connection[Any]
) -> None:
    """Fails when a runner's portion names nobody: whoever let it run was not a worker."""
    job_id = stopped(connection)
    redrive = one(
        connection,
        "INSERT INTO packhorse.redrive (state, wanted, members, rate, stages, most_failures, previewed_by, expires_at,"
        " confirmed_by, confirmed_at, why) VALUES ('running', '{}', 1, 100, '{1}', 0, 'ann', now() + interval '1 hour',"
        " 'bob (role ops)', now(), 'x') RETURNING id",
    )
    connection.execute(
        'INSERT INTO packhorse.redrive_member (redrive_id, ordinal, group_id, topic, message_id, partition, "offset",'
        ' attempt, redrives, quarantined_at) SELECT %s, 1, group_id, topic, message_id, partition, "offset", attempts,'
        " redrives, quarantined_at FROM packhorse.quarantined_message WHERE message_id = %s",
        (redrive, job_id),
    )
    with tables.working() as rows:
        assert ask(rows, redrive, stage=1, count=1) == (1, 0)
    assert last(connection, job_id) == "retrying by bob (role ops)"
