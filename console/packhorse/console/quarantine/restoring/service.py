"""Restoring of discarded messages for operators: preview, then exactly that, once."""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Protocol
from uuid import UUID

from packhorse.console.acting.person import Person
from packhorse.console.facts import Outcome, QuarantinedMessage
from packhorse.console.quarantine.redrive import chosen
from packhorse.console.quarantine.restoring.deciding import (
    UNBOUND,
    Discarded,
    RestoreOrder,
    RestorePreview,
    Since,
    check_confirmed,
    check_restorable,
    previewed_restore,
    with_outcomes,
)
from packhorse.console.quarantine.restoring.listing import Bound, later_of
from packhorse.console.replaying.reading import Ranges
from packhorse.console.truth.service import Truth
from packhorse.core.acts import checked_why
from packhorse.core.clock import SYSTEM_CLOCK, Clock


class RestoringSource(Protocol):
    """Read and act on discarded messages of one database."""

    def discarded(self, person: Person, message: QuarantinedMessage) -> Discarded:
        """Return what is kept of *message* besides."""

    def outcomes(
        self, person: Person, message: QuarantinedMessage, ids: Sequence[UUID]
    ) -> dict[UUID, tuple[Outcome, datetime]]:
        """Return what became of these messages in the group of *message*."""

    def restore(self, person: Person, order: RestoreOrder, *, why: str, out_of_order: bool) -> datetime:
        """Take the message back and record the act in one transaction; return when."""


class Restoring:
    """
    Discarded messages of one database, for one person.

    Args:
        ranges: Makes what reads topics; None when no broker is set.
        bound: How far one listing reads.
    """

    def __init__(
        self,
        tables: RestoringSource,
        truth: Truth,
        person: Person,
        *,
        ranges: Callable[[], Ranges] | None,
        bound: Bound,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self._tables = tables
        self._truth = truth
        self._person = person
        self._ranges = ranges
        self._bound = bound
        self._clock = clock

    def preview(
        self, message_id: UUID, *, group: str | None = None, topic: str | None = None
    ) -> RestorePreview:
        """
        Return what restoring would do, and which later messages of its key have run; changes nothing.

        Raises:
            UnknownId: No quarantined message matches.
            UsageError: Several match; or it can't be restored, and why.
            OwnershipLost: Somebody has acted already; names who and when.
        """
        facts = self._truth.facts(message_id)
        message = chosen(facts.quarantined, message_id=message_id, group=group, topic=topic)
        same = (message.group, message.topic)
        inbox = next((row for row in facts.inbox if (row.group, row.topic) == same), None)
        acts = [act for act in facts.acts if (act.group, act.topic) == same]
        kept = self._tables.discarded(self._person, message)
        check_restorable(message, inbox, kept, acts[-1] if acts else None)
        assert inbox is not None  # it was checked just now
        return previewed_restore(message, inbox, kept, self._since(message, kept))

    def restore(self, preview: RestorePreview, *, why: str, out_of_order: bool) -> datetime:
        """
        Restore exactly what was previewed; return when it was recorded.

        Raises:
            UsageError: *why* is not allowed, or it is out of order and that was not confirmed.
            Forbidden: The person may not act.
            OwnershipLost: The message or its key has moved since; nothing was done.
        """
        check_confirmed(preview, out_of_order=out_of_order)
        return self._tables.restore(
            self._person, preview.order, why=checked_why(why), out_of_order=preview.out_of_order
        )

    def _since(self, message: QuarantinedMessage, kept: Discarded) -> Since:
        if not kept.ordered:
            return UNBOUND
        listed = later_of(
            self._ranges,
            topic=message.topic,
            topic_id=kept.topic_id,
            partition=message.partition,
            offset=message.offset,
            key=message.key,
            bound=self._bound,
            clock=self._clock,
        )
        ids = [message_id for message_id, _ in listed.found]
        outcomes = self._tables.outcomes(self._person, message, ids) if ids else {}
        return Since(messages=with_outcomes(listed.found, outcomes), whole=listed.whole, said=listed.said)
