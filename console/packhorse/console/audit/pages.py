"""Pages of what people did: what is asked for, and a position that a next page starts behind. Pure: no I/O, no clock."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from packhorse.console import paging
from packhorse.core.errors import UsageError
from packhorse.core.moments import zulu

MAX_LIMIT = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """
    Which acts are wanted; None lets all pass.

    Attributes:
        actor: A part of how the actor stands on the record.
        act: How the act's name begins: replay is replay-plan, replay-run and the others.
        since, until: From the first on, and before the second.

    Raises:
        UsageError: Nothing can lie between *since* and *until*.
    """

    actor: str | None = None
    act: str | None = None
    message_id: UUID | None = None
    group: str | None = None
    since: datetime | None = None
    until: datetime | None = None

    def __post_init__(self) -> None:
        if self.since is not None and self.until is not None and self.since >= self.until:
            raise UsageError(
                f"--since {zulu(self.since)} is not before --until {zulu(self.until)}: nothing lies between"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """
    One act on the record; `detail` names what was acted on.

    Attributes:
        actor: Who it was, as their client said.
        role: The role of the database that was connected, as the database saw it; None: of before it kept that.
    """

    id: int
    at: datetime
    actor: str
    role: str | None
    act: str
    group: str | None
    topic: str | None
    message_id: UUID | None
    detail: Mapping[str, Any]
    why: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    """The last act of a page; the order is the newest first."""

    at: datetime
    id: int

    def token(self) -> str:
        """Return the position as one word for a command line."""
        return paging.token_of(self.at.isoformat(), self.id)


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """Some acts; `next` is None on the last page."""

    entries: tuple[Entry, ...]
    next: Position | None


def position_from(token: str) -> Position:
    """Return the position that *token* stands for; raises UsageError for what is no token of ours."""
    return paging.position_from(token, _position)


def page_of(entries: Sequence[Entry], *, limit: int) -> Page:
    """Return the page of the first *limit* of *entries*; one more says that another page follows."""
    kept = tuple(entries[:limit])
    follows = len(entries) > limit
    return Page(entries=kept, next=Position(at=kept[-1].at, id=kept[-1].id) if follows else None)


def _position(at: str, number: int) -> Position:
    moment = datetime.fromisoformat(at)
    if moment.tzinfo is None:
        raise ValueError("no zone")
    return Position(at=moment, id=int(number))
