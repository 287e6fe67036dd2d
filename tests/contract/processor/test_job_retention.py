"""Retention of jobs on a real database: what goes, what stays, who waits, what is on the record, and with which rights."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from datetime import timedelta
from itertools import count as numbers
from typing import Any
from uuid import UUID

import psycopg
import pytest
from psycopg.conninfo import make_conninfo
from tests.support.cli import packhorse
from tests.support.databases import unique_name
from tests.support.job_lives import GROUP, TABLES, TOPIC, TYPE, holding, jobs, left, policy
from tests.support.wait import eventually

from packhorse.core.clock import SYSTEM_CLOCK
from packhorse.core.errors import NotReady
from packhorse.core.jobs import ENDED, JobState
from packhorse.processor.jobs.keeping.model import DAY, JobRules, Turn
from packhorse.processor.jobs.keeping.postgres import JobTables
from packhorse.processor.jobs.keeping.retention import JobRetention
from packhorse.processor.keeping.keeper import Keeper, own_name
from packhorse.producer.grants import grants

Connection = psycopg.Connection[Any]
OLD, MIDDLE, YOUNG = timedelta(days=100), timedelta(days=40), timedelta(days=20)


def tried(url: str, *, by: str = "test", **rules: Any) -> Turn | None:
    """Do one whole turn, without pauses; None: somebody else has it."""
    retention = JobRetention(JobTables(url, "packhorse"), JobRules(**rules), every=60, by=by)
    clock = numbers()
    return retention.run(lambda _: None, lambda: float(next(clock)))


def turn(url: str, **rules: Any) -> Turn:
    found = tried(url, **rules)
    assert found is not None, "somebody else has the turn"
    return found


def audited(connection: Connection) -> list[tuple[Any, ...]]:
    return connection.execute(
        "SELECT group_id, detail ->> 'type', (detail ->> 'jobs')::int, (detail ->> 'results')::int FROM packhorse.audit"
        " WHERE act = 'job-retention' ORDER BY id"
    ).fetchall()


@pytest.mark.case("B-11")
def test_jobs_that_are_over_go_with_all_that_hangs_on_them(connection: Connection, database: str) -> None:
    """Fails when a table is left out, when a type's own terms are not asked, or when what went is not on the record by type."""
    policy(connection, keep_row=10 * DAY, keep_result=DAY)
    short_gone = jobs(connection, "succeeded", ago=timedelta(days=11), count=3)
    short_empty = jobs(connection, "succeeded", ago=timedelta(days=9), count=2)
    short_whole = jobs(connection, "succeeded", ago=timedelta(hours=23))
    gone = [jobs(connection, state, ago=OLD, kind="t")[0] for state in sorted(ENDED)]
    emptied = [jobs(connection, state, ago=MIDDLE, kind="t")[0] for state in sorted(ENDED)]
    whole = [jobs(connection, state, ago=YOUNG, kind="t")[0] for state in sorted(ENDED)]
    done = turn(database, step=3)
    assert done.jobs == {TYPE: 3, "t": 4}
    assert done.results == {TYPE: 2, "t": 4}
    for table in TABLES:
        assert not left(connection, table) & {*short_gone, *gone}, table
    stays = {*short_empty, *short_whole, *emptied, *whole}
    for table in ("job", "job_transition", "job_step", "job_effect", "job_request"):
        assert left(connection, table) == stays, table
    assert holding(connection, stays) == {*short_whole, *whole}
    assert audited(connection) == [(GROUP, TYPE, 3, 2), (None, "t", 4, 4)]
    again = turn(database)
    assert (again.jobs, again.results) == ({}, {})
    assert len(audited(connection)) == 2


@pytest.mark.parametrize("state", sorted(set(JobState) - ENDED))
def test_a_job_that_has_not_ended_never_goes_however_old(
    connection: Connection, database: str, state: str
) -> None:
    """Fails when age alone decides."""
    waits = jobs(connection, state, ago=timedelta(days=4_000), count=2)
    done = turn(database, keep=DAY, keep_result=DAY)
    assert (done.seen, done.jobs, done.results) == (2, {}, {})
    assert left(connection) == holding(connection, waits) == set(waits)


def test_the_end_counts_and_not_the_beginning(connection: Connection, database: str) -> None:
    late = jobs(connection, "succeeded", ago=OLD, over=timedelta(days=1))
    turn(database)
    assert holding(connection, late) == set(late)


