"""Messages that are on record as begun though this process has lived through it."""

from collections.abc import Iterable
from uuid import UUID

MOST = 10_000
"""Starts that are remembered; what is older may be counted as one death too many."""


class Starts:
    """
    What could not be taken back, as the database was away; for all lanes of a process.

    Whoever begins such a message anew counts on from there: an outage is no death of the process that ran it.
    """

    def __init__(self) -> None:
        self._owed: dict[tuple[tuple[UUID, int], int], None] = {}

    def owe(self, spot: tuple[UUID, int], offsets: Iterable[int]) -> None:
        """Remember that those of *offsets* that are on record are to be taken back."""
        for offset in offsets:
            self._owed[spot, offset] = None
        while len(self._owed) > MOST:
            self._owed.pop(next(iter(self._owed)), None)

    def paid(self, spot: tuple[UUID, int], offsets: Iterable[int]) -> None:
        """Forget *offsets*: their starts are taken back, or others have taken their place."""
        for offset in offsets:
            self._owed.pop((spot, offset), None)

    def owes(self, spot: tuple[UUID, int], offset: int) -> bool:
        """Return whether the start of *offset* that is on record is one that this process has lived through."""
        return (spot, offset) in self._owed
