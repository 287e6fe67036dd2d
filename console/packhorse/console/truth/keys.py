"""What one database knows about one key of one group: plain values."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from packhorse.console.truth.around import Crew, Key, Pause

FIRST_FOLLOWERS = 20
"""Followers of a key that are named."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Follower:
    """A message that waits behind a key."""

    id: UUID
    type: str | None
    offset: int
    parked_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyFacts:
    """
    How a group stands with a key, in one snapshot.

    Attributes:
        now: The database's clock.
        reads: The group has a watermark of the topic, so it reads it, or did.
        key: The parked key; None: it is not parked.
        pauses: What people have paused in the group, keys aside.
        followers: The first of what waits behind it, in the order in which they run.
    """

    now: datetime
    group: str
    topic: str
    key_hash: str
    reads: bool
    key: Key | None
    pauses: tuple[Pause, ...]
    crew: Crew
    followers: tuple[Follower, ...] = ()
