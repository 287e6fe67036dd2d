"""Which jobs of a chunk are still with the lane that claimed them; the clock is turned by hand."""

from collections.abc import Callable
from typing import Any, cast
from uuid import UUID

from packhorse.processor.jobs.runs import JobRun, Phase
from packhorse.processor.running.deadlines import Deadlines
from packhorse.processor.running.hands import PATIENCE, LaneHands

Told = tuple[str, frozenset[int], frozenset[int]]


class Clock:
    """The one deadline of one lane: it passes when a test says so."""

    def __init__(self) -> None:
        self.started = 0
        self.passes: Callable[[], None] = lambda: None

    def slot(self, cancel: Callable[[], None], stuck: Callable[[], None], *, again: float | None) -> "Clock":
        del stuck, again
        self.passes = cancel
        return self

    def start(self, seconds: float) -> None:
        assert seconds == PATIENCE
        self.started += 1

    def stop_soon(self) -> bool:
        return False


class Lane:
    """The hands of one lane, with three runs in them; *order* is what others heard, in order."""

    def __init__(self) -> None:
        self.clock, self.order = Clock(), list[Any]()
        self.runs = {at: JobRun(UUID(int=at), UUID(int=100 + at), 1) for at in (1, 2, 3)}
        self.hands = LaneHands[str](
            cast("Deadlines", self.clock), self.give_back, lambda *told: self.order.append(told)
        )
        self.hands.begin("chunk")
        self.hands.open(self.runs)

    def give_back(self, runs: list[JobRun]) -> None:
        assert all(run.phase is Phase.IDLE for run in runs)
        self.order.append([run.job_id.int for run in runs])


def test_what_ended_is_told_of_first_and_the_rest_once_it_was_given_back() -> None:
    """Fails when another lane is sent a job that is not given back, or goes on with one that this lane could still begin."""
    lane = Lane()
    assert lane.hands.take([1]) == [1]
    lane.runs[1].phase = Phase.ENDED
    assert lane.hands.take([2]) == [2]
    lane.clock.passes()
    assert lane.order == [("chunk", {1}, frozenset()), [3], ("chunk", frozenset(), {3})]
    assert [lane.hands.take([at]) for at in (1, 2, 3)] == [[], [2], []]
    assert [lane.hands.has(at) for at in (1, 2, 3)] == [False, True, False]
    assert lane.hands.mine(lane.runs.values()) == [lane.runs[2]]
    assert lane.runs[2].phase is Phase.RUNNING


def test_the_time_runs_from_the_first_body_on_and_once_a_chunk() -> None:
    lane = Lane()
    assert lane.clock.started == 0
    lane.hands.take([1])
    lane.hands.take([2])
    assert lane.clock.started == 1
    lane.hands.end()
    lane.hands.begin("next")
    lane.hands.open({4: lane.runs[1], 5: lane.runs[2]})
    lane.hands.take([4])
    assert lane.clock.started == 2


def test_of_one_alone_and_of_what_is_on_record_nothing_is_handed_on() -> None:
    """Fails when ends that were recorded are recorded once more beside the lanes."""
    lane = Lane()
    lane.hands.open({1: lane.runs[1]})
    lane.hands.take([1])
    assert lane.clock.started == 0
    lane.hands.open(lane.runs)
    lane.hands.take([1, 2])
    lane.hands.drop([1, 2])
    lane.hands.take([3])
    lane.clock.passes()
    assert lane.order == []


def test_after_a_time_in_which_all_were_worked_on_there_is_another() -> None:
    """Fails when ends that are recorded one by one, after all together have lost to a lock, wait for the one that is locked."""
    lane = Lane()
    lane.hands.take([1, 2, 3])
    lane.clock.passes()
    assert lane.order == []
    lane.hands.take([1])
    assert lane.clock.started == 2
    lane.clock.passes()
    assert lane.order[-1] == ("chunk", frozenset(), {2, 3})


def test_a_chunk_that_has_ended_hands_on_nothing_and_the_next_has_all_it_takes() -> None:
    """Fails when the time of one chunk passes in the next, or what was handed on of one is missing in the other."""
    lane = Lane()
    lane.hands.take([1])
    lane.clock.passes()
    lane.hands.end()
    lane.order.clear()
    lane.clock.passes()
    lane.hands.begin("next")
    lane.hands.open(lane.runs)
    assert lane.hands.take([1, 2, 3]) == [1, 2, 3]
    assert lane.order == []
