"""Whose turn a free lane is: messages that come for the first time, or those that come again through retry topics; pure."""

from math import inf

LIVE = 1.0
"""Seconds for which a source counts as live after its last message."""


class Sharing:
    """
    Keep count of the lanes of both, by the numbers of their jobs; for one thread. All times are monotonic seconds.

    Whoever has fewer lanes is looked at first. So under two backlogs both come to half, and neither waits for the other's end.
    While messages come for the first time, the others keep to half even where more lanes are idle, and to one of one: a redrive of
    a hundred thousand would have all of them whenever a new message comes, and interpreter and database with them.
    """

    def __init__(self, lanes: int) -> None:
        self._most = max(1, lanes // 2)
        self._out: dict[bool, set[int]] = {False: set(), True: set()}
        self._last = True
        self._live_until = -inf

    def arrived(self, now: float) -> None:
        """Take that messages came for the first time."""
        self._live_until = now + LIVE

    def begun(self, number: int, *, again: bool) -> None:
        """Take that the job *number* has a lane; *again*: its messages come again."""
        self._out[again].add(number)
        self._last = again

    def ended(self, number: int) -> None:
        """Take that the job *number* has left its lane."""
        for numbers in self._out.values():
            numbers.discard(number)

    def turns(self, now: float) -> tuple[bool, ...]:
        """Return where to look for work, in order: True stands for messages that come again."""
        first, again = len(self._out[False]), len(self._out[True])
        if now < self._live_until and again >= self._most:
            return (False,)
        is_again_first = again < first or (again == first and not self._last)
        return (True, False) if is_again_first else (False, True)
