"""Decide about a redrive or a discard: what it would do, and which message is meant. Pure: no I/O, no clock."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from packhorse.console.facts import Act, InboxRow, Outcome, QuarantinedMessage, State
from packhorse.core.errors import OwnershipLost, UnknownId, UsageError
from packhorse.core.moments import zulu
from packhorse.core.naming import retry_topic
from packhorse.core.text import counted

REDRIVE, DISCARD = "redrive", "discard"


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """
    One redrive or discard as it was previewed; it holds only while the tables still say the same.

    Attributes:
        attempt: The attempt that failed last; the redrive orders the next.
        redrives, quarantined_at: As previewed: another redrive, or another round, changes them.
    """

    id: UUID
    group: str
    topic: str
    attempt: int
    redrives: int
    quarantined_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """What a redrive or a discard would do, line by line, and what speaks against it."""

    act: str
    order: Order
    message: QuarantinedMessage
    steps: tuple[str, ...]
    warnings: tuple[str, ...]


def chosen(
    found: Sequence[QuarantinedMessage], *, message_id: UUID, group: str | None, topic: str | None
) -> QuarantinedMessage:
    """
    Return the one quarantined message that is meant.

    Raises:
        UnknownId: None matches; says where it is.
        UsageError: Several match; names them and the flag that tells them apart.
    """
    fits = [row for row in found if group in {None, row.group} and topic in {None, row.topic}]
    if len(fits) == 1:
        return fits[0]
    if fits:
        each = ", ".join(f"--group {row.group} --topic {row.topic}" for row in fits)
        raise UsageError(f"message {message_id} is in quarantine more than once; say which: {each}")
    where = "".join(
        f" of {what} {name}" for what, name in (("group", group), ("topic", topic)) if name is not None
    )
    others = f"; it is there for {', '.join(sorted({row.group for row in found}))}" if found else ""
    raise UnknownId(
        f"message {message_id} is not in quarantine{where}{others}; see packhorse status {message_id}"
    )


def previewed(
    message: QuarantinedMessage,
    inbox: InboxRow | None,
    last: Act | None,
    *,
    act: str = REDRIVE,
    followers: int = 0,
    in_doubt: Sequence[str] = (),
) -> Preview:
    """
    Return what a redrive or a discard of *message* would do, behind which *followers* messages wait.

    If it is a job's, *in_doubt* names those of its outside effects of which nobody knows whether they have happened.

    Raises:
        OwnershipLost: Somebody has acted already; names who and when.
        UsageError: The tables contradict each other.
    """
    if message.state is not State.QUARANTINED:
        raise OwnershipLost(acted_already(message.id, message.group, message.state, last))
    if inbox is None or inbox.outcome is not Outcome.QUARANTINE:
        stands = "has no row" if inbox is None else f"says {inbox.outcome}"
        raise UsageError(
            f"message {message.id} of group {message.group} rests in quarantine but its inbox {stands}; "
            f"see packhorse status {message.id}, and do not change the tables by hand"
        )
    order = Order(
        id=message.id,
        group=message.group,
        topic=message.topic,
        attempt=inbox.attempt,
        redrives=message.redrives,
        quarantined_at=message.quarantined_at,
    )
    steps = _steps(order) if act == REDRIVE else _discards(followers)
    warnings = _warnings(message, followers, in_doubt) if act == REDRIVE else _warnings_of_discard(in_doubt)
    return Preview(act=act, order=order, message=message, steps=steps, warnings=warnings)


def acted_already(message_id: UUID, group: str, state: State | None, last: Act | None) -> str:
    """Return the sentence for the one who came second."""
    stands = "has moved since the preview" if state is None else f"is {state} already"
    who = "" if last is None else f": {last.act} by {last.actor} at {zulu(last.at)}"
    return f"message {message_id} of group {group} {stands}{who}; nothing was done now; see packhorse status {message_id}"


def _steps(order: Order) -> tuple[str, ...]:
    carrier = retry_topic(order.topic, order.group, "0s")
    return (
        f"in one transaction: the message is marked redriven, attempt {order.attempt + 1} is ordered, the act is recorded",
        f"a running processor of group {order.group} then sends the original bytes to {carrier}",
        f"the handler runs once more; if that fails too, the message is in quarantine again (redrive {order.redrives + 1})",
        "what waits behind it in its key runs after it has ended well",
    )


def _discards(followers: int) -> tuple[str, ...]:
    behind = (
        f"the {counted(followers, 'message that waits behind it runs', 'messages that wait behind it run')}, in order"
        if followers
        else "nothing waits behind it"
    )
    return (
        "in one transaction: the message is given up, its outcome is discarded, the act is recorded; its bytes stay for a while",
        f"{behind}; its handler is not run",
    )


def _warnings_of_discard(in_doubt: Sequence[str]) -> tuple[str, ...]:
    if not in_doubt:
        return ("its effect never comes about in this group; see that nobody needs it",)
    warns = (
        f"outside effects of its job may have happened ({', '.join(in_doubt[:5])}), and no run asks any more: look there by the "
        "idempotency keys that packhorse job show tells, before anybody does by hand what this job was to do"
    )
    return (warns,)


def _warnings(message: QuarantinedMessage, followers: int, in_doubt: Sequence[str]) -> tuple[str, ...]:
    found = []
    if message.key is not None and not followers:
        found.append("order: later messages of its key may have gone on; this one takes effect after them")
    if message.reason in {"undecodable", "unknown-schema", "unknown-type", "no-tombstone-handler"}:
        found.append(
            f"cause: {message.reason} lies in the bytes or in what is deployed; the bytes stay the same"
        )
    if message.redrives:
        found.append(f"it has been redriven {counted(message.redrives, 'time')} before and failed again")
    if in_doubt:
        found.append(
            f"effects of its job are in doubt ({', '.join(in_doubt[:5])}): the outside system is asked again where the job's code can, "
            f"else the job stops again; packhorse job resolve {message.id} says what happened"
        )
    return tuple(found)
