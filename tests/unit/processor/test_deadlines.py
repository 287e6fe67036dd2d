"""Time-outs of handlers: cancelled when due and again, told of when stuck, and never after the handler has returned."""

import threading
from collections.abc import Iterator

import pytest
from tests.support.wait import eventually

from packhorse.core.clock import SYSTEM_CLOCK
from packhorse.processor.running.deadlines import Deadlines

SOON = 0.01
LONG = 60.0


@pytest.fixture
def deadlines() -> Iterator[Deadlines]:
    made = Deadlines(SYSTEM_CLOCK, grace=0.05)
    yield made
    made.close()


class Lane:
    def __init__(self, deadlines: Deadlines, again: float | None = 0.01) -> None:
        self.cancelled = 0
        self.stuck = threading.Event()
        self.deadline = deadlines.slot(self.cancel, self.stuck.set, again=again)

    def cancel(self) -> None:
        self.cancelled += 1


def test_a_run_without_a_limit_starts_no_thread(deadlines: Deadlines) -> None:
    lane = Lane(deadlines)
    lane.deadline.start(None)
    assert not lane.deadline.stop()
    assert not [one for one in threading.enumerate() if one.name == "packhorse-deadlines"]


def test_a_run_within_its_limit_is_left_alone(deadlines: Deadlines) -> None:
    slow, quick = Lane(deadlines), Lane(deadlines)
    slow.deadline.start(SOON)
    quick.deadline.start(LONG)
    assert not quick.deadline.stop()
    eventually(lambda: slow.cancelled, what="the slow one is cancelled")
    assert slow.deadline.stop()
    assert quick.cancelled == 0


def test_it_is_cancelled_again_until_it_is_stuck_and_that_is_told_once(deadlines: Deadlines) -> None:
    lane, other = Lane(deadlines), Lane(deadlines)
    lane.deadline.start(SOON)
    assert lane.stuck.wait(10)
    assert lane.cancelled > 1
    lane.stuck.clear()
    seen = lane.cancelled
    other.deadline.start(SOON)
    assert other.stuck.wait(10)
    assert not lane.stuck.is_set()
    assert lane.cancelled <= seen + 1
    assert lane.deadline.fired
    assert lane.deadline.stop()
    assert not lane.deadline.fired


def test_a_shorter_limit_that_comes_later_is_kept(deadlines: Deadlines) -> None:
    """Fails when the thread sleeps until the time that it knew of."""
    long, short = Lane(deadlines), Lane(deadlines)
    long.deadline.start(LONG)
    short.deadline.start(SOON)
    eventually(lambda: short.cancelled, what="the short one is cancelled")
    assert not long.deadline.stop()


def test_no_cancelling_goes_on_after_the_run_has_ended(deadlines: Deadlines) -> None:
    """Fails when `stop` does not wait for a cancelling that is on its way."""
    began, may_end = threading.Event(), threading.Event()
    ended: list[bool] = []

    def cancel() -> None:
        began.set()
        may_end.wait(10)
        ended.append(True)

    deadline = deadlines.slot(cancel, lambda: None)
    deadline.start(SOON)
    assert began.wait(10)
    threading.Timer(SOON, may_end.set).start()
    assert deadline.stop()
    assert ended == [True]


def test_errors_of_the_callbacks_stop_nothing(deadlines: Deadlines) -> None:
    def fails() -> None:
        raise OSError

    failing, lane = deadlines.slot(fails, fails), Lane(deadlines)
    failing.start(SOON)
    lane.deadline.start(SOON)
    assert lane.stuck.wait(10)
    failing.start(SOON)
    lane.stuck.clear()
    lane.deadline.start(SOON)
    assert lane.stuck.wait(10)


def test_where_it_is_cancelled_once_it_is_told_of_all_the_same(deadlines: Deadlines) -> None:
    lane = Lane(deadlines, again=None)
    lane.deadline.start(SOON)
    assert lane.stuck.wait(10)
    assert lane.cancelled == 1
    assert lane.deadline.stop_soon()


def test_a_slot_that_is_forgotten_is_not_watched(deadlines: Deadlines) -> None:
    gone, lane = Lane(deadlines), Lane(deadlines)
    gone.deadline.start(SOON * 5)
    deadlines.forget(gone.deadline)
    deadlines.forget(gone.deadline)
    lane.deadline.start(SOON * 5)
    assert lane.stuck.wait(10)
    assert gone.cancelled == 0


@pytest.mark.case("X-04")
def test_a_thread_that_can_not_be_had_ends_no_other_time_out(
    deadlines: Deadlines, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fails when the watching thread dies of it, which nobody would see: no handler would be cancelled any more."""
    first, start, refused = Lane(deadlines), threading.Thread.start, [1, 1]

    def start_or_not(thread: threading.Thread) -> None:
        if thread.name == "packhorse-cancel" and refused:
            refused.pop()
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", start_or_not)
    first.deadline.start(SOON)
    assert first.stuck.wait(10)
    other = Lane(deadlines)
    other.deadline.start(SOON)
    eventually(lambda: other.cancelled, what="another one is cancelled")
    assert other.deadline.stop()
