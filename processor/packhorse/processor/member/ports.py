"""What the desk works with, as ports: the broker's client, lanes and marker."""

from collections.abc import Callable
from typing import Protocol

from packhorse.processor.member.jobs import Job, Move, Place

Positions = dict[Place, tuple[int, int | None]]
Holding = Callable[[Place], bool]
"""Says whether a person's pause holds a partition."""


class Fetcher(Protocol):
    """What the broker's client does for one partition; none of it blocks for long."""

    def attach(self, topic: str, partition: int, offset: int) -> None:
        """Fetch from *offset*, for the first time in this ownership."""

    def seek(self, topic: str, partition: int, offset: int) -> bool:
        """Fetch from *offset* from now on; False when that must be tried again."""

    def pause(self, topic: str, partition: int) -> None:
        """Stop fetching."""

    def resume(self, topic: str, partition: int) -> None:
        """Fetch again."""

    def commit(self, topic: str, partition: int, position: int, leader_epoch: int | None) -> None:
        """Send a commit; how it ended is reported later."""


class Works(Protocol):
    """The lanes and the marker; neither call blocks."""

    def submit(self, job: Job) -> None:
        """Take *job*; it is reported once."""

    def mark(self, move: Move) -> None:
        """Move a watermark; how that ended is reported."""
