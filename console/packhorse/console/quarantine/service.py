"""The quarantine for operators: pages, one message, and acts on one message, whatever face asks."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Protocol
from uuid import UUID

from packhorse.console.acting.person import Person
from packhorse.console.facts import Act, Facts, FailedAttempt, InboxRow, QuarantinedMessage
from packhorse.console.paging import LOOK, MOST_LOOKED, checked_limit, searched
from packhorse.console.pausing.known import no_group
from packhorse.console.quarantine.around.model import Around, Bytes, HeaderList, hidden
from packhorse.console.quarantine.pages import (
    Filter,
    Page,
    Position,
)
from packhorse.console.quarantine.redrive import REDRIVE, Order, Preview, chosen, previewed
from packhorse.console.truth.service import Truth
from packhorse.core.acts import checked_why
from packhorse.core.errors import UnknownId
from packhorse.core.moments import zulu


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """
    One quarantined message with its history.

    Attributes:
        headers: As they arrived, in order; a null header is None. What may say who somebody is is masked.
        payload: The decoded payload as JSON-able values with personal fields masked; None unless it was asked for.
        payload_said: Why there is no payload to see.
        unmasked: Nothing is masked; that it was shown is on record.
        around: What waits behind it, what it has caused, the redrives that it was part of, its group of failures.
    """

    message: QuarantinedMessage
    inbox: InboxRow | None
    attempts: tuple[FailedAttempt, ...]
    acts: tuple[Act, ...]
    headers: HeaderList
    payload: object | None
    payload_said: str | None
    unmasked: bool = False
    around: Around | None = None


class QuarantineSource(Protocol):
    """
    Read and act on the quarantine of one database; raises what `Database.reading` and `Database.acting` do.

    Returning from an act promises that all its rows are durable; raising promises that none was changed.
    """

    def page(
        self, person: Person, wanted: Filter, *, after: Position | None, limit: int, look: int = LOOK
    ) -> Page:
        """
        Return at most *limit* quarantined messages, the newest first, behind *after*.

        Where no index leads to those that fit, the next *look* alone are looked at, and the page says how far that was.
        """

    def knows(self, person: Person, group: str) -> bool:
        """Return whether anything is known of *group* in this database."""

    def bytes_of(self, person: Person, message: QuarantinedMessage) -> Bytes:
        """Return payload and headers of *message* as they arrived."""

    def unmask(self, person: Person, message: QuarantinedMessage, *, why: str) -> Bytes:
        """Return the same, on record in the transaction that reads it. Raises Forbidden without the right to personal fields."""

    def around(self, person: Person, message: QuarantinedMessage) -> Around:
        """Return what stands around *message*."""

    def followers(self, person: Person, message: QuarantinedMessage) -> int:
        """Return how many messages wait behind *message*."""

    def redrive(self, person: Person, order: Order, *, why: str) -> datetime:
        """
        Order the redrive and record the act in one transaction; return when.

        Raises:
            OwnershipLost: A row is no longer as *order* says; names who acted and when.
        """

    def discard(self, person: Person, order: Order, *, why: str) -> datetime:
        """Give the message up and record the act in one transaction; return when. Promises and raises what `redrive` does."""


class Payloads(Protocol):
    """Decode payloads for eyes."""

    def masked(self, payload: bytes) -> tuple[object | None, str | None]:
        """
        Return the value as JSON-able data with every personal field masked, or None and why it can't be shown.

        Never raises for the bytes' or the registry's sake.
        """

    def whole(self, payload: bytes) -> tuple[object | None, str | None]:
        """Return the same with personal fields as they are, for who may see them."""


class Quarantine:
    """
    The quarantine of one database, for one person.

    Args:
        payloads: What decodes a payload; None when no registry is set.
    """

    def __init__(
        self, tables: QuarantineSource, truth: Truth, person: Person, *, payloads: Payloads | None = None
    ) -> None:
        self._tables = tables
        self._truth = truth
        self._person = person
        self._payloads = payloads

    def page(self, wanted: Filter, *, after: Position | None, limit: int) -> Page:
        """
        Return one page of the quarantine, the newest first, from one look at a bounded number of messages.

        Raises:
            UsageError: *limit* is not allowed.
            UnknownId: Nothing fits, and nothing is known of the group that is wanted; or no group of failures has the print.
        """
        return self._part(wanted, after, checked_limit(limit), LOOK)

    def search(
        self, wanted: Filter, *, after: Position | None, limit: int, most_looked: int = MOST_LOOKED
    ) -> Iterator[Page]:
        """
        Return the parts of one page as they are found, until it is full, all was looked at, or *most_looked* were.

        Each part's `next` is where whoever stops there can go on. Raises what `page` does.
        """
        return searched(
            partial(self._part, wanted),
            lambda part: len(part.messages),
            after=after,
            limit=limit,
            most_looked=most_looked,
        )

    def _part(self, wanted: Filter, after: Position | None, limit: int, look: int) -> Page:
        page = self._tables.page(self._person, wanted, after=after, limit=limit, look=look)
        nothing = not page.messages and page.looked_to is None and after is None
        if nothing and wanted.group is not None and not self._tables.knows(self._person, wanted.group):
            raise UnknownId(f"{no_group(wanted.group)}; `packhorse doctor` names the groups")
        return page

    def show(self, message_id: UUID, *, group: str | None, topic: str | None, payload: bool) -> Shown:
        """
        Return one quarantined message; its payload, masked, only if *payload*.

        Raises:
            UnknownId: No quarantined message matches.
            UsageError: Several match; names them.
        """
        facts = self._truth.facts(message_id)
        message = chosen(facts.quarantined, message_id=message_id, group=group, topic=topic)
        found = self._tables.bytes_of(self._person, message)
        decoded, said = (
            self._decoded(found, whole=False) if payload else (None, "not shown; --payload decodes it")
        )
        return replace(
            self._shown(facts, message), headers=hidden(found.headers), payload=decoded, payload_said=said
        )

    def unmask(self, message_id: UUID, *, group: str | None, topic: str | None, why: str) -> Shown:
        """
        Return one quarantined message with payload and headers as they are; on record before anything of it is decoded.

        Raises:
            Forbidden: The person may not see personal fields; nothing was read.
            UsageError: *why* is empty or too long; and what `show` raises.
        """
        reason = checked_why(why)
        facts = self._truth.facts(message_id)
        message = chosen(facts.quarantined, message_id=message_id, group=group, topic=topic)
        found = self._tables.unmask(self._person, message, why=reason)
        decoded, said = self._decoded(found, whole=True)
        return replace(
            self._shown(facts, message),
            headers=found.headers,
            payload=decoded,
            payload_said=said,
            unmasked=True,
        )

    def _shown(self, facts: Facts, message: QuarantinedMessage) -> Shown:
        return Shown(
            message=message,
            inbox=_inbox_of(facts, message),
            attempts=tuple(row for row in facts.attempts if _same(row, message)),
            acts=tuple(row for row in facts.acts if _same(row, message)),
            headers=(),
            payload=None,
            payload_said=None,
            around=self._tables.around(self._person, message),
        )

    def preview(
        self, message_id: UUID, *, group: str | None, topic: str | None, act: str = REDRIVE
    ) -> Preview:
        """
        Return what a redrive, or another *act*, would do; changes nothing.

        Raises:
            UnknownId: No quarantined message matches.
            UsageError: Several match; names them.
            OwnershipLost: Somebody has acted already; names who and when.
        """
        facts = self._truth.facts(message_id)
        message = chosen(facts.quarantined, message_id=message_id, group=group, topic=topic)
        acts = [act for act in facts.acts if _same(act, message)]
        return previewed(
            message,
            _inbox_of(facts, message),
            acts[-1] if acts else None,
            act=act,
            followers=self._tables.followers(self._person, message),
            in_doubt=() if facts.job is None else [each.key for each in facts.job.in_doubt],
        )

    def redrive(self, order: Order, *, why: str) -> datetime:
        """
        Order exactly the redrive that was previewed; return when it was recorded.

        Raises:
            UsageError: *why* is empty or too long.
            Forbidden: The person may not act.
            OwnershipLost: The message has moved since the preview; names who acted and when.
        """
        return self._tables.redrive(self._person, order, why=checked_why(why))

    def discard(self, order: Order, *, why: str) -> datetime:
        """Give up exactly the message that was previewed; return when it was recorded. Raises what `redrive` does."""
        return self._tables.discard(self._person, order, why=checked_why(why))

    def _decoded(self, found: Bytes, *, whole: bool) -> tuple[object | None, str | None]:
        if found.erased_at is not None:
            return None, f"erased at {zulu(found.erased_at)}, for a person's sake"
        if found.payload is None:
            return None, "none: the message is a tombstone"
        if self._payloads is None:
            return None, "not decoded: PACKHORSE_REGISTRY_URL is not set"
        return self._payloads.whole(found.payload) if whole else self._payloads.masked(found.payload)


def _inbox_of(facts: Facts, message: QuarantinedMessage) -> InboxRow | None:
    return next((row for row in facts.inbox if _same(row, message)), None)


def _same(row: InboxRow | FailedAttempt | Act, message: QuarantinedMessage) -> bool:
    return (row.group, row.topic) == (message.group, message.topic)
