"""How the run of a job is judged that ends with an error of ours."""

from typing import Any
from uuid import UUID

import pytest

from packhorse.core.errors import OwnershipLost
from packhorse.processor import EffectInDoubt
from packhorse.processor.jobs.runs import JobRun
from packhorse.processor.outcomes import Reason
from packhorse.processor.running.job_handling import _raised
from packhorse.processor.running.work import Failure

RUN = JobRun(UUID(int=1), UUID(int=2), 1)
DOUBT = EffectInDoubt(UUID(int=1), "charge", "why")
ANY_HANDLER: Any = None


@pytest.mark.case("J-08")
@pytest.mark.parametrize(
    "error", [DOUBT, ExceptionGroup("tasks", [ValueError(), ExceptionGroup("inner", [DOUBT])])]
)
def test_a_doubt_stops_the_job_for_a_person_also_out_of_a_group_of_tasks(error: Exception) -> None:
    """Fails when a doubt counts as a failure that may pass: it would be met again in each attempt, and end as any failure."""
    ran = _raised(RUN, error, ANY_HANDLER)
    assert (ran.failure, ran.reason) == (Failure.PERMANENT, Reason.UNCERTAIN.value)
    assert "packhorse job resolve" in (ran.error or "")


def test_a_lost_lease_is_noted_out_of_a_group_of_tasks() -> None:
    run = JobRun(UUID(int=1), UUID(int=2), 1)
    _raised(run, ExceptionGroup("tasks", [OwnershipLost("gone"), DOUBT]), ANY_HANDLER)
    assert run.lost
