"""The table of a job's states, and that the database holds to the same one."""

import pytest

from packhorse.console.doctor import sql as doctor_sql
from packhorse.core.jobs import (
    ALLOWED,
    ENDED,
    NEEDS_PERSON,
    REFERENCE_SUBJECT,
    IllegalTransition,
    JobState,
    check_transition,
    pairs,
)
from packhorse.producer.jobs.messages import JobReference
from packhorse.producer.migrations.versions.v0010_jobs import PAIRS


def test_the_database_allows_what_the_code_allows() -> None:
    assert pairs() == PAIRS


def test_the_subject_that_names_no_topic_is_that_of_the_messages_of_jobs() -> None:
    """Fails when a relay would wait for, or the doctor ask for, a topic that nothing is ever sent to."""
    assert JobReference.__packhorse__.subject == REFERENCE_SUBJECT
    assert REFERENCE_SUBJECT in doctor_sql.SOURCES


def test_every_state_can_be_reached_and_only_ended_ones_have_no_way_on_by_a_worker() -> None:
    reached = frozenset().union(*ALLOWED.values())
    assert reached == frozenset(JobState)
    assert {state for state in JobState if not ALLOWED[state]} == ENDED - {JobState.DISCARDED}
    assert all(JobState.RUNNING not in ALLOWED[state] for state in ENDED | NEEDS_PERSON)


@pytest.mark.parametrize("after", JobState)
def test_what_has_succeeded_stays_so(after: JobState) -> None:
    with pytest.raises(IllegalTransition, match="succeeded is final"):
        check_transition(JobState.SUCCEEDED, after)