def test_a_discarded_job_stays_as_it_is_while_it_can_be_had_back(
    connection: Connection, database: str
) -> None:
    """Fails when a discarded message that a person restores would find its job gone, or without its input."""
    kept, gone, purged = (jobs(connection, "discarded", ago=OLD)[0] for _ in range(3))
    for each, state, at in (
        (kept, "discarded", None),
        (gone, "redriven", None),
        (purged, "discarded", "now()"),
    ):
        connection.execute(
            'INSERT INTO packhorse.quarantined_message (group_id, topic, message_id, topic_id, partition, "offset", headers, reason,'
            " attempts, first_failed_at, state, purged_at)"
            f" VALUES (%s, %s, %s, gen_random_uuid(), 0, 0, '[]', 'r', 1, clock_timestamp(), %s, {at or 'NULL'})".encode(),
            (GROUP, TOPIC, each, state),
        )
    turn(database)
    assert left(connection) == holding(connection, [kept]) == {kept}


def test_for_ever_means_for_ever_by_setting_and_by_type(connection: Connection, database: str) -> None:
    policy(connection, keep_row=float("inf"), keep_result=float("inf"))
    mine = jobs(connection, "succeeded", ago=timedelta(days=4_000))
    other = jobs(connection, "succeeded", ago=timedelta(days=4_000), kind="t")
    turn(database, keep=None, keep_result=None)
    assert holding(connection, [*mine, *other]) == {*mine, *other}
    turn(database, keep=None)
    assert holding(connection, [*mine, *other]) == set(mine)
    turn(database)
    assert left(connection) == set(mine)


def test_ids_without_a_time_are_found_too(connection: Connection, database: str) -> None:
    (job,) = jobs(connection, "succeeded", ago=OLD, hanging=False)
    connection.execute(
        "UPDATE packhorse.job SET id = overlay(gen_random_uuid()::text PLACING 'f' FROM 1)::uuid WHERE id = %s",
        (job,),
    )
    assert turn(database).jobs == {TYPE: 1}


@pytest.mark.case("B-11")
def test_one_process_works_at_a_time(connection: Connection, database: str) -> None:
    """Fails when a turn begins without the claim, or who has lost it goes on."""
    jobs(connection, "succeeded", ago=OLD, count=10)
    one = JobTables(database, "packhorse")
    assert one.claim("one", 0)
    assert tried(database, by="two") is None
    connection.execute(
        "UPDATE packhorse.job_retention SET seen_at = clock_timestamp() - interval '3 minutes'"
    )
    two = JobTables(database, "packhorse")
    assert two.claim("two", 0), "who is silent for two minutes has lost it"
    two.close()
    lost = one.step("one", JobRules(), UUID(int=0), UUID(int=(1 << 128) - 1))
    assert (lost.ours, lost.seen, lost.gone) == (False, 0, {})
    assert not one.renew("one")
    assert len(left(connection)) == 10
    assert tried(database, by="two") is not None
    assert not one.claim("three", 60), "the last turn was just now"
    one.close()


@pytest.mark.case("B-11")
def test_two_processes_that_race_for_the_turn_remove_everything_once(
    connection: Connection, database: str
) -> None:
    """Fails when both count the same job, or one that gives way leaves something."""
    jobs(connection, "succeeded", ago=OLD, count=3_000, hanging=False)
    turns: list[Turn | None] = []
    both = [
        threading.Thread(target=lambda by=by: turns.append(tried(database, by=by, step=100)))
        for by in ("one", "two")
    ]
    for each in both:
        each.start()
    for each in both:
        each.join(60)
    assert left(connection) == left(connection, "job_transition") == set()
    assert sum(row[2] for row in audited(connection)) == 3_000
    assert sum(done.jobs.get(TYPE, 0) for done in turns if done is not None) == 3_000


_CHILD = """
import sys
from tests.contract.processor.test_job_retention import JobRetention, JobRules, JobTables
retention = JobRetention(JobTables(sys.argv[1], "packhorse"), JobRules(step=50), every=60, by="dies")
def wait(seconds):
    print("step", flush=True)
    sys.stdin.readline()
retention.run(wait, lambda: 0.0)
"""


