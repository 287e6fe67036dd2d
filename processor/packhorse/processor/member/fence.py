"""The sign that a job counts for nothing any more."""

from packhorse.processor.running.endings import GivenUp


class Fence:
    """Say whether a job still counts; raised by the loop when its partition goes or the time to finish is over."""

    __slots__ = ("up",)

    def __init__(self) -> None:
        self.up = False

    def check(self) -> None:
        """Raise GivenUp when what is done from here on would count for nothing."""
        if self.up:
            raise GivenUp("the partition went away, or the time to finish is over")


NO_FENCE = Fence()
"""Of what a lease guards, whoever has the partition."""
