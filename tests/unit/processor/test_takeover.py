"""What a group's times bound and how they are told."""

import pytest

from packhorse.console.doctor.findings import Verdict
from packhorse.console.doctor.judge_takeover import judge_takeover
from packhorse.processor.takeover import GroupTimes, below_session, classic_times, consumer_times

QUICK = consumer_times({"session.timeout.ms": "6000", "heartbeat.interval.ms": "1000"}, whose="brokers")
SLOW = consumer_times({}, whose="assumed")


@pytest.mark.parametrize(
    ("times", "kill", "stop"),
    [
        (QUICK, (5.0, 8.0), 2.0),
        (SLOW, (40.0, 51.0), 6.0),
        (classic_times({}), (42.0, 51.0), 6.0),
        (classic_times({"session.timeout.ms": 6000, "heartbeat.interval.ms": "2000"}), (4.0, 10.0), 4.0),
        (classic_times({"session.timeout.ms": "soon"}), (42.0, 51.0), 6.0),
    ],
)
def test_a_take_over_lasts_as_long_as_the_session_and_two_words(
    times: GroupTimes, kill: tuple[float, float], stop: float
) -> None:
    assert (times.after_kill, times.after_stop) == (kill, stop)


@pytest.mark.parametrize(
    ("seconds", "times", "bounded"),
    [(40.0, QUICK, 5.4), (3.0, QUICK, 3.0), (40.0, SLOW, 40.0), (60.0, SLOW, 40.5)],
)
def test_a_frozen_owners_transaction_ends_before_its_session(
    seconds: float, times: GroupTimes, bounded: float
) -> None:
    """Fails when the bound is the session time-out itself: the next owner would wait for a lock of the first."""
    assert below_session(seconds, times) == pytest.approx(bounded)


def test_the_doctor_tells_the_times_and_what_makes_them_shorter() -> None:
    quick, slow, old = judge_takeover({"a": QUICK, "b": SLOW, "c": classic_times({})})
    assert (quick.verdict, quick.check, quick.next_step) == (Verdict.OK, "take-over a", None)
    assert quick.found == (
        "after a kill 5 to 8 s, after a clean stop up to 2 s (protocol consumer, session time-out 6 s, as the brokers' "
        "setting says)"
    )
    assert slow.verdict is Verdict.WARNING
    assert "group.consumer.session.timeout.ms=6000" in str(slow.next_step)
    assert "--entity-type groups --entity-name b" in str(slow.next_step)
    assert '"session.timeout.ms": 6000' in str(old.next_step)
