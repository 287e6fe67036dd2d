"""Decide whether a discarded message can be restored, and what that means for its key. Pure: no I/O, no clock."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from uuid import UUID

from packhorse.console.facts import Act, InboxRow, Outcome, QuarantinedMessage, State
from packhorse.console.quarantine.redrive import Order, acted_already
from packhorse.core.errors import OwnershipLost, UsageError
from packhorse.core.moments import zulu

WORDS = "out of order"
"""What a person types to restore a message after later ones of its key."""
_RAN = frozenset({Outcome.DONE, Outcome.SKIPPED, Outcome.UNCERTAIN})


@dataclass(frozen=True, slots=True, kw_only=True)
class Discarded:
    """
    What the tables keep of a discarded message besides.

    Attributes:
        ordered: Order binds it: later messages of its key wait while it rests in quarantine.
        purged_at: Its bytes are erased; None: they are not.
        edited_as: The edited copy that took its place, for which it was discarded.
    """

    topic_id: UUID
    ordered: bool
    discarded_at: datetime | None
    purged_at: datetime | None
    edited_as: UUID | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyRow:
    """
    How the key of the message is parked.

    Attributes:
        head: Behind which its messages wait; None: none is known.
        open: That head waits for something itself.
        draining: Messages of the key are being run at this moment.
    """

    head: UUID | None
    open: bool
    draining: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Later:
    """A later message of the key; `outcome` is None when the group has no row of it."""

    id: UUID
    offset: int
    outcome: Outcome | None = None
    changed_at: datetime | None = None

    @property
    def ran(self) -> bool:
        """Return whether it may have taken effect."""
        return self.outcome in _RAN


@dataclass(frozen=True, slots=True, kw_only=True)
class Since:
    """Later messages of the key as far as they were listed; `whole` says that these are all, `said` how far that is."""

    messages: tuple[Later, ...] = ()
    whole: bool = False
    said: str


UNBOUND = Since(whole=True, said="order does not bind it")


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoreOrder(Order):
    """One restoring as it was previewed; it holds only while the tables still say the same."""

    discarded_at: datetime | None
    ordered: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RestorePreview:
    """
    What restoring would do.

    Attributes:
        out_of_order: Later messages of its key have run, or it is not known that none has: it needs a confirmation of its own.
    """

    order: RestoreOrder
    message: QuarantinedMessage
    since: Since
    out_of_order: bool
    steps: tuple[str, ...]


class KeyMove(Enum):
    """What becomes of the key when its message is restored."""

    PARK = "park"
    HEAD = "head"


def check_restorable(
    message: QuarantinedMessage, inbox: InboxRow | None, kept: Discarded, last: Act | None
) -> None:
    """
    Check that *message* is discarded and can be sent again.

    Raises:
        OwnershipLost: Somebody has acted already; names who and when.
        UsageError: It is not discarded, its bytes are erased, or its inbox row is gone.
    """
    if message.state is State.REDRIVEN or (message.state is State.QUARANTINED and last is not None):
        raise OwnershipLost(acted_already(message.id, message.group, message.state, last))
    if message.state is State.QUARANTINED:
        raise UsageError(
            f"message {message.id} of group {message.group} rests in quarantine: nobody has discarded it"
        )
    if kept.purged_at is not None:
        raise UsageError(
            f"message {message.id} can't be restored: its key and payload were erased at "
            f"{zulu(kept.purged_at)}"
        )
    if kept.edited_as is not None:
        raise UsageError(
            f"message {message.id} can't be restored: an edited copy took its place, message {kept.edited_as}; both would take "
            f"effect. See packhorse status {kept.edited_as}"
        )
    if inbox is None or inbox.outcome is not Outcome.DISCARDED:
        stands = "is gone: it was discarded too long ago" if inbox is None else f"says {inbox.outcome}"
        raise UsageError(
            f"message {message.id} of group {message.group} can't be restored: its inbox row {stands}; see packhorse status "
            f"{message.id}"
        )


def previewed_restore(
    message: QuarantinedMessage, inbox: InboxRow, kept: Discarded, since: Since
) -> RestorePreview:
    """Return what restoring *message* would do; `check_restorable` has passed."""
    ran = any(later.ran for later in since.messages)
    out_of_order = kept.ordered and (ran or not since.whole)
    order = RestoreOrder(
        id=message.id,
        group=message.group,
        topic=message.topic,
        attempt=inbox.attempt,
        redrives=message.redrives,
        quarantined_at=message.quarantined_at,
        discarded_at=kept.discarded_at,
        ordered=kept.ordered,
    )
    steps = ["in one transaction: the message rests in quarantine again as it was, the act is recorded"]
    if kept.ordered:
        steps.append(
            "its key is parked with it as the head: what comes of the key from then on waits behind it"
        )
    steps.append("nothing runs by this: redrive it, or discard it again")
    return RestorePreview(
        order=order, message=message, since=since, out_of_order=out_of_order, steps=tuple(steps)
    )


def check_confirmed(preview: RestorePreview, *, out_of_order: bool) -> None:
    """
    Check that what restoring means for the order of the key was confirmed.

    Raises:
        UsageError: It was not.
    """
    if preview.out_of_order and not out_of_order:
        ran = [later for later in preview.since.messages if later.ran]
        what = (
            f"{len(ran)} later messages of its key have run"
            if ran
            else "later messages of its key may have run"
        )
        raise UsageError(
            f"message {preview.message.id} would take effect out of order: {what} ({preview.since.said}); nothing was done. "
            "See packhorse quarantine restore without --yes, then add --out-of-order"
        )


def key_move(order: RestoreOrder, row: KeyRow | None) -> KeyMove:
    """
    Return what becomes of the key, whose row is locked.

    A key without a row is parked. A row whose head is finished, or is this message, gets it as its head: what waits there is
    later. A head that waits itself can't be put behind it, so that is refused.

    Raises:
        OwnershipLost: Messages of the key are being run just now, or another head waits; names it.
    """
    if row is None:
        return KeyMove.PARK
    if row.draining:
        raise OwnershipLost(
            f"message {order.id}: messages of its key are being run just now; nothing was done, try again in a moment"
        )
    if row.open and row.head is not None and row.head != order.id:
        raise OwnershipLost(
            f"message {order.id}: its key waits behind message {row.head} by now; nothing was done. Redrive or discard that one "
            f"first: packhorse status {row.head}"
        )
    return KeyMove.HEAD


def with_outcomes(
    found: Sequence[tuple[UUID, int]], outcomes: dict[UUID, tuple[Outcome, datetime]]
) -> tuple[Later, ...]:
    """Return later messages, given as id and offset, with what the group's inbox says of each."""
    return tuple(
        Later(
            id=message_id,
            offset=offset,
            outcome=outcome,
            changed_at=changed_at,
        )
        for message_id, offset in found
        for outcome, changed_at in [outcomes.get(message_id, (None, None))]
    )
