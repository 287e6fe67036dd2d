"""Pages of whatever is listed: how long one may be, and the position that the next starts behind, as one word. Pure: no I/O, no clock."""

import base64
import json
from collections.abc import Callable
from typing import TypeVar

from packhorse.core.errors import UsageError

Position = TypeVar("Position")
MOST = 1_000
"""Entries that a page has at most, where its room allows no more."""


def token_of(*parts: str | int) -> str:
    """
    Return the position that *parts* make as one word for a command line.

    >>> position_from(token_of("2026-01-02", 7), lambda *parts: parts)
    ('2026-01-02', 7)
    """
    return base64.urlsafe_b64encode(json.dumps(parts).encode()).decode().rstrip("=")


def position_from(token: str, read: Callable[..., Position]) -> Position:
    """
    Return what *read* makes of the parts of *token*; it raises ValueError or the like where they are none of ours.

    Raises:
        UsageError: It is no token of ours.
    """
    try:
        return read(*json.loads(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4))))
    except (ValueError, TypeError, AttributeError, OverflowError, RecursionError):
        raise UsageError(f"--after {token[:80]!r} is no position; take it from the page before") from None


def checked_limit(limit: int, *, most: int = MOST) -> int:
    """
    Return *limit* when a page may be so long.

    Raises:
        UsageError: It may not.
    """
    if not 1 <= limit <= most:
        raise UsageError(f"--limit {limit} is not allowed: 1 to {most}")
    return limit
