"""What the doctor says of retention."""

from datetime import timedelta

import pytest

from packhorse.console.doctor.findings import Verdict
from packhorse.console.doctor.judge_retention import Retention, judge_retention

HOUR, DAYS = timedelta(hours=1), timedelta(days=3)


@pytest.mark.parametrize(
    ("age", "owned", "overdue", "verdict", "said"),
    [
        (None, True, (), Verdict.OK, "has not run yet"),
        (HOUR, True, (), Verdict.OK, "14 days are kept"),
        (DAYS, False, (), Verdict.OK, "nothing is overdue"),
        (DAYS, True, (), Verdict.WARNING, "3 d ago"),
        (
            HOUR,
            True,
            ("outbox_20260801 stays: row x",),
            Verdict.FAILED,
            "1 overdue: outbox_20260801 stays: row x",
        ),
        (HOUR, True, tuple("abcde"), Verdict.FAILED, "5 overdue: a; b; c; and 2 more"),
    ],
)
@pytest.mark.case("B-10")
def test_the_doctor_tells_what_is_overdue(
    age: timedelta | None, owned: bool, overdue: tuple[str, ...], verdict: Verdict, said: str
) -> None:
    """Fails when the doctor calls a database well in which a partition stays past its time."""
    (found,) = judge_retention(Retention(age=age, owned=owned, keep_days=14, overdue=overdue))
    assert found.verdict is verdict
    assert said in found.found


def test_a_row_that_is_gone_is_told_with_the_way_to_mend_it() -> None:
    (found,) = judge_retention(None)
    assert "INSERT INTO packhorse.retention" in str(found.next_step)
