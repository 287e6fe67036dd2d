"""What keeps the counts of the quarantine short, without a database."""

from datetime import UTC, datetime

from packhorse.console.quarantine.groups.folding import BUSY, Folding
from packhorse.console.quarantine.groups.model import MOST_CHANGES, uncounted_line


class Backlog:
    """Portions that wait; each takes a while to add, by a clock of its own."""

    def __init__(self, portions: int, *, each: float = 0.1) -> None:
        self.left, self._each, self._at = portions, each, 0.0

    def waits(self) -> bool:
        return self.left > 0

    def fold(self) -> bool:
        self.left -= 1
        self._at += self._each
        return self.left > 0

    def now(self) -> datetime:
        return datetime.fromtimestamp(self._at, UTC)

    def monotonic(self) -> float:
        return self._at


def test_a_look_for_work_folds_for_a_while_and_goes_on_at_the_next() -> None:
    """Fails when a large backlog keeps the other runners from their turn, or is left as it is."""
    backlog = Backlog(25)
    folding = Folding(backlog, backlog)
    assert folding.look()
    assert 0 < backlog.left < 25
    assert backlog.monotonic() < BUSY + 0.2
    while folding.look():
        pass
    assert backlog.left == 0


def test_at_the_end_no_further_portion_is_begun() -> None:
    backlog = Backlog(25)
    folding = Folding(backlog, backlog)
    folding.stop()
    folding.look()
    assert backlog.left == 24


def test_what_is_not_counted_is_said_with_its_number_up_to_the_bound() -> None:
    assert "more than 50,000 changes" in uncounted_line(MOST_CHANGES + 1)
