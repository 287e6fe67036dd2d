"""Whose turn a free lane is: messages that come for the first time, or those that come again through retry topics; pure."""

from math import inf

LIVE = 1.0
"""Seconds for which a source counts as live after its last message."""


class Sharing:
    """
    Keep count of the lanes by the numbers of their jobs; for one thread. All times are monotonic seconds.

    Whoever has fewer lanes is looked at first. So under two backlogs both come to about half, and neither waits for the other's
    end. While messages come for the first time, the others keep to half, rounded down, even where more lanes are idle, and to one
    of one: a redrive of a hundred thousand would have all of them whenever a new message comes, and interpreter and database with
    them.

    One lane is kept from slow keys while there is other work, and so is one of those that what comes again may have; where that is a
    single one and a slow key has it, there is one more for the others. What counts is how many lanes slow keys have, not how many
    are idle: when all are busy they free one at a time, and a slow key would wait until nobody else has work.
    """

    def __init__(self, lanes: int) -> None:
        self._lanes = lanes
        self._most = max(1, lanes // 2)
        self._out: dict[bool, set[int]] = {False: set(), True: set()}
        self._slow: set[int] = set()
        self._last = True
        self._live_until = -inf

    @property
    def idle(self) -> int:
        """Return how many lanes have nothing to do."""
        return self._lanes - sum(map(len, self._out.values()))

    def arrived(self, now: float) -> None:
        """Take that messages came for the first time."""
        self._live_until = now + LIVE

    def begun(self, number: int, *, again: bool, slow: bool = False) -> None:
        """Take that the job *number* has a lane; *again*: its messages come again; *slow*: their key is known as slow."""
        self._out[again].add(number)
        self._last = again
        if slow:
            self._slow.add(number)

    def ended(self, number: int) -> None:
        """Take that the job *number* has left its lane."""
        for numbers in (*self._out.values(), self._slow):
            numbers.discard(number)

    def turns(self, now: float) -> tuple[bool, ...]:
        """Return where to look for work, in order: True stands for messages that come again."""
        if self.is_full(now):
            return (False,)
        first, again = len(self._out[False]), len(self._out[True])
        is_again_first = again < first or (again == first and not self._last)
        return (True, False) if is_again_first else (False, True)

    def is_full(self, now: float) -> bool:
        """Return whether messages that come again have all the lanes that they may have now."""
        one_more = self._most == 1 < self._lanes and self._slow_again == 1
        return now < self._live_until and len(self._out[True]) >= self._most + one_more

    def bears_slow(self, now: float, *, again: bool, others_wait: bool) -> bool:
        """Return whether one more slow key may have a lane, one that comes *again* or not; *others_wait*: quick ones may have work too."""
        if others_wait and self._lanes > 1 and len(self._slow) >= self._lanes - 1:
            return False
        if not again or now >= self._live_until:
            return True
        return self._slow_again < (max(1, self._most - 1) if others_wait else self._most)

    @property
    def _slow_again(self) -> int:
        return len(self._slow & self._out[True])
