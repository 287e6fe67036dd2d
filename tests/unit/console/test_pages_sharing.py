"""A look that open pages share."""

from datetime import UTC, datetime

import pytest

from packhorse.console.pages.sharing import Shared
from packhorse.core.errors import UsageError


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
