"""Send a range of the outbox again: what it is, what would go, and what speaks against it. Pure: no I/O, no clock."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from packhorse.core.errors import NotReady, SettingsError
from packhorse.relay.orders.model import at, iso

Edge = int | datetime
"""Where a range begins or ends: a seq, or a time in UTC."""


def edge_from(text: str, flag: str) -> Edge:
    """
    Return the edge that *text* names.

    >>> edge_from("4711", "--from"), edge_from("2026-01-02T03:04:05Z", "--from").isoformat()
    (4711, '2026-01-02T03:04:05+00:00')

    Raises:
        SettingsError: It is neither a seq nor a time with its zone.
    """
    if text.isascii() and text.isdigit():
        return int(text)
    try:
        moment = datetime.fromisoformat(text)
        if moment.tzinfo is not None:
            return moment.astimezone(UTC)
    except (ValueError, OverflowError):
        pass
    raise SettingsError(
        f"{flag} {text} is neither a seq (a whole number) nor a time with its zone, e.g. 2026-01-02T03:04:05Z"
    )


def aggregatetype_of(topic: str, namespace: str) -> str:
    """
    Return the aggregate type whose rows go to *topic*.

    >>> aggregatetype_of("airline.aircraft", "airline")
    'aircraft'

    Raises:
        SettingsError: It is no topic of the namespace.
    """
    prefix = f"{namespace}."
    if not topic.startswith(prefix) or topic == prefix:
        raise SettingsError(
            f"--topic {topic} is no topic of namespace {namespace}; give {prefix}… or --aggregatetype"
        )
    return topic.removeprefix(prefix)


def before(horizon: str, xid: int) -> str:
    """
    Return the snapshot that has what *horizon* has, without the transactions from *xid* on.

    >>> before("10:20:12,15", 14), before("10:20:12,15", 30), before("10:20:12", 11)
    ('12:14:12', '12:20:12,15', '11:11:')
    """
    _, xmax, running = horizon.split(":")
    end = min(int(xmax), xid)
    still = [each for each in running.split(",") if each and int(each) < end]
    return f"{still[0] if still else end}:{end}:{','.join(still)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """
    A range that somebody wants sent again.

    Attributes:
        first, last: Its edges, both inside; last None: up to where the relay is.
        rate: Rows a second; None: as the relay is set.
    """

    aggregatetype: str
    first: Edge
    last: Edge | None = None
    rate: int | None = None

    def __post_init__(self) -> None:
        last = self.last
        if type(last) is type(self.first) and last < self.first:  # type: ignore[operator]
            raise SettingsError(f"--to {_told(last)} lies before --from {_told(self.first)}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """
    What lies in the range, of one shard.

    Attributes:
        first, last: Lowest and highest seq; rows of other topics lie between.
        until: The release ends behind this seq; None: where the relay is.
        xid: The lowest transaction among its rows.
        horizon: The shard's saved horizon.
        rows: Committed rows of the topic in the range.
        unpublished: Of these, rows that the horizon does not have: they would go anyway.
        discarded: Of these, rows that people gave up: they don't go.
        begins, ends: When the first and the last of them were written.
        owner: Who owns the shard; None: nobody.
        open_holds: Ids of open holds of this topic.
    """

    shard: int
    first: int
    last: int
    until: int | None
    xid: int
    horizon: str
    rows: int
    unpublished: int
    discarded: int
    begins: datetime | None
    ends: datetime | None
    owner: str | None
    open_holds: tuple[int, ...] = ()

    @property
    def goes(self) -> int:
        """Return how many rows go."""
        return self.rows - self.discarded

    def as_dict(self) -> dict[str, Any]:
        """Return it for programs."""
        found = {
            name: getattr(self, name) for name in ("shard", "first", "last", "until", "rows", "unpublished", "discarded")
        }  # fmt: skip
        return {
            **found, "goes": self.goes, "begins": iso(self.begins), "ends": iso(self.ends),
            "owner": self.owner, "open_holds": list(self.open_holds),
        }  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """
    What a republish would send.

    Attributes:
        oldest: seq and time of the outbox's first row; None: it is empty.
    """

    wanted: Wanted
    stretches: tuple[Stretch, ...]
    oldest: tuple[int, datetime | None] | None

    @property
    def gone(self) -> str | None:
        """Say that a part of the range is no longer in the outbox; None: nothing shows that."""
        first = self.wanted.first
        if self.oldest is None:
            return "the outbox is empty: nothing of the range is left to send"
        seq, moment = self.oldest
        if (first < seq) if isinstance(first, int) else (moment is not None and first < moment):
            return (
                f"the outbox begins at seq {seq}, of {at(moment)}: what was before that can't be sent again"
            )
        return None

    def obstacles(self) -> list[str]:
        """Return what speaks against it."""
        if not self.stretches:
            return [f"no row of {self.wanted.aggregatetype} lies in the range"]
        return [
            f"shard {each.shard}: hold {', '.join(map(str, each.open_holds))} of this topic is open and {each.owner} works on it; "
            "release it first, or stop every relay and order again"
            for each in self.stretches
            if each.open_holds and each.owner is not None
        ]

    def lines(self) -> list[tuple[str, str]]:
        """Return it for people."""
        found = [
            ("again", f"{sum(each.goes for each in self.stretches):,} rows of {self.wanted.aggregatetype}")
        ]
        found += [line for each in self.stretches for line in _lines(each)]
        if self.gone is not None:
            found.append(("gone", self.gone))
        end = (
            "then the topic goes on where it was"
            if self.wanted.last is not None
            else "up to where the relay is"
        )
        found.append(
            ("order", f"in seq order, {end}; new rows of the topic wait meanwhile, all other topics flow")
        )
        return found

    def as_dict(self) -> dict[str, Any]:
        """Return it for programs."""
        return {
            "aggregatetype": self.wanted.aggregatetype, "goes": sum(each.goes for each in self.stretches), "gone": self.gone,
            "shards": [each.as_dict() for each in self.stretches], "obstacles": self.obstacles(),
        }  # fmt: skip


def checked(found: Found) -> Found:
    """
    Return *found* when nothing speaks against it.

    Raises:
        NotReady: Something does.
    """
    if obstacles := found.obstacles():
        raise NotReady("; ".join(obstacles))
    return found


def reason_of(stretch: Stretch, actor: str) -> str:
    """Return what the hold says of itself."""
    end = "on" if stretch.until is None else f"to {stretch.until}"
    return f"rows from seq {stretch.first} {end} are sent again, ordered by {actor}"


def _lines(stretch: Stretch) -> Sequence[tuple[str, str]]:
    left = f", {stretch.discarded:,} of them discarded and left out" if stretch.discarded else ""
    fresh = f", {stretch.unpublished:,} of them not published so far" if stretch.unpublished else ""
    name = f"shard {stretch.shard}"
    found = [
        (name, f"seq {stretch.first} to {stretch.last}: {stretch.rows:,} rows{left}{fresh}"),
        (name, f"written {at(stretch.begins)} to {at(stretch.ends)}"),
    ]
    if stretch.open_holds and stretch.owner is None:
        ids = ", ".join(map(str, stretch.open_holds))
        found.append((name, f"nobody owns it: hold {ids} of this topic is set back before the range"))
    if stretch.owner is None:
        found.append((name, "nobody owns it: it begins when a relay starts"))
    return found


def _told(edge: Edge | None) -> str:
    return at(edge) if isinstance(edge, datetime) else str(edge)
