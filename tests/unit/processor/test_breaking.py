"""Brake and breaker: when a handler stops, how it is tried, when it goes on."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from packhorse.core.errors import SettingsError
from packhorse.processor.breaking.brake import BrakeSettings, BrakeState, Seen, decide, seen
from packhorse.processor.breaking.probing import ProbeSettings, Telling
from packhorse.processor.breaking.stops import Cause, Stops
from packhorse.processor.running.work import (
    RETURNED,
    Failure,
    Ran,
)

H = "unit.handler"
FAILS = Ran(Failure.TEMPORARY, "failed")
IS_DOWN = Ran(Failure.DOWN, "down")
ENDS = [
    RETURNED,
    Ran(Failure.SKIP),
    Ran(Failure.LATER, "later"),
    FAILS,
    Ran(Failure.TEMPORARY, "timeout"),
    Ran(Failure.PERMANENT, "permanent"),
    Ran(Failure.CONTENTION, "contention"),
    Ran(Failure.CONNECTION),
    IS_DOWN,
    None,
]


def told(state: BrakeState, failures: list[bool], limits: BrakeSettings | None = None) -> BrakeState:
    return decide(state, seen(failures), now=0.0, jitter=0.0, settings=limits or BrakeSettings())[0]


def braked() -> Stops:
    stops = Stops()
    assert stops.seen(H, Seen(30, 2**30 - 1), now=0.0, jitter=0.0)
    return stops


def opened() -> Stops:
    stops = Stops()
    assert stops.down(H, now=0.0, jitter=0.0)
    return stops


@pytest.mark.case("T-21")
@given(st.lists(st.integers(1, 50), min_size=30), st.integers(0, 200))
def test_when_all_fail_it_brakes_within_thirty_whatever_went_well_before(
    chunks: list[int], before: int
) -> None:
    """Fails when the run is not looked at: after a hundred good ones fifty would have to fail."""
    state = told(BrakeState(), [False] * before)
    failed = 0
    for chunk in chunks:
        state = told(state, [True] * chunk)
        failed += chunk
        assert state.braked == (failed >= 30)
        if state.braked:
            break


@pytest.mark.case("T-21")
@given(st.lists(st.lists(st.booleans(), max_size=70), max_size=30))
def test_it_brakes_exactly_by_the_last_hundred(chunks: list[list[bool]]) -> None:
    """Fails when what fell out of the window still counts, or when chunks are counted in another way than their messages."""
    state, all_seen = BrakeState(), []
    for chunk in chunks:
        state = told(state, chunk)
        all_seen += chunk
        last = all_seen[-100:]
        too_many = sum(last) >= 30 and sum(last) * 2 >= len(last)
        assert state.braked == (any(chunk) and (too_many or (len(last) >= 30 and all(last[-30:]))))
        if state.braked:
            return
        assert (state.seen, state.failures) == (len(last), sum(last))


@pytest.mark.case("T-21")
@given(st.integers(2, 400), st.integers(1, 60))
def test_a_poison_message_among_good_ones_never_brakes(every: int, chunk: int) -> None:
    """Fails when a few failures are enough: 1 of 2 is half of them, but not thirty of the last hundred in a row."""
    state = BrakeState()
    row = [at % max(every, 4) == 0 for at in range(600)]
    for at in range(0, len(row), chunk):
        state = told(state, row[at : at + chunk])
        assert not state.braked


def test_a_clean_chunk_after_clean_ones_changes_nothing() -> None:
    """Fails when the path of all messages that go well makes new objects."""
    state = told(BrakeState(), [False] * 100)
    assert told(state, [False] * 500) is state


@pytest.mark.case("T-21")
def test_one_success_closes_it_and_what_failed_before_counts_no_more() -> None:
    """Fails when the window stays full: the next failure would brake again, and the poison never be charged."""
    stops = braked()
    stops.sent(H, "a", now=1.0)
    (news,) = stops.ended(H, "a", RETURNED, now=2.0, jitter=0.0)
    assert (news.cause, news.tell.what, news.tell.seconds) == (Cause.BRAKE, Telling.RESUMED, 2.0)
    assert stops.wait(H, now=2.0) is None
    assert not stops.seen(H, Seen(29, 2**29 - 1), now=2.0, jitter=0.0)
    assert stops.wait(H, now=2.0) is None
    assert stops.seen(H, Seen(1, 1), now=2.0, jitter=0.0)


@pytest.mark.case("T-21")
def test_what_ran_before_it_braked_does_not_release_it() -> None:
    """Fails when any success closes it: one good message in each chunk in hand would keep quarantine filling."""
    stops = braked()
    assert not stops.seen(H, Seen(50, 0), now=0.5, jitter=0.0)
    assert not stops.ended(H, "not the probe", RETURNED, now=0.5, jitter=0.0)
    assert stops.wait(H, now=0.5) == 0.5


@pytest.mark.case("T-21")
def test_each_probe_is_another_message() -> None:
    """Fails when the first is probed again: one poison message at the front would keep the handler stopped for ever."""
    stops, now = braked(), 1.0
    probed = []
    for _ in range(5):
        probe = stops.choose(H, ["poison", "b", "c"])
        assert probe is not None
        probed.append(probe)
        stops.sent(H, probe, now=now)
        now += 100
        stops.ended(H, probe, FAILS, now=now, jitter=0.0)
    assert probed == ["poison", "b", "c", "poison", "b"]
    assert stops.choose(H, []) is None


@pytest.mark.case("T-20")
@pytest.mark.parametrize("stops", [braked(), opened()])
def test_waits_grow_to_a_minute_and_reminders_are_few(stops: Stops) -> None:
    """Fails when each probe that fails is told: an outage of an hour would be a line a minute and processor, or more."""
    bad = FAILS if stops.stopped(now=0.0)[0].cause is Cause.BRAKE else IS_DOWN
    now, waits, lines = 0.0, [], 0
    while now < 3600:
        wait = stops.wait(H, now=now)
        assert wait is not None
        waits.append(wait)
        now += wait
        assert stops.wait(H, now=now) == 0.0
        stops.sent(H, now, now=now)
        assert stops.wait(H, now=now) == float("inf")
        lines += len(stops.ended(H, now, bad, now=now, jitter=0.0))
    assert waits[:7] == [1, 2, 4, 8, 16, 32, 60]
    assert set(waits[7:]) == {60}
    assert lines <= 6
    (found,) = stops.stopped(now=now)
    assert (found.seconds, found.probes) == (now, len(waits))


@pytest.mark.case("T-20")
@pytest.mark.parametrize("answer", [RETURNED, FAILS, Ran(Failure.PERMANENT, "permanent"), Ran(Failure.SKIP)])
def test_any_answer_closes_the_breaker(answer: Ran) -> None:
    """Fails when only a success closes it: a message that the system refuses would keep it open."""
    stops = opened()
    stops.sent(H, "a", now=1.0)
    (news,) = stops.ended(H, "a", answer, now=1.5, jitter=0.0)
    assert (news.cause, news.tell.what) == (Cause.BREAKER, Telling.RESUMED)
    assert stops.wait(H, now=1.5) is None
    assert "takes messages again after 2 s" in str(news)


@pytest.mark.case("T-20")
@pytest.mark.parametrize(
    "end", [None, Ran(Failure.CONTENTION), Ran(Failure.CONNECTION), Ran(Failure.TEMPORARY, "timeout")]
)
def test_a_probe_that_says_nothing_is_followed_by_another_after_the_same_wait(end: Ran | None) -> None:
    """Fails when a revoked partition's probe counts as an answer, or is waited for for ever."""
    stops = opened()
    stops.sent(H, "a", now=1.0)
    assert not stops.ended(H, "a", end, now=1.0, jitter=0.0)
    assert stops.wait(H, now=1.0) == 1.0


