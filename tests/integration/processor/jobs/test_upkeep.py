"""What real workers leave behind adds up, and goes when its time is over."""

import threading
from datetime import timedelta
from itertools import count as numbers
from typing import Any
from uuid import UUID

from tests.support.jobs import JobGround, working

from packhorse.console.acting.person import this_process
from packhorse.console.acting.postgres import opened
from packhorse.console.reconciling.postgres import ReconcilingTables
from packhorse.console.reconciling.service import Reconciling
from packhorse.core.clock import SYSTEM_CLOCK
from packhorse.processor import JobContext, Retry
from packhorse.processor.jobs.keeping.model import JobRules, Turn
from packhorse.processor.jobs.keeping.postgres import JobTables
from packhorse.processor.jobs.keeping.retention import JobRetention


def found(url: str) -> dict[str, list[UUID]]:
    """Return what a reconciliation finds, by name."""
    with opened(url, schema="packhorse", timeout=20) as database:
        report = Reconciling(ReconcilingTables(database), this_process()).look()
    return {finding.name.value: finding.ids for finding in report.found()}


def turn(url: str, **rules: Any) -> Turn | None:
    """Do a turn of the retention of jobs."""
    clock = numbers()
    retention = JobRetention(JobTables(url, "packhorse"), JobRules(**rules), every=60, by="test")
    return retention.run(lambda _: None, lambda: float(next(clock)))


def test_jobs_of_all_ends_add_up_while_they_run_and_afterwards_and_go_by_themselves(jobs: JobGround) -> None:
    """Fails when a job and its message are not written together, or a run leaves a name, a step or a request key behind."""
    started, go = threading.Event(), threading.Event()

    def body(job: Any, ctx: JobContext) -> int:
        ctx.step("read", lambda: job.n)
        if job.what == "waits":
            started.set()
            assert go.wait(30)
        if job.what == "fails":
            raise ValueError("no")
        ctx.effect("mail", lambda key: key)
        return int(job.n)

    app = working(
        jobs.namespace, body=body, retry=Retry(attempts=2, delays=["100ms"]), keep="1d", keep_result="1h"
    )
    jobs.make_topics(app)
    done = jobs.submit(1, request_key="one", one_running="name", one_waiting="name")
    bad = jobs.submit(2, "fails")
    taken_back = jobs.submit(3, carry=False)
    jobs.cancel(taken_back.id)
    jobs.carry()
    later = jobs.submit(4, not_before=SYSTEM_CLOCK.now() + timedelta(hours=1), one_waiting="later")
    waits = jobs.submit(5, "waits", one_running="other")
    with jobs.processing(app):
        assert started.wait(30)
        jobs.until_state(done.id, "succeeded")
        jobs.until_state(bad.id, "quarantined")
        assert found(jobs.database) == {}
        assert turn(jobs.database) is not None
        go.set()
        jobs.until_state(waits.id, "succeeded")
    assert found(jobs.database) == {}
    assert jobs.rows("SELECT keep_row, keep_result FROM packhorse.job_policy") == [(86_400.0, 3_600.0)]
    waiting = {bad.id, later.id}
    turn(jobs.database)
    assert {row[0] for row in jobs.rows("SELECT id FROM packhorse.job")} == {
        done.id,
        taken_back.id,
        waits.id,
        *waiting,
    }
    jobs.rows("UPDATE packhorse.job_policy SET keep_row = 0.001, keep_result = 0.001 RETURNING type")
    gone = turn(jobs.database)
    assert gone is not None
    assert sum(gone.jobs.values()) == 3
    for table, column in (
        ("job", "id"),
        ("job_transition", "job_id"),
        ("job_due", "job_id"),
        ("job_waiting", "job_id"),
    ):
        assert {row[0] for row in jobs.rows(f"SELECT {column} FROM packhorse.{table}")} <= waiting, table
    for table in ("job_effect", "job_request", "job_running"):
        assert jobs.rows(f"SELECT job_id FROM packhorse.{table}") == [], table
    assert found(jobs.database) == {}
