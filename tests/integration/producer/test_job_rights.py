"""A role with exactly the grants of a writer, and jobs: what it can do, and what it can't."""

from datetime import timedelta

import psycopg
import pytest
from psycopg import errors as pg
from tests.support.accounts import AmountMoved
from tests.support.roles import Roles

from packhorse.core.clock import SYSTEM_CLOCK
from packhorse.producer import Jobs, Outbox
from packhorse.testing import register_for_tests

OUTBOX = Outbox(origin="bank")
MOVED = AmountMoved(account="a", amount=5)


def test_a_writer_needs_no_more_than_its_grants_and_can_do_no_more(database: str, roles: Roles) -> None:
    """Fails when a grant is missing, or wide enough to say that a job was done, or to read what others' jobs are about."""
    role = roles.make("writer")
    with psycopg.connect(database) as owner:
        register_for_tests(owner, AmountMoved)
    with psycopg.connect(roles.url(role)) as writer, Jobs(roles.url(role)) as jobs:
        later = SYSTEM_CLOCK.now() + timedelta(hours=1)
        first = OUTBOX.submit(writer, MOVED, request_key="k", one_waiting="w", not_before=later)
        assert OUTBOX.submit(writer, MOVED, one_waiting="w", request_key="l").id == first.id
        plain = OUTBOX.submit(writer, MOVED)
        OUTBOX.cancel(writer, plain.id)
        OUTBOX.cancel(writer, first.id)
        writer.commit()
        assert jobs.get(first.id).state == "cancelled"
        assert len(jobs.history(first.id)) == 2
        assert jobs.effects(first.id) == []
        for statement in (
            "UPDATE packhorse.job SET state = 'succeeded'",
            "UPDATE packhorse.job SET changed_by = 'me'",
            "DELETE FROM packhorse.job",
            "DELETE FROM packhorse.job_request",
            "UPDATE packhorse.job_request SET job_id = job_id",
            "INSERT INTO packhorse.job (id, type, version, topic, changed_by, state) VALUES (gen_random_uuid(), 't', 1, 't', 'me', 'succeeded')",
            "INSERT INTO packhorse.job_transition (job_id, after, actor, attempt) VALUES (gen_random_uuid(), 'succeeded', 'me', 1)",
            "SELECT input FROM packhorse.job",
            "SELECT checkpoint FROM packhorse.job",
            "SELECT payload FROM packhorse.job_due",
            "SELECT answer FROM packhorse.job_effect",
        ):
            with pytest.raises(pg.InsufficientPrivilege):
                writer.execute(statement.encode())
            writer.rollback()


def test_an_operator_changes_jobs_by_acts_alone(database: str, roles: Roles) -> None:
    """Fails when a grant of operators lets them write states, results or inputs of jobs by hand, or drop what waits."""
    with psycopg.connect(roles.url(roles.make("operator"))) as operator:
        operator.execute("SELECT FROM packhorse.job FOR NO KEY UPDATE")
        operator.rollback()
        for statement in (
            "UPDATE packhorse.job SET state = 'succeeded', result = '{}'",
            "UPDATE packhorse.job SET input = NULL",
            "UPDATE packhorse.job SET cancel_asked_at = now()",
            "UPDATE packhorse.job SET purged_at = now()",
            "UPDATE packhorse.job_effect SET idempotency_key = 'k'",
            "UPDATE packhorse.job_effect SET digest = 'd'",
            "DELETE FROM packhorse.job_effect",
            "DELETE FROM packhorse.job",
            "DELETE FROM packhorse.job_due",
            "DELETE FROM packhorse.job_waiting",
            "DELETE FROM packhorse.job_running",
        ):
            with pytest.raises(pg.InsufficientPrivilege):
                operator.execute(statement.encode())
            operator.rollback()
