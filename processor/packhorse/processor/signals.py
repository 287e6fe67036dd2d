"""Named points at which a test may look in or kill; nothing happens at them in production."""

from collections.abc import Callable
from enum import StrEnum


class Point(StrEnum):
    """The points, in the order in which one message meets them."""

    OPENED = "opened"
    ATTEMPT = "attempt"
    """A handler is about to run."""
    BEFORE_RESULT = "before-result"
    """All results are written, the transaction is not committed."""
    AFTER_RESULT = "after-result"
    """The transaction is committed, the watermark stands where it was."""
    BEFORE_COPY = "before-copy"
    """The quarantine is recorded, its copy not sent."""
    AFTER_COPY = "after-copy"
    """The broker has confirmed the copy, the database does not know it."""
    AFTER_WATERMARK = "after-watermark"
    """The watermark has moved, the coordinator does not know it."""


Signal = Callable[[Point], None]


def no_signal(point: Point) -> None:
    """Do nothing."""
    del point
