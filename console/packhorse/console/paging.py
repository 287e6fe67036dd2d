"""Pages of whatever is listed: how long one may be, and the position that the next starts behind, as one word. Pure: no I/O, no clock."""

import base64
import json
from collections.abc import Callable, Iterator
from typing import Any, Protocol, TypeVar

from packhorse.core.errors import UsageError

Position = TypeVar("Position")
MOST = 1_000
"""Entries that a page has at most, where its room allows no more."""
LOOK = 20_000
"""Entries that one question to the database looks at, where no index leads to those that fit."""
MOST_LOOKED = 1_000_000
"""Entries that one search looks at, as long as nobody says otherwise."""


class Part(Protocol):
    """A page, or a part of one: where the next goes on, and how far was looked, if that ended the look."""

    @property
    def next(self) -> Any: ...

    @property
    def looked_to(self) -> object | None: ...


Found = TypeVar("Found", bound=Part)


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


def searched(
    look_at: Callable[[Any, int, int], Found],
    size: Callable[[Found], int],
    *,
    after: object | None,
    limit: int,
    most_looked: int,
) -> Iterator[Found]:
    """
    Yield the parts of one page as they are found, until it is full, all was looked at, or *most_looked* were.

    *look_at* takes the position to go on behind, how many are wanted, and how many to look at; *size* says how many a part has.

    Raises:
        UsageError: *limit* is not allowed.
    """
    left, looked = checked_limit(limit), 0
    while True:
        look = min(LOOK, max(most_looked - looked, 1))
        part = look_at(after, left, look)
        yield part
        left, looked, after = left - size(part), looked + look, part.next
        if part.looked_to is None or left <= 0 or looked >= most_looked:
            return


def gathered(
    parts: Iterator[Found], joined: Callable[[Found, Found], Found], ended: Callable[[Found], None]
) -> Found:
    """
    Return the page that *parts* make up; Ctrl-C ends the look and keeps what was found.

    *ended* hears of each page so far whose last part looked at enough before it was full.
    """
    page = next(parts)
    try:
        while True:
            if page.looked_to is not None:
                ended(page)
            page = joined(page, next(parts))
    except (StopIteration, KeyboardInterrupt):
        return page
