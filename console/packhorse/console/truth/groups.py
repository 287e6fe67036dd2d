"""How one group stands with one message, from its rows. Pure: no I/O, no clock."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from packhorse.console.facts import (
    Act,
    Facts,
    FailedAttempt,
    InboxRow,
    Outcome,
    QuarantinedMessage,
    State,
)


class Redrive(StrEnum):
    """How far a redrive has come; only an outcome proves it."""

    NONE = "none"
    ASKED = "asked"
    SENT = "sent"
    PROVED = "proved"


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupStatus:
    """
    How one group stands with the message of one topic.

    Attributes:
        ran: The attempt that the last redrive ordered has run and failed; another one is next.
    """

    group: str
    topic: str
    inbox: InboxRow | None
    attempts: tuple[FailedAttempt, ...]
    quarantined: QuarantinedMessage | None
    redrive: Redrive
    ran: bool
    standing: str


def is_open(group: GroupStatus) -> bool:
    """Say whether the group is not through with the message: something has to run, or somebody to decide."""
    return group.inbox is None or group.inbox.outcome not in {
        Outcome.DONE,
        Outcome.SKIPPED,
        Outcome.DISCARDED,
    }


def redrive_of(
    quarantined: QuarantinedMessage | None, inbox: InboxRow | None, ordered: int | None = None
) -> Redrive:
    """
    Tell "asked", "sent" and "proved" apart; *ordered* is the attempt that the last redrive ordered, if the audit has it.

    Asked: the order stands in the database. Sent: the broker has confirmed the copy, or the attempt has run and another one
    follows. Proved: the message has an outcome since, good or bad.
    """
    if quarantined is None or quarantined.redrives == 0:
        return Redrive.NONE
    if quarantined.state is not State.REDRIVEN or (inbox is not None and inbox.outcome is not Outcome.RETRY):
        return Redrive.PROVED
    return Redrive.SENT if _ran(inbox, ordered) or quarantined.redrive_sent_at is not None else Redrive.ASKED


def _ran(inbox: InboxRow | None, ordered: int | None) -> bool:
    return inbox is not None and ordered is not None and inbox.attempt > ordered


def last_act(acts: Sequence[Act], group: str, topic: str, *names: str) -> Act | None:
    """Return the last of *acts* on the message of *group* and *topic* that is called one of *names*."""
    found = (act for act in reversed(acts) if (act.group, act.topic) == (group, topic) and act.act in names)
    return next(found, None)


def ordered_attempt(acts: Sequence[Act], group: str, topic: str) -> int | None:
    """Return the attempt that the last redrive of *group* and *topic* ordered; None when the audit does not say."""
    act = last_act(acts, group, topic, "redrive")
    attempt = None if act is None else act.detail.get("attempt")
    return attempt if isinstance(attempt, int) else None


def groups_of(facts: Facts) -> list[tuple[str, str]]:
    """Return the groups that have a row of the message, each with the topic."""
    return sorted(
        {(row.group, row.topic) for row in facts.inbox}
        | {(row.group, row.topic) for row in facts.quarantined}
        | {(row.group, row.topic) for row in facts.attempts}
    )


def group_status(facts: Facts, group: str, topic: str) -> GroupStatus:
    """Return how *group* stands with the message of *topic*."""
    inbox = next((row for row in facts.inbox if (row.group, row.topic) == (group, topic)), None)
    quarantined = next((row for row in facts.quarantined if (row.group, row.topic) == (group, topic)), None)
    ordered = ordered_attempt(facts.acts, group, topic)
    redrive, ran = redrive_of(quarantined, inbox, ordered), _ran(inbox, ordered)
    return GroupStatus(
        group=group,
        topic=topic,
        inbox=inbox,
        attempts=tuple(row for row in facts.attempts if (row.group, row.topic) == (group, topic)),
        quarantined=quarantined,
        redrive=redrive,
        ran=ran,
        standing=_group_standing(inbox, quarantined, redrive, ran=ran) + _queue(facts, group, topic, inbox),
    )


def _group_standing(
    inbox: InboxRow | None, quarantined: QuarantinedMessage | None, redrive: Redrive, *, ran: bool
) -> str:
    if redrive is Redrive.ASKED:
        return "redrive asked: a running processor of the group sends it"
    if redrive is Redrive.SENT:
        if inbox is not None and ran:
            return f"redriven and failed: attempt {inbox.attempt} is next"
        return "redrive sent: no outcome yet"
    if inbox is None:
        return "quarantine" if quarantined is not None else "tried, no outcome on record"
    match inbox.outcome:
        case Outcome.RETRY:
            return f"retry: attempt {inbox.attempt} is next" + ("" if inbox.due_at is None else ", see due")
        case Outcome.QUARANTINE:
            again = "" if redrive is Redrive.NONE else " again, after a redrive"
            return f"quarantine{again}: {inbox.reason or 'no reason on record'}"
        case Outcome.DONE if redrive is Redrive.PROVED:
            return "done, after a redrive"
        case _:
            return inbox.outcome.value + ("" if inbox.behind is None else f": waits behind {inbox.behind}")


def _queue(facts: Facts, group: str, topic: str, inbox: InboxRow | None) -> str:
    """Return where a follower stands in the queue of its key, and what besides its head holds the key."""
    around, key = facts.around, facts.around.key_of(group, topic)
    found = [each for each in around.queued if (each.group, each.topic) == (group, topic)]
    if inbox is None or inbox.outcome is not Outcome.PARKED or not found or key is None:
        return ""
    stopped = ", its key is paused" if key.paused else ""
    return f", {found[0].position} of {max(key.waiting, found[0].position)} in the queue{stopped}"
