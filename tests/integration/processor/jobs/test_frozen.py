"""A worker that is frozen beyond its lease and its session, and one that is killed: who goes on, and after how long."""

import os
import signal
from pathlib import Path
from typing import Any

import pytest
from tests.support.jobs import JobGround, working
from tests.support.jobs_child import job_child, starts
from tests.support.wait import eventually

from packhorse.core.clock import SYSTEM_CLOCK
from packhorse.processor.clients import admin_properties, consumer_properties
from packhorse.processor.kafka.group_times import GroupQuestions

LEASE = 3.0
SLACK = 10.0
"""Seconds in which a database and a broker on a loaded machine do what takes them milliseconds."""


def all_of(jobs: JobGround) -> dict[str, Any]:
    """Return all that the database holds of jobs."""
    tables = ("job", "job_transition", "job_step", "job_effect", "inbox", "outbox")
    found = {name: jobs.rows(f"SELECT to_jsonb(t) FROM packhorse.{name} AS t ORDER BY 1") for name in tables}
    return found | {"result": jobs.results()}


@pytest.mark.case("J-02")
@pytest.mark.case("J-03")
def test_a_worker_that_thaws_after_another_has_done_its_job_writes_nothing(
    jobs: JobGround, tmp_path: Path
) -> None:
    """
    The process stops with SIGSTOP in the middle of a body, and goes on when another has brought the job to its end.

    Fails when a checkpoint, a step, the intent of an effect, progress or an end is written without its token.
    """
    jobs.make_topics(working(jobs.namespace))
    handle = jobs.submit(1, "waits")
    with job_child(jobs, lease=LEASE, folder=tmp_path, PACKHORSE_PROCESSOR_CONCURRENCY="1") as frozen:
        eventually(lambda: starts(tmp_path), what="the body has begun", timeout=40)
        jobs.until_state(handle.id, "running")
        os.kill(frozen.pid, signal.SIGSTOP)
        with jobs.processing(working(jobs.namespace), job_lease=LEASE):
            jobs.until_state(handle.id, "succeeded", timeout=40)
            eventually(lambda: jobs.committed() == 1, what="the offset has passed it")
        before = all_of(jobs)
        (tmp_path / "go").touch()
        os.kill(frozen.pid, signal.SIGCONT)
        refused = tmp_path / "refused"
        eventually(lambda: refused.exists() and "ended" in refused.read_text(), what="it has tried all")
        assert refused.read_text().splitlines() == [
            "checkpoint OwnershipLost",
            "step OwnershipLost",
            "effect OwnershipLost",
            "check OwnershipLost",
            "ended",
        ]
        after = jobs.submit(2)
        jobs.until_state(after.id, "succeeded", timeout=40)  # its one lane has gone through the old end
        mine = [row for row in all_of(jobs)["job"] if row[0]["id"] == str(handle.id)]
    assert mine == before["job"]
    assert jobs.history(handle.id) == ["accepted", "running", "running", "succeeded"]
    assert ("running", "lease-over") in jobs.reasons(handle.id)
    now = all_of(jobs)
    assert (now["job_step"], now["job_effect"], now["result"]) == ([], [], [1, 2])
    assert jobs.outcome(handle.id)[:2] == ("done", 1)  # type: ignore[index]


@pytest.mark.case("J-01")
def test_a_job_runs_again_within_lease_and_session_after_its_worker_was_killed(
    wide_jobs: JobGround, tmp_path: Path
) -> None:
    """
    The new worker is there already, and has one of the two partitions. Fails when the next owner of a job waits for more than its
    lease and the end of its worker's session: say, when a lease that is over is not asked for again.
    """
    jobs = wide_jobs
    jobs.make_topics(working(jobs.namespace))
    settings, group = jobs.settings(), working(jobs.namespace).group
    times = GroupQuestions(admin_properties(settings)).times(group, consumer_properties(settings, group))
    bound = LEASE + times.after_kill[1]
    with job_child(jobs, lease=LEASE, folder=tmp_path) as killed:
        ids = []
        for partition in (0, 1):
            ids.append(jobs.submit(partition, "lingers", carry=False).id)
            jobs.carry(partition)
        eventually(lambda: len(starts(tmp_path)) == 2, what="both bodies have begun", timeout=40)
        with jobs.processing(working(jobs.namespace), job_lease=LEASE) as other:
            other.until_assigned()
            began = SYSTEM_CLOCK.monotonic()
            killed.kill()
            for one in ids:
                jobs.until_state(one, "succeeded", timeout=bound + SLACK)
            took = SYSTEM_CLOCK.monotonic() - began
    print(
        f"killed, and done by another {took:.1f} s later; the bound is {bound:g} s: lease {LEASE:g} s, {times}"
    )
    assert [jobs.history(one) for one in ids] == [["accepted", "running", "running", "succeeded"]] * 2