@pytest.mark.case("B-11")
def test_a_turn_that_is_killed_in_the_middle_is_gone_on_with_and_all_is_on_the_record(
    connection: Connection, database: str
) -> None:
    """Fails when counts are kept in the process alone: what went before the kill would never be on the record."""
    jobs(connection, "succeeded", ago=OLD, count=400)
    child = subprocess.Popen(
        [sys.executable, "-c", _CHILD, database],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert child.stdin is not None
    assert child.stdout is not None
    for _ in range(4):
        assert child.stdout.readline() == "step\n"
        child.stdin.write("\n")
        child.stdin.flush()
    child.send_signal(signal.SIGKILL)
    child.wait(20)
    child.stdin.close()
    child.stdout.close()
    before = len(left(connection))
    assert 0 < before < 400
    assert audited(connection) == []
    assert tried(database) is None, "its turn is not over yet"
    connection.execute(
        "UPDATE packhorse.job_retention SET seen_at = clock_timestamp() - interval '3 minutes' WHERE type = ''"
    )
    assert turn(database).jobs == {TYPE: before}
    assert audited(connection) == [(None, TYPE, 400, 0)]


def test_what_somebody_has_locked_is_passed_over(connection: Connection, database: str) -> None:
    first, second = jobs(connection, "succeeded", ago=OLD, count=2)
    with psycopg.connect(database) as other:
        other.execute("SELECT FROM packhorse.job WHERE id = %s FOR UPDATE", (first,))
        assert turn(database).jobs == {TYPE: 1}
        assert left(connection) == {first}
    assert second not in left(connection)
    assert turn(database).jobs == {TYPE: 1}


class Workers:
    """Somebody who submits jobs, claims them and ends them all the time. Their own lock_timeout is the judge."""

    LONGEST = "50ms"

    def __init__(self, url: str) -> None:
        self._url = url
        self._stop = threading.Event()
        self.ended = 0
        self.errors: list[psycopg.Error] = []
        self._thread = threading.Thread(target=self._work)

    def _work(self) -> None:
        with psycopg.connect(self._url, autocommit=True) as connection:
            connection.execute(f"SET lock_timeout = '{self.LONGEST}'; SET synchronous_commit = off".encode())
            while not self._stop.wait(0.001):
                try:
                    jobs(connection, "succeeded", kind="busy", count=3)
                except psycopg.Error as error:
                    self.errors.append(error)
                    return
                self.ended += 3

    def __enter__(self) -> "Workers":
        self._thread.start()
        eventually(lambda: self.ended > 0, what="a job is ended")
        return self

    def __exit__(self, *_: object) -> None:
        seen = self.ended
        try:
            eventually(lambda: self.ended > seen or bool(self.errors), what="jobs are ended to the end")
        finally:
            self._stop.set()
            self._thread.join(20)


@pytest.mark.case("B-11")
def test_many_go_in_steps_that_those_who_submit_and_claim_do_not_feel(
    connection: Connection, database: str
) -> None:
    """Fails when rows go in one statement, or a step locks what others are about."""
    jobs(connection, "succeeded", ago=OLD, count=20_000)
    retention = JobRetention(JobTables(database, "packhorse"), JobRules(), every=60, by="t", first=0)
    with Workers(database) as workers:
        for now in range(1_000):
            if retention.step(float(now)) > 1:  # that was all
                break
    assert workers.errors == []
    assert retention.turn is not None
    assert retention.turn.jobs == {TYPE: 20_000}
    assert len(left(connection)) == workers.ended
    retention.close()


@pytest.mark.case("B-11")
def test_the_next_turn_looks_at_what_has_come_of_age_alone(connection: Connection, database: str) -> None:
    """Fails when each turn reads all rows that stay; what ended late is found by the turn that goes over all."""
    policy(connection, "t", keep_row=DAY, keep_result=DAY)
    jobs(connection, "succeeded", ago=MIDDLE, count=50)
    first = turn(database)
    assert (first.whole, first.seen) == (True, 50)
    (come,) = jobs(connection, "succeeded", ago=timedelta(days=1, minutes=20), kind="t")
    (late,) = jobs(connection, "succeeded", ago=timedelta(days=9), over=timedelta(days=2), kind="t")
    narrow = JobRetention(JobTables(database, "packhorse"), JobRules(), every=0.01, by="t", first=0)
    while narrow.step(0.0) < 0.01 or narrow.turn is None:
        pass
    assert (narrow.turn.whole, narrow.turn.seen, narrow.turn.jobs) == (False, 1, {"t": 1})
    assert come not in left(connection)
    assert late in left(connection)
    assert turn(database).jobs == {"t": 1}
    narrow.close()


def test_the_processors_role_may_do_it_and_nobody_without_rights(
    connection: Connection, database: str
) -> None:
    role = unique_name("role")
    connection.execute(f"CREATE ROLE {role} LOGIN".encode())
    url = make_conninfo(database, user=role)
    try:
        with pytest.raises(NotReady, match="may not keep the jobs"):
            turn(url)
        for statement in grants("packhorse", [("processor", role)]):
            connection.execute(statement.encode())
        jobs(connection, "succeeded", ago=OLD)
        jobs(connection, "succeeded", ago=MIDDLE)
        done = turn(url)
        assert (done.jobs, done.results) == ({TYPE: 1}, {TYPE: 1})
        assert audited(connection) == [(None, TYPE, 1, 1)]
    finally:
        connection.execute(f"DROP OWNED BY {role} CASCADE; DROP ROLE {role}".encode())


def test_a_look_goes_through_all_steps_and_changes_nothing(connection: Connection, database: str) -> None:
    """Fails when a look ends where a turn would have to be had."""
    jobs(connection, "succeeded", ago=OLD, count=25)
    jobs(connection, "succeeded", ago=MIDDLE, count=5)
    retention = JobRetention(JobTables(database, "packhorse"), JobRules(step=4), every=60, by="t")
    clock = numbers(1_000, 30)
    looked = retention.run(lambda _: None, lambda: float(next(clock)), act=False)
    assert looked is not None
    assert (looked.seen, looked.jobs, looked.results) == (30, {TYPE: 25}, {TYPE: 5})
    assert len(holding(connection, left(connection))) == 30
    acted = retention.run(lambda _: None, lambda: float(next(clock)))
    assert acted is not None
    assert (acted.seen, acted.jobs, acted.results) == (30, {TYPE: 25}, {TYPE: 5})


def test_the_command_says_what_would_go_does_it_and_tells_of_it(
    connection: Connection, database: str
) -> None:
    policy(connection, keep_row=None, keep_result=7 * DAY)
    jobs(connection, "succeeded", ago=OLD, count=2)
    (empty,) = jobs(connection, "succeeded", ago=timedelta(days=8))
    environ = {"PACKHORSE_DATABASE_URL": database}
    command = ("job", "retention")
    assert packhorse(*command, "status", **environ).out.startswith("last turn   never")
    dry = packhorse(*command, "run", "--dry-run", **environ)
    assert dry.out.splitlines() == [
        f"would go: 2 of {TYPE}",
        f"would lose what they hold: 1 of {TYPE}",
        "jobs        3 looked at",
    ]
    assert (len(left(connection)), audited(connection)) == (3, [])
    ran = packhorse(*command, "run", "--json", **environ).json()
    assert (ran["jobs"], ran["results"], ran["dry_run"]) == ({TYPE: 2}, {TYPE: 1}, False)
    assert left(connection) == {empty}
    status = packhorse(*command, "status", "--json", **environ).json()
    assert status["types"] == {TYPE: {"keep": 90 * DAY, "keep_result": 7 * DAY}}
    assert (status["jobs"], status["keep_result"]) == ({TYPE: 2}, 30 * DAY)
    told = packhorse(*command, "status", **environ).out
    assert f"removed     2 of {TYPE}" in told
    assert f"kept        90 d, results 7 d  type {TYPE}" in told
    connection.execute(
        "UPDATE packhorse.job_retention SET ran_by = 'else', seen_at = clock_timestamp() WHERE type = ''"
    )
    assert "another process" in packhorse(*command, "run", **environ).out
    listed = packhorse("audit", "list", "--act", "job-retention", "--json", **environ).json()["acts"]
    assert [one["detail"] for one in listed] == [{"type": TYPE, "jobs": 2, "results": 1}]


@pytest.fixture
def keeper(database: str) -> Iterator[tuple[Keeper, JobRetention]]:
    tables = JobTables(database, "packhorse")
    retention = JobRetention(tables, JobRules(), every=60, by=own_name(), first=0)
    keeper = Keeper(retention, SYSTEM_CLOCK, what="job-retention")
    yield keeper, retention
    keeper.stop()


def test_a_thread_does_it_and_ends_when_told(
    connection: Connection, keeper: tuple[Keeper, JobRetention]
) -> None:
    jobs(connection, "succeeded", ago=OLD)
    keeper[0].start()
    eventually(lambda: keeper[1].turn is not None, what="a turn is over")
    keeper[0].stop()
    assert left(connection) == set()
    eventually(
        lambda: "packhorse-job-retention" not in {thread.name for thread in threading.enumerate()},
        what="the thread has ended",
    )


def test_a_turn_warns_of_jobs_that_nobody_sees_to_once(
    connection: Connection, database: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Fails when jobs that stand still are seen only by whoever asks."""
    for state in ("running", "retrying", "accepted", "succeeded", "quarantined"):
        jobs(connection, state, ago=YOUNG)
    retention = JobRetention(JobTables(database, "packhorse"), JobRules(), every=60, by="t")
    clock = numbers()

    def warned() -> list[str]:
        caplog.clear()
        retention.run(lambda _: None, lambda: float(next(clock)))
        return [record.getMessage() for record in caplog.records if "jobs are left" in record.getMessage()]

    assert warned() == []
    connection.execute(
        "UPDATE packhorse.job SET lease_until = clock_timestamp() - interval '2 minutes' WHERE state = 'running'"
    )
    connection.execute(
        "UPDATE packhorse.job_effect SET state = 'intended', changed_at = clock_timestamp() - interval '1 hour'"
    )
    (said,) = warned()
    assert "packhorse reconcile" in said
    assert retention._warned is not None
    assert tuple(retention._warned) == (1, 0, 3)
    assert warned() == []
