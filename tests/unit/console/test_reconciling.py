"""What is wrong with a job, by what the tables say of it; and what is said of whom it waits for."""

from typing import Any
from uuid import UUID

import pytest

from packhorse.console.reconciling.model import (
    LOOKED,
    MEANINGS,
    MOST,
    SHOWN,
    Finding,
    GroupState,
    Name,
    OpenJob,
    Report,
    judge,
    waits_for,
)
from packhorse.console.reconciling.render import report_json, report_lines
from packhorse.core.jobs import JobState

ID = UUID(int=7)


def job(state: str, **given: Any) -> OpenJob:
    values: dict[str, Any] = {
        "group": "g", "topic": "t", "lease_over": None, "outcome": None, "rests": None,
        "overdue": None, "outbox": None, "written": 600.0, **given,
    }  # fmt: skip
    return OpenJob(id=ID, type="T", state=JobState(state), **values)


@pytest.mark.parametrize(
    ("found", "name"),
    [
        (job("accepted", outbox="published"), None),
        (job("accepted", outbox="unpublished"), Name.UNPUBLISHED),
        (job("accepted", outbox="unpublished", written=200.0), None),
        (job("accepted", outbox="gone"), Name.LOST),
        (job("accepted", outbox=None), None),
        (job("accepted", overdue=-50.0), None),
        (job("accepted", overdue=59.0), None),
        (job("accepted", overdue=61.0), Name.OVERDUE),
        (job("accepted", outcome="done"), Name.DONE_OPEN),
        (job("retrying", outcome="skipped"), Name.DONE_OPEN),
        (job("retrying", outcome="discarded"), Name.DONE_OPEN),
        (job("retrying", outcome="retry"), None),
        (job("retrying", outcome="retry", rests="redriven"), None),
        (job("retrying", outcome="quarantine", rests="quarantined"), Name.BEHIND),
        (job("running", lease_over=-20.0), None),
        (job("running", lease_over=59.0), None),
        (job("running", lease_over=61.0), Name.NO_LEASE),
        (job("running", lease_over=-20.0, outcome="done"), Name.DONE_OPEN),
        (job("quarantined", rests="quarantined"), None),
        (job("quarantined", rests="redriven"), Name.BEHIND),
        (job("uncertain", rests="discarded"), Name.BEHIND),
        (job("uncertain"), Name.NO_MESSAGE),
        (job("discarded"), None),
        (job("discarded", rests="discarded"), None),
        (job("discarded", rests="quarantined"), Name.BEHIND),
    ],
)
def test_a_job_is_judged_by_what_the_tables_say(found: OpenJob, name: Name | None) -> None:
    assert judge(found, unpublished_after=300.0) == name


def test_every_finding_has_a_meaning_and_every_state_that_may_be_wrong_is_looked_at() -> None:
    assert set(MEANINGS) == set(Name)
    assert {name for name, meaning in MEANINGS.items() if meaning.mends} == {
        Name.BEHIND,
        Name.ORPHANS,
        Name.STALE,
    }
    assert set(JobState) - set(LOOKED) == {JobState.SUCCEEDED, JobState.CANCELLED, JobState.EXPIRED}


def test_it_is_said_whom_a_job_waits_for_that_nobody_took_over() -> None:
    groups = {"g": GroupState(alive=2, readers={"t": 1}), "idle": GroupState(alive=1, readers={})}
    assert waits_for("away", "t", groups) == "no process of group away lives"
    assert waits_for(None, "t", groups) == "no process of group None lives"
    assert waits_for("idle", "t", groups) == "1 process of group idle live, and none has a partition of t"
    assert waits_for("g", "t", groups).startswith("2 processes of group g live, and 1 have partitions of t")


def test_a_report_names_twenty_counts_all_and_is_well_once_all_is_mended() -> None:
    report = Report()
    report.of(Name.STALE).add([UUID(int=n) for n in range(SHOWN + 5)])
    report.of(Name.NO_FACT).add([ID])
    assert not report.is_well
    lines = list(report_lines(report, repaired=False))
    assert lines[0] == "succeeded-without-fact: 1"
    assert lines[-1] == "  job     and 5 more"
    assert sum(line.startswith("  job     0") for line in lines) == SHOWN + 1
    report.of(Name.STALE).mended = SHOWN + 5
    assert report.of(Name.NO_FACT).left == 1
    report.of(Name.NO_FACT).mended = 1
    said = report_json(report)
    assert said["well"]
    assert [(one["name"], one["count"], len(one["ids"]), one["left"]) for one in said["findings"]] == [
        ("succeeded-without-fact", 1, 1, 0),
        ("stale-name", SHOWN + 5, SHOWN, 0),
    ]
    assert list(report_lines(Report(looked=3), repaired=False)) == ["all adds up: 3 rows looked at"]


def test_of_very_many_the_first_are_kept() -> None:
    finding = Finding(name=Name.STALE)
    finding.add(UUID(int=n) for n in range(MOST + 3))
    finding.add([ID])
    assert (finding.count, len(finding.ids)) == (MOST + 4, MOST)
