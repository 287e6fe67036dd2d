"""A look that open pages share."""

import threading
from datetime import UTC, datetime

import pytest
from tests.support.wait import eventually

from packhorse.console.sharing import Shared
from packhorse.core.errors import DatabaseUnavailable, UsageError


class SetClock:
    """A clock that a test sets."""

    seconds = 100.0
    asked = 0

    def now(self) -> datetime:
        return datetime.fromtimestamp(self.seconds, UTC)

    def monotonic(self) -> float:
        self.asked += 1
        return self.seconds


def fails() -> int:
    raise UsageError("x")


def test_of_pages_that_look_one_asks_and_what_it_found_grows_old() -> None:
    """Fails when each page asks for itself, an old look is shown for ever, or one that failed is."""
    clock, asked = SetClock(), iter(range(9))
    shared: Shared[int] = Shared(clock, fresh=2.0)
    assert [shared.get(lambda: next(asked)) for _ in range(3)] == [0, 0, 0]
    clock.seconds += 2.0
    with pytest.raises(UsageError):
        shared.get(fails)
    assert [shared.get(lambda: next(asked)) for _ in range(2)] == [1, 1]


def test_whoever_waited_for_a_look_that_failed_does_not_try_again_one_after_the_other() -> None:
    """Fails when ten open pages hold ten threads for ten time-outs each while the database is away."""
    clock, tried = SetClock(), list[int]()
    shared: Shared[int] = Shared(clock, fresh=2.0)
    begun, all_wait, told = threading.Event(), threading.Event(), list[str]()

    def times_out() -> int:
        tried.append(1)
        begun.set()
        all_wait.wait(5)
        clock.seconds += 5.0
        raise DatabaseUnavailable("away")

    def ask() -> None:
        try:
            shared.get(times_out)
        except DatabaseUnavailable as error:
            told.append(str(error))

    first = threading.Thread(target=ask)
    first.start()
    begun.wait(5)
    others = [threading.Thread(target=ask) for _ in range(4)]
    for each in others:
        each.start()
    eventually(lambda: clock.asked >= 5, what="all five have come, who look at the clock then")
    all_wait.set()
    for each in (first, *others):
        each.join(5)
    assert (len(tried), told) == (1, ["away"] * 5)
    clock.seconds += 1.0
    assert shared.get(lambda: 7) == 7


def test_nobody_waits_without_a_bound_for_the_look_of_another() -> None:
    """Fails when one question to a frozen server holds all threads of the console."""
    shared: Shared[int] = Shared(SetClock(), fresh=2.0, patience=0.01)
    begun, over = threading.Event(), threading.Event()

    def frozen() -> int:
        begun.set()
        over.wait(5)
        return 1

    thread = threading.Thread(target=lambda: shared.get(frozen))
    thread.start()
    begun.wait(5)
    with pytest.raises(DatabaseUnavailable, match="has not come back"):
        shared.get(lambda: 2)
    over.set()
    thread.join(5)
    assert shared.get(lambda: 3) == 1
