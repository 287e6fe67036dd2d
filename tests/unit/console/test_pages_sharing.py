"""A look that open pages share."""

import threading
from datetime import UTC, datetime

import pytest

from packhorse.console.pages.sharing import Shared
from packhorse.core.errors import DatabaseUnavailable, UsageError


class SetClock:
    """A clock that a test sets."""

    seconds = 100.0

    def now(self) -> datetime:
        return datetime.fromtimestamp(self.seconds, UTC)

    def monotonic(self) -> float:
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
    begun, told = threading.Event(), list[str]()

    def times_out() -> int:
        tried.append(1)
        begun.set()
        while len(waiting) < 4 or not all(each.is_alive() for each in waiting):
            pass
        clock.seconds += 5.0
        raise DatabaseUnavailable("away")

    def ask() -> None:
        try:
            shared.get(times_out)
        except DatabaseUnavailable as error:
            told.append(str(error))

    waiting: list[threading.Thread] = []
    first = threading.Thread(target=ask)
    first.start()
    begun.wait(5)
    others = [threading.Thread(target=ask) for _ in range(4)]
    for each in others:
        each.start()
        waiting.append(each)
    for each in (first, *others):
        each.join(5)
    assert (len(tried), told) == (1, ["away"] * 5)
    clock.seconds += 1.0
    assert shared.get(lambda: 7) == 7
