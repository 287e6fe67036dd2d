"""Records of one partition that share no chunk, because something went wrong while they ran."""

from collections.abc import Collection
from dataclasses import dataclass

from packhorse.processor.outcomes import Reason
from packhorse.processor.partition.state import Limits

MOST = 10_000
"""Suspects that are remembered; a batch that may have killed a process is one for each of its members."""


@dataclass(slots=True)
class Suspect:
    """
    What is known against one record.

    Attributes:
        contended: Runs alone that lost to another transaction.
        lost: Runs that ended with the connection while the database was well.
        down: Times that it said that a system is down, while the system answered others.
        crashed: A process that had it in hand is gone.
        begun: A process is gone that ran it alone.
        stuck: Its handler did not come back from its time-out.
    """

    contended: int = 0
    lost: int = 0
    down: int = 0
    crashed: bool = False
    begun: bool = False
    stuck: bool = False


class Suspects(dict[int, Suspect]):
    """Suspects by offset; for one thread."""

    def of(self, offset: int) -> Suspect:
        """Return the suspect at *offset*, a new one if there is none."""
        if offset not in self and len(self) >= MOST:
            del self[next(iter(self))]
        return self.setdefault(offset, Suspect())

    def charge(self, offset: int, limits: Limits) -> Reason | None:
        """Return why the record at *offset* is charged instead of being run; None when it may run."""
        suspect = self.get(offset)
        if suspect is None:
            return None
        if suspect.stuck:
            return Reason.TIMEOUT
        return Reason.CONNECTION_LOST if suspect.lost >= limits.suspected else None

    def barred(self, *, alone: bool) -> Collection[int]:
        """Return the offsets that must not begin while one that is put on record runs; *alone*: that one was begun before."""
        return {offset for offset, one in self.items() if one.begun or (alone and one.crashed)}

    def clear_below(self, offset: int) -> None:
        """Forget those below *offset*, which are dealt with."""
        for one in [at for at in self if at < offset]:
            del self[one]
