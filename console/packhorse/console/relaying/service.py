"""The relay and its holds, for one person: see how they stand, and order a release or give up a row."""

from collections.abc import Sequence
from typing import Protocol
from uuid import UUID

from packhorse.console.acting.person import Person
from packhorse.console.paging import checked_limit
from packhorse.console.relaying.model import MOST_ORDERED, GivenUp, Held, HoldOrder, HoldPage, Relays, below
from packhorse.core.acts import checked_why
from packhorse.core.errors import UsageError
from packhorse.relay.orders.model import HoldView

MOST_RATE = 10_000_000
"""Rows a second that a release may be bound to."""


class RelaySource(Protocol):
    """See relays, and leave orders for them; promises and raises what `RelayTables` does."""

    def relays(self, person: Person) -> Relays:
        """Return how each shard stands."""

    def holds(self, person: Person, *, ended: bool, below: int | None, limit: int) -> HoldPage:
        """Return the newest holds *below* that number."""

    def hold(self, person: Person, hold: int) -> Held:
        """Return one hold whole."""

    def releasable(self, person: Person, holds: Sequence[int]) -> list[HoldView]:
        """Return the holds that a release would be ordered of."""

    def discardable(self, person: Person, hold: int, row: UUID) -> GivenUp:
        """Return the row that would be given up."""

    def release(self, person: Person, orders: Sequence[HoldOrder], *, why: str, rate: int | None) -> str:
        """Order the release, on the record."""

    def discard(self, person: Person, order: HoldOrder, row: UUID, *, why: str) -> str:
        """Give up one row, on the record."""


class Relaying:
    """
    The relay of one database, as one person sees it.

    Each method raises Forbidden, DatabaseUnavailable and NotReady besides what it names; then nothing was done.
    """

    def __init__(self, tables: RelaySource, person: Person) -> None:
        self._tables = tables
        self._person = person

    def relays(self) -> Relays:
        """Return how each shard stands, who carries it, and the slots that keep the log; no rates."""
        return self._tables.relays(self._person)

    def holds(self, *, ended: bool = False, after: str | None = None, limit: int = 50) -> HoldPage:
        """
        Return a page of the open holds, with *ended* of those that are over too; the newest first.

        Raises:
            UsageError: *after* is no position, or *limit* is not allowed.
        """
        return self._tables.holds(self._person, ended=ended, below=below(after), limit=checked_limit(limit))

    def hold(self, hold: int) -> Held:
        """
        Return one hold whole: what waits in it, counted up to a bound, and what people did with it.

        Raises:
            UnknownId: There is none.
        """
        return self._tables.hold(self._person, hold)

    def release_preview(self, holds: Sequence[int]) -> list[HoldView]:
        """
        Return the holds that a release would be ordered of.

        Raises:
            UnknownId: One is not there.
            UsageError: They are none, or too many.
            OwnershipLost: One is over, on its way or ordered already; names who acted.
        """
        if not 1 <= len(holds) <= MOST_ORDERED:
            raise UsageError(f"{len(holds)} holds in one order: 1 to {MOST_ORDERED} are allowed")
        return self._tables.releasable(self._person, holds)

    def discard_preview(self, hold: int, row: UUID) -> GivenUp:
        """
        Return the row that would be given up, and its hold.

        Raises:
            UnknownId, OwnershipLost: As `release_preview`.
            UsageError: The row does not wait in the hold.
        """
        return self._tables.discardable(self._person, hold, row)

    def release(self, orders: Sequence[HoldOrder], *, why: str, rate: int | None = None) -> str:
        """
        Order that what is held goes on its way, all of *orders* or none, on the record; return who is on record.

        It is ordered, and not done: only the relay's owner sends. `hold` says how it went.

        Raises:
            UsageError: *why* or *rate* is not allowed, or there are no holds or too many.
            UnknownId, OwnershipLost: As `release_preview`; or a hold is no longer as it was shown.
        """
        if not 1 <= len(orders) <= MOST_ORDERED:
            raise UsageError(f"{len(orders)} holds in one order: 1 to {MOST_ORDERED} are allowed")
        if rate is not None and not 1 <= rate <= MOST_RATE:
            raise UsageError(f"a rate of {rate} rows a second: 1 to {MOST_RATE} are allowed")
        return self._tables.release(self._person, orders, why=checked_why(why), rate=rate)

    def discard(self, order: HoldOrder, row: UUID, *, why: str) -> str:
        """
        Give up one row, which is then never published, and order the release of its hold without it, on the record.

        Raises:
            UsageError: *why* is not allowed, or the row does not wait in the hold.
            UnknownId, OwnershipLost: As `release`.
        """
        return self._tables.discard(self._person, order, row, why=checked_why(why))
