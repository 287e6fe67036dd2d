"""How the run of a batch can break off, and where a batch ends before its last member."""

from dataclasses import dataclass

from packhorse.core.errors import PackhorseError
from packhorse.processor.partition.events import Ended


class Contention(PackhorseError):
    """The transaction lost to another one: a deadlock, a serialization failure, a lock time-out."""

    retryable = True


class Stopped(PackhorseError):
    """The process must stop: a handler asked for it, or something happened that has no safe way on."""


class GivenUp(PackhorseError):
    """The time to finish is over: the run in hand was cancelled and has no outcome."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """Why a transaction's members end before the batch's: the offset of the first that is left, and what follows."""

    offset: int
    ended: Ended = Ended.WELL
    wait: float = 0.0
    away: str = ""
    error: str = ""
