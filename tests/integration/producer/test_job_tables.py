"""What the database itself keeps true about jobs: their history, the table of states, and that a job follows its message."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any
from uuid import UUID

import psycopg
import pytest
from psycopg import errors as pg
from tests.support.accounts import AmountMoved

from packhorse.core.clock import SYSTEM_CLOCK
from packhorse.core.errors import DatabaseUnavailable, NotReady, SettingsError, UnknownId, UsageError
from packhorse.core.jobs import ALLOWED, JobState, pairs
from packhorse.producer import Jobs, Outbox, Progress, Transition
from packhorse.producer.jobs.rows import EARLIEST, LATEST
from packhorse.producer.migrations.versions.v0010_jobs import PAIRS
from packhorse.testing import assert_submitted, emitted, register_for_tests, submitted

Connection = psycopg.Connection[Any]
OUTBOX = Outbox(origin="bank")
MOVED = AmountMoved(account="a", amount=5)
TOKEN = UUID(int=7)


@pytest.fixture
def connection(url: str) -> Iterator[Connection]:
    with psycopg.connect(url, autocommit=True) as connection:
        yield connection


@pytest.fixture
def jobs(url: str) -> Iterator[Jobs]:
    with Jobs(url) as jobs:
        yield jobs


def a_job(connection: Connection, **named: Any) -> UUID:
    with connection.transaction():
        return OUTBOX.submit(connection, MOVED, **named).id


def move(connection: Connection, job_id: UUID, state: str, **more: object) -> None:
    """Bring a job into a state, as whoever acts on it does."""
    columns = {"changed_by": "worker", **more}
    connection.execute(
        f"UPDATE packhorse.job SET state = %s, changed_at = clock_timestamp(), {', '.join(f'{c} = %s' for c in columns)} WHERE id = %s",
        (state, *columns.values(), job_id),
    )


def quarantine(
    connection: Connection, job_id: UUID, *, reason: str = "exhausted", group: str = "reports"
) -> None:
    """Quarantine the message of a job, as a processor does."""
    connection.execute(
        """
        INSERT INTO packhorse.quarantined_message (group_id, message_id, topic, topic_id, partition, "offset", reason, error,
            attempts, headers, first_failed_at)
        VALUES (%s, %s, 'bank.account', %s, 0, 1, %s, 'LookupError', 3, '[]', now())""",
        (group, job_id, UUID(int=1), reason),
    )


def test_the_database_allows_what_the_table_of_states_allows(connection: Connection) -> None:
    assert pairs() == PAIRS
    for before in JobState:
        for after in JobState:
            ((may,),) = connection.execute("SELECT packhorse.job_may(%s)", (f"{before}>{after}",)).fetchall()
            assert may == (after in ALLOWED[before]), (before, after)


def test_every_change_is_on_record_once_with_who_and_why(connection: Connection, jobs: Jobs) -> None:
    """Fails when a change of state leaves no row, or a heartbeat leaves one."""
    job_id = a_job(connection, actor="ada")
    move(connection, job_id, "running", attempt=1, worker=UUID(int=1), token=TOKEN)
    connection.execute("UPDATE packhorse.job SET lease_until = clock_timestamp(), progress_done = 3")
    move(
        connection,
        job_id,
        "running",
        attempt=1,
        worker=UUID(int=2),
        token=UUID(int=8),
        reason="the other one is gone",
    )
    move(connection, job_id, "succeeded", worker=None, token=None)
    history = jobs.history(job_id)
    assert [(one.before, one.after, one.actor, one.reason, one.attempt, one.worker) for one in history] == [
        (None, "accepted", "ada", None, 0, None),
        ("accepted", "running", "worker", None, 1, UUID(int=1)),
        ("running", "running", "worker", "the other one is gone", 1, UUID(int=2)),
        ("running", "succeeded", "worker", "the other one is gone", 1, UUID(int=2)),
    ]
    assert isinstance(history[0], Transition)
    assert [one.at for one in history] == sorted(one.at for one in history)


@pytest.mark.parametrize(("first", "then"), [("running", ()), ("cancelled", ()), ("running", ("succeeded",))])
def test_a_change_that_the_table_does_not_allow_is_refused_and_changes_nothing(
    connection: Connection, jobs: Jobs, first: str, then: tuple[str, ...]
) -> None:
    """Fails when only the code checks changes: two writers that race, or a hand at the prompt, could end a job twice."""
    job_id = a_job(connection)
    for state in (first, *then):
        move(connection, job_id, state)
    last = (first, *then)[-1]
    for after in set(JobState) - ALLOWED[JobState(last)] - {JobState(last)}:
        with pytest.raises(pg.CheckViolation, match=f"job {job_id} can't go from {last} to {after}"):
            move(connection, job_id, after)
    assert jobs.get(job_id).state == last
    assert len(jobs.history(job_id)) == 2 + len(then)


def test_history_is_not_rewritten(connection: Connection) -> None:
    a_job(connection)
    for statement in (
        "UPDATE packhorse.job_transition SET actor = 'me'",
        "TRUNCATE packhorse.job_transition",
    ):
        with pytest.raises(pg.Error):
            connection.execute(statement.encode())


def test_what_waits_by_name_or_time_is_gone_with_the_state_whoever_changes_it(connection: Connection) -> None:
    """Fails when each writer has to remember: a job in quarantine would be given back as the one that waits."""
    later = SYSTEM_CLOCK.now() + timedelta(hours=1)
    for state in ("running", "cancelled", "expired", "quarantined"):
        job_id = a_job(connection, one_waiting="w", not_before=later)
        move(connection, job_id, state)
        for table in ("job_waiting", "job_due"):
            assert connection.execute(f"SELECT * FROM packhorse.{table}".encode()).fetchall() == [], (
                state,
                table,
            )


@pytest.mark.parametrize(("reason", "state"), [("exhausted", "quarantined"), ("uncertain", "uncertain")])
def test_a_job_follows_its_message_into_quarantine_and_out_of_it(
    connection: Connection, jobs: Jobs, reason: str, state: str
) -> None:
    """Fails when the job is left behind in the state that it had: it would be shown as on its way."""
    job_id, other = a_job(connection), a_job(connection)
    connection.execute(
        "INSERT INTO packhorse.job_policy (type, group_id) VALUES ('bank.AmountMoved', 'reports') ON CONFLICT DO NOTHING"
    )
    quarantine(connection, job_id, group="a reader of the same topic")
    assert jobs.get(job_id).state == "accepted", "whose workers it has is known before one has met it"
    connection.execute("DELETE FROM packhorse.quarantined_message")
    quarantine(connection, job_id, reason=reason)
    found = jobs.get(job_id)
    assert (found.state, found.group, found.reason, found.error) == (state, "reports", reason, "LookupError")
    assert found.rests
    acted = [("discarded", "discarded"), ("quarantined", state), ("redriven", "retrying")]
    for message, job in acted:
        with connection.transaction():
            connection.execute("SELECT set_config('packhorse.actor', 'ann', true)")
            connection.execute("UPDATE packhorse.quarantined_message SET state = %s", (message,))
        found = jobs.get(job_id)
        assert (found.state, found.changed_by) == (job, "ann")
        assert (found.finished_at is not None) == (job == "discarded")
    assert [one.actor for one in jobs.history(job_id)] == ["bank", "worker", "ann", "ann", "ann"]
    assert jobs.get(other).state == "accepted"


def test_a_job_follows_its_own_message_alone(connection: Connection, jobs: Jobs) -> None:
    job_id = a_job(connection)
    connection.execute("UPDATE packhorse.job SET group_id = 'reports'")
    quarantine(connection, job_id, group="a reader of the same topic")
    assert jobs.get(job_id).state == "accepted"
    move(connection, job_id, "running")
    move(connection, job_id, "succeeded")
    quarantine(connection, job_id)
    assert jobs.get(job_id).state == "succeeded", "what has ended stays so"


def test_how_a_job_stands_is_told_whole_without_its_input(connection: Connection, jobs: Jobs) -> None:
    later = SYSTEM_CLOCK.now() + timedelta(hours=1)
    job_id = a_job(
        connection, request_key="k", tenant="north", correlation_id="c", priority="low", expires_at=later
    )
    fresh = jobs.get(job_id)
    assert (fresh.id, fresh.type, fresh.version, fresh.topic) == (
        job_id,
        "bank.AmountMoved",
        2,
        "bank.account.low",
    )
    assert (fresh.tenant, fresh.request_key, fresh.correlation_id, fresh.origin) == (
        "north",
        "k",
        "c",
        "bank",
    )
    assert (fresh.expires_at, fresh.progress, fresh.result, fresh.rests) == (later, None, None, False)
    move(connection, job_id, "running", attempt=1, token=TOKEN, checkpoint='{"at": 5}')
    running = jobs.get(job_id)
    assert running.version_tag != fresh.version_tag
    connection.execute("UPDATE packhorse.job SET lease_until = clock_timestamp()")
    assert jobs.get(job_id).version_tag == running.version_tag, "a heartbeat shows nothing new"
    connection.execute(
        "UPDATE packhorse.job SET progress_done = 1, progress_total = 2, progress_text = 'half', progress_at = accepted_at"
    )
    halfway = jobs.get(job_id)
    assert halfway.progress == Progress(done=1, total=2, text="half", at=halfway.accepted_at)
    assert halfway.version_tag != running.version_tag
    move(connection, job_id, "succeeded", result='{"rows": 3}', worker=None, token=None)
    done = jobs.get(job_id)
    assert (done.state, done.result, done.rests) == (JobState.SUCCEEDED, {"rows": 3}, True)
    assert "rows" not in repr(done)
    assert not {"input", "checkpoint", "token"} & set(done.__slots__)


@pytest.mark.case("X-01")
def test_an_id_that_never_existed_is_unknown(jobs: Jobs) -> None:
    """Fails when nothing found is told as accepted, or waited for."""
    for ask in (jobs.get, jobs.history, jobs.effects, lambda one: jobs.wait(one, timeout=60)):
        with pytest.raises(UnknownId, match="is not known here"):
            ask(UUID(int=5))


@pytest.mark.parametrize("zone", ["Pacific/Kiritimati", "Etc/GMT+12"])
def test_the_earliest_and_the_latest_time_are_read_in_every_zone(
    url: str, connection: Connection, zone: str
) -> None:
    """Fails when a job is accepted whose times Python can't hold where the session's zone is not UTC: lists with it are unreadable."""
    job_id = a_job(connection, not_before=EARLIEST, expires_at=LATEST)
    with Jobs(f"{url}?options=-c%20timezone%3D{zone.replace('+', '%2B')}") as elsewhere:
        job = elsewhere.get(job_id)
    assert (job.not_before, job.expires_at) == (EARLIEST, LATEST)


@pytest.mark.parametrize("given", ["abc", str(UUID(int=5)), 5, None])
def test_what_is_no_id_is_refused_before_the_database_is_asked(jobs: Jobs, given: Any) -> None:
    """Fails when the driver's error comes out, which quotes what was given."""
    for ask in (jobs.get, jobs.history, jobs.effects, lambda one: jobs.wait(one, timeout=60)):
        with pytest.raises(UsageError, match=rf"^id is {type(given).__name__}; pass a uuid.UUID$"):
            ask(given)


