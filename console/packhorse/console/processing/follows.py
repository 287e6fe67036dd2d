"""Whether the processes of a group follow a pause or resume, by what they say. Pure: no I/O, no clock."""

from dataclasses import dataclass
from datetime import datetime

from packhorse.processor.pausing.pauses import Pause


@dataclass(frozen=True, slots=True, kw_only=True)
class Follows:
    """
    What a living process says of the partitions that an order is about.

    Attributes:
        partitions: Those that it has; `paused` of them it says are paused.
        in_hand: Chunks of them that run.
    """

    host: str
    pid: int
    seen_at: datetime
    partitions: int
    paused: int
    in_hand: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PauseAct:
    """The last pause or resume of just that on the record."""

    act: str
    actor: str
    at: datetime
    why: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Following:
    """
    Whether a pause or resume is followed.

    Attributes:
        pause: Of just that; None: it is not paused.
        others: Pauses that hold it, or a part of it, besides.
        last: What somebody last did with just that; None: nothing on record of late.
    """

    at: datetime
    pause: Pause | None
    others: tuple[Pause, ...]
    last: PauseAct | None
    processes: tuple[Follows, ...]

    @property
    def concerned(self) -> tuple[Follows, ...]:
        """Return the living processes that have partitions that it is about."""
        return tuple(each for each in self.processes if each.partitions)

    @property
    def since(self) -> datetime | None:
        """Return when what stands was ordered."""
        if self.pause is not None:
            return self.pause.at
        return None if self.last is None else self.last.at

    @property
    def following(self) -> tuple[Follows, ...]:
        """Return those of the concerned that have written since then that they do what was ordered."""
        return tuple(each for each in self.concerned if self._follows(each))

    @property
    def in_hand(self) -> int:
        """Return how many chunks of it still run."""
        return sum(each.in_hand for each in self.concerned)

    def _follows(self, process: Follows) -> bool:
        if self.since is not None and process.seen_at <= self.since:
            return False
        if self.pause is not None:
            return process.paused == process.partitions
        return not process.paused or bool(self.others)