def test_a_probe_of_the_brake_that_finds_the_system_down_opens_the_breaker() -> None:
    stops = braked()
    stops.sent(H, "a", now=1.0)
    (news,) = stops.ended(H, "a", IS_DOWN, now=1.0, jitter=0.0)
    assert (news.cause, news.alarms) == (Cause.BREAKER, True)
    assert [one.cause for one in stops.stopped(now=1.0)] == [Cause.BRAKE, Cause.BREAKER]


def test_handlers_are_stopped_apart() -> None:
    stops = opened()
    assert stops.wait("another", now=0.0) is None


@pytest.mark.parametrize(
    "wrong",
    [{"least": 0}, {"least": 101}, {"run": 0}, {"run": 101}, {"ratio": 0}, {"ratio": 1.5}, {"window": 0}],
)
def test_settings_with_which_it_could_never_brake_are_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(SettingsError, match="is not allowed"):
        BrakeSettings(**wrong)  # type: ignore[arg-type]
    with pytest.raises(SettingsError, match="is not allowed"):
        ProbeSettings(remembered=0)


class AHandler(RuleBasedStateMachine):
    """
    A loop that hands out chunks and probes as `Stops` allows, with late and lost ends.

    Fails when two probes can be in hand at once, when a success leaves it stopped, when a stop is not told or told twice.
    """

    def __init__(self) -> None:
        super().__init__()
        self.stops = Stops()
        self.now = 0.0
        self.number = 0
        self.probe: int | None = None
        self.stopped: set[Cause] = set()
        self.probed_for: set[Cause] = set()

    def hear(self, news: list) -> None:  # type: ignore[type-arg]
        for one in news:
            if one.tell.what is Telling.STOPPED:
                assert one.cause not in self.stopped
                self.stopped.add(one.cause)
            if one.tell.what is Telling.RESUMED:
                self.stopped.remove(one.cause)

    @rule(seconds=st.floats(0, 100))
    def time_passes(self, seconds: float) -> None:
        self.now += seconds

    @rule(failures=st.lists(st.booleans(), max_size=60) | st.just([True] * 40), jitter=st.floats(0, 0.99))
    def a_chunk_ends(self, failures: list[bool], jitter: float) -> None:
        self.hear(self.stops.seen(H, seen(failures), now=self.now, jitter=jitter))

    @rule(jitter=st.floats(0, 0.99))
    def a_message_of_a_chunk_finds_it_down(self, jitter: float) -> None:
        self.hear(self.stops.down(H, now=self.now, jitter=jitter))

    @precondition(lambda self: self.stops.wait(H, now=self.now) == 0)
    @rule()
    def a_probe_goes(self) -> None:
        assert self.probe is None
        self.probed_for = set(self.stopped)
        self.number += 1
        self.probe = self.number
        self.stops.sent(H, self.probe, now=self.now)

    @precondition(lambda self: self.probe is not None)
    @rule(end=st.sampled_from(ENDS), jitter=st.floats(0, 0.99))
    def the_probe_ends(self, end: Ran | None, jitter: float) -> None:
        self.hear(self.stops.ended(H, self.probe, end, now=self.now, jitter=jitter))
        if end is RETURNED:
            assert not self.stopped & self.probed_for
        self.probe = None

    @rule(end=st.sampled_from(ENDS), number=st.integers(-5, -1))
    def another_ends(self, end: Ran | None, number: int) -> None:
        if end is not IS_DOWN:
            assert not self.stops.ended(H, number, end, now=self.now, jitter=0.0)

    @invariant()
    def what_is_told_is_so(self) -> None:
        wait = self.stops.wait(H, now=self.now)
        assert (wait is None) == (not self.stopped)
        assert {one.cause for one in self.stops.stopped(now=self.now)} == self.stopped
        if self.probe is not None:
            assert wait == float("inf")


TestAHandler = pytest.mark.case("T-20", "T-21")(AHandler.TestCase)
TestAHandler.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)


@pytest.mark.case("T-20")
@pytest.mark.case("T-21")
def test_a_probe_that_is_dealt_with_and_was_not_run_costs_no_wait() -> None:
    """Fails when a handler with a backlog of parked or known messages stays stopped for a minute for each of them."""
    stops = Stops()
    stops.down("h", now=0.0, jitter=0.0)
    stops.sent("h", 1, now=10.0)
    stops.ended("h", 1, None, now=10.0, jitter=0.0, dealt=True)
    assert stops.wait("h", now=10.0) == 0
    stops.sent("h", 2, now=10.0)
    stops.ended("h", 2, None, now=10.0, jitter=0.0)
    assert (stops.wait("h", now=10.0) or 0) > 0
