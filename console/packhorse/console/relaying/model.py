"""How the relay stands, what it holds, and what an order about a hold was shown. Pure: no I/O, no clock."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from packhorse.console.paging import position_from, token_of
from packhorse.core.errors import OwnershipLost
from packhorse.relay.orders.model import HoldView, OutboxRow, Waiting
from packhorse.relay.status import RelayStatus

COUNTED = 10_000
"""Rows that one count of what waits for the relay goes through; a number as high means "at least"."""
SCANNED = 20_000
"""Rows of the outbox that one count of what waits in a hold goes through."""
MOST_ORDERED = 200
"""Holds that one order is about."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RelayProcess:
    """
    A relay that lives.

    Attributes:
        seen_at: None: it is known by its lease alone, as one that carries a single shard is.
        shards: Those that it owns; none: it waits to take over.
    """

    name: str
    seen_at: datetime | None
    shards: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Slot:
    """A replication slot of a relay that streams; `held` is bytes of the log that are kept for it."""

    name: str
    active: bool
    held: int
    lost: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Relays:
    """All shards, processes and slots at one moment of the database's clock."""

    at: datetime
    shards: tuple[RelayStatus, ...]
    processes: tuple[RelayProcess, ...]
    slots: tuple[Slot, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class HoldPage:
    """Holds, the newest first; `next` is where the page behind it starts."""

    at: datetime
    holds: tuple[HoldView, ...]
    next: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class HoldAct:
    """What somebody did with a hold."""

    act: str
    actor: str
    at: datetime
    why: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """
    One hold whole.

    Attributes:
        waiting: What waits in it; None: it is over.
        acts: What people did with it, the newest first.
    """

    at: datetime
    view: HoldView
    waiting: Waiting | None
    acts: tuple[HoldAct, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenUp:
    """A row that somebody wants to give up, and the hold that it waits in."""

    view: HoldView
    row: OutboxRow


@dataclass(frozen=True, slots=True, kw_only=True)
class HoldOrder:
    """
    What was shown of a hold before it was ordered about: an order is of just that.

    Attributes:
        row: The row at fault; None: none is.
        tries: Releases that had failed.
    """

    id: int
    code: str
    row: str | None
    tries: int


def order_of(view: HoldView) -> HoldOrder:
    """Return what a preview shows of *view*."""
    return HoldOrder(id=view.id, code=view.hold.fault.code, row=view.hold.fault.id, tries=view.hold.tries)


def changed(order: HoldOrder, now: HoldView) -> OwnershipLost | None:
    """Return what to say when the hold is no longer as it was shown; None: it is. One that heals is tried again by itself."""
    fault = now.hold.fault
    if (order.code, order.row) == (fault.code, fault.id) and (fault.heals or order.tries == now.hold.tries):
        return None
    return OwnershipLost(
        f"hold {now.id} is no longer as it was shown: by now it is {fault.code}: {fault.reason}; nothing was done, look again"
    )


def page_of(found: Sequence[HoldView], *, at: datetime, limit: int) -> HoldPage:
    """Return the page of *found*, which has one more than *limit* where there are more."""
    shown = tuple(found[:limit])
    return HoldPage(at=at, holds=shown, next=token_of(shown[-1].id) if len(found) > limit else None)


def below(after: str | None) -> int | None:
    """
    Return the hold that the page behind *after* is below of.

    >>> below(token_of(12)), below(None)
    (12, None)

    Raises:
        UsageError: It is no position of ours.
    """
    return None if after is None else position_from(after, _number)


def _number(value: int) -> int:
    if type(value) is not int or not 0 <= value < 2**63:
        raise ValueError
    return value
