"""Pages of the quarantine: what is asked for, and a position that a next page starts behind."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from packhorse.console import paging
from packhorse.console.facts import QuarantinedMessage, State
from packhorse.core.errors import UsageError
from packhorse.core.moments import zulu

MAX_TEXT = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """
    Which quarantined messages are wanted; None lets all pass.

    Attributes:
        failure: Print of a group of failures, or its beginning.
        since, until: Quarantined from then on; before then. Aware.
        text: What the recorded error holds, in capitals or not; never looked for in payloads.

    Raises:
        UsageError: *text* is empty or too long, or the time ends before it begins.
    """

    group: str | None = None
    topic: str | None = None
    reason: str | None = None
    type: str | None = None
    tenant: str | None = None
    state: State | None = State.QUARANTINED
    id: UUID | None = None
    key: bytes | None = None
    failure: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    text: str | None = None

    def __post_init__(self) -> None:
        if self.text is not None and not 1 <= len(self.text) <= MAX_TEXT:
            raise UsageError(f"--text of {len(self.text)} characters; 1 to {MAX_TEXT} are allowed")
        if self.since is not None and self.until is not None and self.until <= self.since:
            raise UsageError(f"--until {zulu(self.until)} is not after --since {zulu(self.since)}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    """The last message of a page; the order is the newest first."""

    at: datetime
    id: UUID
    group: str
    topic: str

    def token(self) -> str:
        """Return the position as one word for a command line."""
        return paging.token_of(self.at.isoformat(), str(self.id), self.group, self.topic)


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """
    Some quarantined messages.

    Attributes:
        next: Where the next page goes on; None on the last page.
        looked_to: The page ends before it is full because enough was looked at: up to what was quarantined then. None: it does
            not.
    """

    messages: tuple[QuarantinedMessage, ...]
    next: Position | None
    looked_to: datetime | None = None


def position_from(token: str) -> Position:
    """Return the position that *token* stands for; raises UsageError for what is no token of ours."""
    return paging.position_from(token, _position)


def _position(at: str, message_id: str, group: object, topic: object) -> Position:
    moment = datetime.fromisoformat(at)
    if moment.tzinfo is None or not isinstance(group, str) or not isinstance(topic, str):
        raise ValueError("no time with its zone, or no names")
    return Position(at=moment, id=UUID(message_id), group=group, topic=topic)


def page_of(rows: list[QuarantinedMessage], *, limit: int, far: Position | None = None) -> Page:
    """
    Return the page of the first *limit* of *rows*; one row more says that another page follows.

    *far* is how far was looked when that ended the look; more may fit behind it.
    """
    kept = tuple(rows[:limit])
    if len(rows) > limit:
        last = kept[-1]
        after = Position(at=last.quarantined_at, id=last.id, group=last.group, topic=last.topic)
        return Page(messages=kept, next=after)
    return Page(messages=kept, next=far, looked_to=None if far is None else far.at)


def joined(first: Page, second: Page) -> Page:
    """Return two pages that follow each other as one."""
    return Page(messages=first.messages + second.messages, next=second.next, looked_to=second.looked_to)