def test_the_outside_effects_of_a_job_are_told_without_their_answers(
    connection: Connection, jobs: Jobs
) -> None:
    job_id = a_job(connection)
    assert jobs.effects(job_id) == []
    connection.execute(
        """
        INSERT INTO packhorse.job_effect (job_id, key, idempotency_key, digest, state, attempt, timeout, changed_by, answer)
        VALUES (%s, 'charge', 'i-1', 'd', 'uncertain', 1, 30, 'worker', '{"card": "4711"}')""",
        (job_id,),
    )
    (effect,) = jobs.effects(job_id)
    assert (effect.key, effect.idempotency_key, effect.state, effect.calls) == (
        "charge",
        "i-1",
        "uncertain",
        1,
    )
    assert "4711" not in repr(effect)


def test_a_wait_ends_with_the_job_and_tells_the_state_when_time_is_up(
    url: str, connection: Connection, jobs: Jobs
) -> None:
    job_id = a_job(connection)
    with pytest.raises(TimeoutError, match=f"job {job_id} is accepted after 0.05 s"):
        jobs.wait(job_id, timeout=0.05)
    move(connection, job_id, "running")
    move(connection, job_id, "succeeded")
    assert jobs.wait(job_id, timeout=5).state == "succeeded"


def test_a_database_that_is_away_or_unfit_is_named_without_its_password(empty_database: str) -> None:
    with pytest.raises(SettingsError, match=r"database_url of Jobs: .*encode @ as %40"):
        Jobs("postgresql://app:p@ss@127.0.0.1/app")
    with Jobs("postgresql://app:s3cr3t@127.0.0.1:1/app", timeout=0.5) as away:
        with pytest.raises(
            DatabaseUnavailable, match=r"no connection to the database_url of Jobs within 0.5 s"
        ) as caught:
            away.get(UUID(int=1))
        assert "s3cr3t" not in str(caught.value)
    with pytest.raises(UsageError, match="were closed"):
        away.get(UUID(int=1))
    with Jobs(empty_database) as unfit, pytest.raises(NotReady, match="packhorse migrate up"):
        unfit.get(UUID(int=1))


def test_what_a_transaction_has_submitted_is_found_apart_from_what_it_has_emitted(
    url: str, connection: Connection
) -> None:
    a_job(connection, one_waiting="w")
    with psycopg.connect(url) as other:
        register_for_tests(other, AmountMoved)
        OUTBOX.emit(other, MOVED, key="a")
        OUTBOX.submit(other, MOVED, request_key="k")
        with other.transaction():
            OUTBOX.submit(other, AmountMoved(account="a", amount=6))
        a_job(connection)
        assert not OUTBOX.submit(other, MOVED, one_waiting="w").is_new
        assert [one.message for one in emitted(other)] == [MOVED]
        assert [one.input.amount for one in submitted(other, AmountMoved)] == [5, 6]
        assert assert_submitted(other, AmountMoved, amount=5).request_key == "k"
        with pytest.raises(AssertionError, match="0 of 1 jobs AmountMoved"):
            assert_submitted(other, AmountMoved, amount=7)
        other.commit()
        assert submitted(other) == []
