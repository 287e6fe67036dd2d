"""What people have paused in a group, as a value."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple, Protocol, TypeVar

from packhorse.core.errors import UsageError
from packhorse.core.text import counted

ALL = ""
"""The topic of a pause of the whole group."""
EVERY = -1
"""The partition of a pause of a whole topic."""


class Pause(NamedTuple):
    """
    One pause of a group.

    Attributes:
        topic: A source topic, one of its tiers, or ALL.
        partition: A partition of it, or EVERY.
        by, why, at: Who ordered it, the reason, and when.
    """

    topic: str
    partition: int
    by: str
    why: str | None
    at: datetime

    @property
    def what(self) -> str:
        """
        Return what is paused, for people.

        >>> Pause("a.b", 3, "ann", None, datetime.min).what, Pause("", -1, "ann", None, datetime.min).what
        ('a.b[3]', 'the group')
        """
        if self.topic == ALL:
            return "the group"
        return self.topic if self.partition == EVERY else f"{self.topic}[{self.partition}]"

    @property
    def told(self) -> str:
        """Return who paused what and why, for people."""
        return f"{self.what} paused by {self.by}" + (f": {self.why}" if self.why else "")


class PausedKey(NamedTuple):
    """
    A key that a person has paused, with what waits behind it; the key itself may be personal and is not shown.

    Attributes:
        by, why, at: Who ordered it, the reason, and when; who is not known of before that was kept.
    """

    topic: str
    key_hash: str
    partition: int
    followers: int
    by: str | None
    why: str | None
    at: datetime

    @property
    def told(self) -> str:
        """Return who paused it and why, and what waits, for people."""
        by = "" if self.by is None else f" by {self.by}"
        why = f": {self.why}" if self.why else ""
        return f"key {self.key_hash} of {self.topic}[{self.partition}] paused{by}{why}, {counted(self.followers, 'message')} behind it"


class Placed(Protocol):
    """What a pause is of."""

    @property
    def topic(self) -> str: ...
    @property
    def partition(self) -> int: ...


Row = TypeVar("Row", bound=Placed)


def widest(rows: Iterable[Row], topic: str, partition: int | None, *, source: str) -> Row | None:
    """
    Return the widest of those pauses that hold *partition* (None: not known) of *topic*, which is *source* or one of its tiers.

    A pause of a source holds its tiers too; a pause of a partition holds that partition of the tiers too, since a copy keeps its
    partition. A pause of a tier holds the tier alone.
    """
    found = [row for row in rows if row.topic in {ALL, source, topic} and row.partition in {EVERY, partition}]
    return min(
        found, key=lambda row: (row.topic != ALL, row.partition != EVERY, row.topic != source), default=None
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Pauses:
    """All pauses of a group but those of keys, which lie with the parked ones."""

    rows: tuple[Pause, ...] = ()

    def holding(self, topic: str, partition: int, *, source: str) -> Pause | None:
        """Return the widest pause that holds *partition* of *topic*, which is *source* or one of its tiers."""
        return widest(self.rows, topic, partition, source=source)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """
    What a person wants paused or resumed.

    Attributes:
        topic: None: the whole group.
        partition: None: the whole topic.
        key: A key as its bytes; it needs a topic and no partition.
        key_hash: The same as the tables have it; for a key that cannot be typed.

    Raises:
        UsageError: The parts do not go together.
    """

    topic: str | None = None
    partition: int | None = None
    key: bytes | None = None
    key_hash: str | None = None

    def __post_init__(self) -> None:
        if self.topic is None and (self.partition is not None or self.is_key):
            raise UsageError("--partition, --key and --key-hash are of one topic: name it with --topic")
        if self.is_key and self.partition is not None:
            raise UsageError("--partition and --key are two scopes: give one of them")
        if self.key is not None and self.key_hash is not None:
            raise UsageError("--key and --key-hash name the same thing: give one of them")

    @property
    def is_key(self) -> bool:
        """Return whether it is one key."""
        return self.key is not None or self.key_hash is not None

    def within(self, row: Pause) -> bool:
        """Return whether the pause *row* holds it, or a part of it."""
        if row.topic == ALL or self.topic is None:
            return True
        return row.topic == self.topic and (self.partition in {None, row.partition} or row.partition == EVERY)

    @property
    def what(self) -> str:
        """Return it for people."""
        if self.is_key:
            return f"a key of {self.topic}"
        if self.topic is None:
            return "the group"
        return self.topic if self.partition is None else f"{self.topic}[{self.partition}]"
