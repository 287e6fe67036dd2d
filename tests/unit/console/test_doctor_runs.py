"""What the doctor says of runs that nobody works on, of what gathers, and of rights that end."""

from datetime import timedelta

import pytest

from packhorse.console.doctor.findings import Verdict
from packhorse.console.doctor.judge_runs import (
    PREVIEWS,
    UNFOLDED,
    Expiring,
    RunState,
    Upkeep,
    judge_expiring,
    judge_runs,
    judge_upkeep,
)

HOUR, DAY = timedelta(hours=1), timedelta(days=1)


def run(state: str, idle: timedelta, *, live: bool = False, said: str | None = None) -> RunState:
    return RunState(kind="redrive", id=7, state=state, live=live, idle=idle, by="ann (role ops)", said=said)


@pytest.mark.case("O-04")
@pytest.mark.parametrize(
    ("state", "verdict", "found"),
    [
        (run("running", HOUR), Verdict.FAILED, "nobody has worked on it for 60 min"),
        (run("running", timedelta(seconds=30)), Verdict.OK, "1 redrives"),
        (run("running", -HOUR, live=True), Verdict.OK, "1 redrives"),
        (run("halted", HOUR, said="3 came back"), Verdict.WARNING, "halted for 60 min: 3 came back"),
        (run("paused", HOUR), Verdict.OK, "1 redrives"),
        (run("paused", 2 * DAY), Verdict.WARNING, "paused for 2 d, begun by ann"),
    ],
)
def test_a_run_is_named_when_nobody_sees_to_it(state: RunState, verdict: Verdict, found: str) -> None:
    """Fails when a run whose runner is gone, or that halted, looks like one at work."""
    (finding,) = judge_runs([state])
    assert (finding.verdict, found in finding.found) == (verdict, True)
    if verdict is not Verdict.OK:
        assert "packhorse redrive resume 7" in (finding.next_step or "")


def test_no_run_is_no_finding_to_look_at() -> None:
    assert [finding.verdict for finding in judge_runs([])] == [Verdict.OK]


def test_what_gathers_is_named_once_it_is_much() -> None:
    calm = Upkeep(previews=PREVIEWS, expired=3, unfolded=UNFOLDED, unacknowledged=0)
    assert list(judge_upkeep(calm)) == []
    much = Upkeep(previews=PREVIEWS + 1, expired=3, unfolded=UNFOLDED + 1, unacknowledged=2, untold=1)
    assert [finding.check for finding in judge_upkeep(much)] == ["previews", "counts", "failures", "contacts"]


def test_rights_that_end_are_named() -> None:
    assert list(judge_expiring([])) == []
    ends = [Expiring(kind="token", name=f"ci{n}", left=n * DAY - HOUR) for n in range(5)]
    (finding,) = judge_expiring(ends)
    assert (
        finding.found
        == "rights that end: token ci0 has ended; token ci1 in 23 h; token ci2 in 47 h; and 2 more"
    )
