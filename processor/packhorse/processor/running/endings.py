"""How the run of a chunk can break off."""

from packhorse.core.errors import PackhorseError
from packhorse.processor.running.work import Ran


class Contention(PackhorseError):
    """The transaction lost to another one: a deadlock, a serialization failure, a lock time-out."""

    retryable = True


class Stopped(PackhorseError):
    """The process must stop: a handler asked for it, or something happened that has no safe way on."""


class GivenUp(PackhorseError):
    """The time to finish is over: the run in hand was cancelled and has no outcome."""


class Down(PackhorseError):
    """
    A handler says that a system behind it is down.

    Attributes:
        gate: The handler's.
    """

    retryable = True

    def __init__(self, gate: str, text: str) -> None:
        super().__init__(text)
        self.gate = gate


class Probed(PackhorseError):
    """
    A probe has failed; it is not charged, and its handler goes on waiting.

    Attributes:
        ran: How its run ended.
    """

    retryable = True

    def __init__(self, ran: Ran) -> None:
        super().__init__(ran.error)
        self.ran = ran
