"""
What the relay leaves out for now, and why: scopes, faults, holds, and the legs of a release.

A hold is a horizon of its own for one scope: a row without key, a key, a partition or a topic. The relay passes the scope's rows by;
a release publishes them in seq order, from the hold's position to the relay's. One hold, however many rows wait.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum

from packhorse.core.partitions import partition_of
from packhorse.relay.model import AGGREGATEID, AGGREGATETYPE, ID, Position, Row


class Kind(IntEnum):
    """How wide a scope is; a wider one is greater."""

    ROW = 0
    KEY = 1
    PARTITION = 2
    TOPIC = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """
    The rows that share a fate.

    Attributes:
        kind: Which of the other fields say more.
        aggregatetype: Names the topic.
        aggregateid: The key, of a KEY.
        partition, partitions: The partition and of how many, of a PARTITION; rows without key belong to none.
        message_id: The row, of a ROW; only a row without key stands alone.
    """

    kind: Kind
    aggregatetype: str
    aggregateid: str | None = None
    partition: int | None = None
    partitions: int | None = None
    message_id: str | None = None

    def covers(self, row: Row) -> bool:
        """Tell whether *row* belongs to it."""
        if row[AGGREGATETYPE] != self.aggregatetype:
            return False
        if self.kind is Kind.TOPIC:
            return True
        key = row[AGGREGATEID]
        if self.kind is Kind.KEY:
            return bool(key == self.aggregateid)
        if self.kind is Kind.ROW:
            return bool(row[ID] == self.message_id)
        assert self.partitions is not None
        return key is not None and partition_of(key.encode(), self.partitions) == self.partition

    def overlaps(self, other: "Scope") -> bool:
        """Tell whether a row can belong to both; rather true than false."""
        if self.aggregatetype != other.aggregatetype:
            return False
        narrow, wide = sorted((self, other), key=lambda scope: scope.kind)
        if wide.kind is Kind.TOPIC or narrow.kind is Kind.TOPIC:
            return True
        if wide.kind is Kind.PARTITION and narrow.kind is Kind.PARTITION:
            return wide.partitions != narrow.partitions or wide.partition == narrow.partition
        if wide.kind is Kind.PARTITION and narrow.kind is Kind.KEY:
            assert narrow.aggregateid is not None
            assert wide.partitions is not None
            return partition_of(narrow.aggregateid.encode(), wide.partitions) == wide.partition
        return narrow == wide

    def __str__(self) -> str:
        """Return what people read; never the key."""
        if self.kind is Kind.PARTITION:
            return f"partition {self.partition} of {self.aggregatetype}"
        if self.kind is Kind.TOPIC:
            return f"topic of {self.aggregatetype}"
        return f"one {self.kind.name.lower()} of {self.aggregatetype}"


def scope_of(row: Row) -> Scope:
    """Return the scope that a fault of *row*'s own holds: its key, or the row alone when it has none."""
    key = row[AGGREGATEID]
    if key is None:
        return Scope(kind=Kind.ROW, aggregatetype=row[AGGREGATETYPE], message_id=row[ID])
    return Scope(kind=Kind.KEY, aggregatetype=row[AGGREGATETYPE], aggregateid=key)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """
    Why rows can't go for now.

    Attributes:
        scope: What must wait.
        code: too_large, refused, header, missing, forbidden, no_leader, silent, unknown or republish.
        reason: What is wrong, and the next step; tells neither payload nor key.
        heals: The relay tries again by itself; False: a person orders the release.
        topic: For people.
        seq, id: The row at fault; None when none is.
    """

    scope: Scope
    code: str
    reason: str
    heals: bool
    topic: str
    seq: int | None = None
    id: str | None = None

    def __str__(self) -> str:
        """Return what people read."""
        row = "" if self.id is None else f"row {self.id} for "
        return f"{row}topic {self.topic}: {self.reason}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """
    One scope that waits.

    Attributes:
        fault: What is held, and why.
        position: How far the scope is published.
        until, resume: A range that is sent again ends behind this seq; the release then goes on from this position.
        asked: A person ordered the release, and the owner has not begun it.
        releasing: Its rows are on their way.
        tries: Releases that failed.
        sent: Rows that its releases published.
        rate: Rows a second of the release; None: as the relay is set.
    """

    fault: Fault
    position: Position
    until: int | None = None
    resume: Position | None = None
    asked: bool = False
    releasing: bool = False
    tries: int = 0
    sent: int = 0
    rate: int | None = None

    @property
    def scope(self) -> Scope:
        """Return what is held."""
        return self.fault.scope


class Screen:
    """
    Tells for each row which hold it belongs to: the narrowest, and of two as wide the older one.

    >>> from packhorse.relay.model import Position
    >>> fault = Fault(scope=Scope(kind=Kind.TOPIC, aggregatetype="orders"), code="missing", reason="", heals=True, topic="shop.orders")
    >>> screen = Screen([Hold(fault=fault, position=Position(horizon="1:1:"))])
    >>> [screen.holder((1, name, "key", b"", 0, "an-id")) is not None for name in ("orders", "lines")]
    [True, False]
    """

    def __init__(self, holds: Iterable[Hold]) -> None:
        self._topics: dict[str, Scope] = {}
        self._keys: dict[tuple[str, str | None], Scope] = {}
        self._rows: dict[str | None, Scope] = {}
        self._partitions: dict[str, list[Scope]] = {}
        for hold in holds:
            scope = hold.scope
            if scope.kind is Kind.TOPIC:
                self._topics.setdefault(scope.aggregatetype, scope)
            elif scope.kind is Kind.KEY:
                self._keys.setdefault((scope.aggregatetype, scope.aggregateid), scope)
            elif scope.kind is Kind.ROW:
                self._rows.setdefault(scope.message_id, scope)
            else:
                self._partitions.setdefault(scope.aggregatetype, []).append(scope)

    def holder(self, row: Row) -> Scope | None:
        """Return the scope that *row* waits in; None: it may go."""
        name = row[AGGREGATETYPE]
        if self._rows and (scope := self._rows.get(row[ID])) is not None:
            return scope
        if self._keys and (scope := self._keys.get((name, row[AGGREGATEID]))) is not None:
            return scope
        for scope in self._partitions.get(name, ()):
            if scope.covers(row):
                return scope
        return self._topics.get(name)

    def passed(self, rows: Sequence[Row]) -> Sequence[Row]:
        """Return those of *rows* that no hold keeps back."""
        return [row for row in rows if self.holder(row) is None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Leg:
    """
    A stretch of a release.

    Attributes:
        start: Position with the target of the stretch.
        upto: Highest seq of the stretch; None: the whole target.
        last: It ends at the relay's horizon or where the relay is; False: at an earlier target, and much may lie behind that.
    """

    start: Position
    upto: int | None = None
    last: bool = True

    @property
    def end(self) -> Position:
        """Return the position behind the whole stretch."""
        if self.upto is None:
            assert self.start.target is not None
            return Position(horizon=self.start.target)
        return Position(horizon=self.start.horizon, target=self.start.target, progress=self.upto)


def next_leg(hold: Position, relay: Position) -> Leg | None:
    """
    Return the next stretch on the way from a hold's position to the relay's; None: they have met.

    A hold that was made inside a target finishes that one, then goes to the relay's horizon, then into the relay's own
    target as far as the relay is: the same steps that the relay took, so that the same order holds.

    >>> next_leg(Position(horizon="1:1:"), Position(horizon="9:9:")).start
    Position(horizon='1:1:', target='9:9:', progress=0)
    """
    if hold == relay:
        return None
    if hold.target is not None:
        same = (hold.horizon, hold.target) == (relay.horizon, relay.target)
        last = same or hold.target == relay.horizon
        return Leg(start=hold, upto=relay.progress if same else None, last=last)
    if hold.horizon != relay.horizon:
        return Leg(start=Position(horizon=hold.horizon, target=relay.horizon))
    return Leg(start=Position(horizon=hold.horizon, target=relay.target), upto=relay.progress)
