"""Pages of the quarantine: what is asked for, and a position that a next page starts behind."""

import base64
import binascii
import json
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from packhorse.console.facts import QuarantinedMessage, State
from packhorse.core.errors import UsageError

MAX_LIMIT = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """Which quarantined messages are wanted; None lets all pass."""

    group: str | None = None
    topic: str | None = None
    reason: str | None = None
    type: str | None = None
    tenant: str | None = None
    state: State | None = State.QUARANTINED


@dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    """The last message of a page; the order is the newest first."""

    at: datetime
    id: UUID
    group: str
    topic: str

    def token(self) -> str:
        """Return the position as one word for a command line."""
        text = json.dumps([self.at.isoformat(), str(self.id), self.group, self.topic])
        return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """Some quarantined messages; `next` is None on the last page."""

    messages: tuple[QuarantinedMessage, ...]
    next: Position | None


def position_from(token: str) -> Position:
    """
    Return the position that *token* stands for.

    Raises:
        UsageError: It is no token of ours.
    """
    try:
        at, message_id, group, topic = json.loads(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
        return Position(at=datetime.fromisoformat(at), id=UUID(message_id), group=group, topic=topic)
    except (binascii.Error, ValueError, TypeError, AttributeError):
        raise UsageError(f"--after {token[:80]!r} is no position; take it from the page before") from None


def checked_limit(limit: int) -> int:
    """
    Return *limit* when a page may be so long.

    Raises:
        UsageError: It may not.
    """
    if not 1 <= limit <= MAX_LIMIT:
        raise UsageError(f"--limit {limit} is not allowed: 1 to {MAX_LIMIT}")
    return limit


def page_of(rows: list[QuarantinedMessage], *, limit: int) -> Page:
    """Return the page of the first *limit* of *rows*; one row more says that another page follows."""
    kept = tuple(rows[:limit])
    if len(rows) <= limit:
        return Page(messages=kept, next=None)
    last = kept[-1]
    return Page(
        messages=kept, next=Position(at=last.quarantined_at, id=last.id, group=last.group, topic=last.topic)
    )
