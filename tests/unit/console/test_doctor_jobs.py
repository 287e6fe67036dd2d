"""What the doctor says of jobs."""

from datetime import timedelta
from typing import Any

import pytest

from packhorse.console.doctor.findings import Verdict
from packhorse.console.doctor.judge_jobs import JobsState, judge_jobs

HOUR = timedelta(hours=1)


def state(**given: Any) -> JobsState:
    values: dict[str, Any] = {
        "there": True, "uncertain": 0, "uncertain_age": None, "overdue": 0, "overdue_age": None, "leaseless": 0, "leaseless_age": None,
        "undeclared": (), "kept_age": HOUR, "processed": True, **given,
    }  # fmt: skip
    return JobsState(**values)


@pytest.mark.parametrize(
    ("found", "check", "verdict", "said"),
    [
        (state(), "jobs", Verdict.OK, "none waits"),
        (state(kept_age=None), "jobs", Verdict.OK, "none waits"),
        (state(kept_age=48 * HOUR, processed=False), "jobs", Verdict.OK, "none waits"),
        (
            state(uncertain=1, uncertain_age=3 * HOUR),
            "uncertain jobs",
            Verdict.WARNING,
            "1 job uncertain, the oldest for 3 h",
        ),
        (
            state(leaseless=2, leaseless_age=3 * HOUR),
            "left jobs",
            Verdict.FAILED,
            "2 jobs running without a lease",
        ),
        (
            state(overdue=2, overdue_age=3 * HOUR),
            "late jobs",
            Verdict.FAILED,
            "2 jobs not sent though their time has come",
        ),
        (
            state(undeclared=("a", "b", "c", "d")),
            "unhandled jobs",
            Verdict.WARNING,
            "a, b, c and 1 more wait",
        ),
    ],
)
def test_what_waits_is_named_with_the_next_step(
    found: JobsState, check: str, verdict: Verdict, said: str
) -> None:
    (finding,) = judge_jobs(found)
    assert (finding.check, finding.verdict) == (check, verdict)
    assert said in finding.found
    assert (finding.next_step is None) == (verdict is Verdict.OK)


def test_where_there_are_no_jobs_nothing_is_said_and_a_retention_that_rests_is_named() -> None:
    assert list(judge_jobs(state(there=False, processed=True, kept_age=48 * HOUR))) == []
    jobs, retention = judge_jobs(state(kept_age=48 * HOUR))
    assert (jobs.verdict, retention.verdict, retention.found) == (
        Verdict.OK,
        Verdict.WARNING,
        "it ran last 2 d ago, and a processor runs",
    )
