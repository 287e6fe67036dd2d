"""What is found by a key or a name, and how far was looked for it: plain values."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from packhorse.console.facts import QuarantinedMessage
from packhorse.console.truth.around import Key

FIRST_SHOWN = 20
"""Of each kind; who wants all goes to the page of that kind."""
MOST_OF_KEY = 1_000
"""Quarantined messages of one key that are looked at, to show the newest of them."""
MOST_ROWS = 10_000
"""The newest outbox rows that are looked through for a key: no index leads to it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """An outbox row of the key."""

    id: UUID
    type: str
    aggregatetype: str
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Topic:
    """A source topic, and the groups that read it here."""

    name: str
    groups: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """
    All that one look found.

    Attributes:
        now: The database's clock.
        quarantined: In every state, the newest FIRST_SHOWN; `quarantined_count` counts up to MOST_OF_KEY of them.
        keys: Parked or paused under it, in each group and topic; followers counted up to MOST_OF_KEY.
        rows: The newest FIRST_SHOWN among the `looked` newest of the outbox, which go back to `back_to`.
        groups, topics: Whose names hold what was looked for, in capitals or not.
    """

    now: datetime
    quarantined: tuple[QuarantinedMessage, ...] = ()
    quarantined_count: int = 0
    keys: tuple[Key, ...] = ()
    rows: tuple[Row, ...] = ()
    looked: int = 0
    back_to: datetime | None = None
    groups: tuple[str, ...] = ()
    topics: tuple[Topic, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AtPlace:
    """Which message stands at a place of a topic; None: `said` says why nobody knows."""

    id: UUID | None
    said: str
