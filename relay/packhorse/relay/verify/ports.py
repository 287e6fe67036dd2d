"""What the comparison needs: the outbox's side and the topics' side."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol
from uuid import UUID

from packhorse.relay.verify.model import Absent, Stretch, Topic


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """
    How the database stood when the comparison began.

    Attributes:
        incarnation: Which server.
        now: Its clock.
        horizons: One a shard.
        moved_at: The last save that was known when the server changed last; None: it never did.
    """

    incarnation: str
    now: datetime
    horizons: tuple[str, ...]
    moved_at: datetime | None


@dataclass(frozen=True, slots=True)
class Seen:
    """A record, without what it carries; `id` None: it has none that an outbox would give."""

    topic: str
    partition: int
    offset: int
    at: datetime
    id: UUID | None


class Ledger(Protocol):
    """
    The outbox, and a place for what was seen on topics.

    Raises NotReady (a table or right is missing) and DatabaseUnavailable.
    """

    def begin(self) -> Start:
        """Read the horizons and the clock, and make the place; to be called before the topics' ends are asked for."""

    def subjects(self) -> list[str]:
        """Return the registered subjects."""

    def kinds(self, since: datetime, until: datetime) -> list[str]:
        """Return the aggregate types of rows written in that time."""

    def note(self, topics: Sequence[str], seen: Sequence[Seen]) -> None:
        """Keep the ids of *seen*; memory here stays bounded, they lie in the database."""

    def messages(self) -> int:
        """Return how many different ids were noted."""

    def outbox_since(self) -> datetime | None:
        """Return the beginning of the first day that the outbox has rows of; None: it has none."""

    def gone(self, topics: Sequence[str], since: datetime, until: datetime) -> Iterator[Seen]:
        """Yield the noted messages that the outbox does not have, one record each."""

    def counts(self, kinds: Sequence[str], since: datetime, until: datetime) -> tuple[int, int]:
        """Return how many rows of that time are behind the horizons, and how many there are."""

    def absent(self, kinds: Sequence[str], since: datetime, until: datetime) -> Iterator[Absent]:
        """Yield the rows behind the horizons that were not noted, by seq."""


class Topics(Protocol):
    """The topics, read and never written. Raises BrokerUnavailable."""

    def describe(self, name: str) -> Topic:
        """Return what the topic is."""

    def stretches(self, topic: Topic, since: datetime) -> list[Stretch]:
        """Return what is to be read of each partition from *since*; the ends are those of now."""

    def read(self, stretches: Sequence[Stretch]) -> Iterator[list[Seen]]:
        """Yield the records of *stretches* in batches of bounded size, in order of each partition."""
