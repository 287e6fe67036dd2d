"""One answer for one id, put together from facts; what is not known is said so. Pure: no I/O, no clock."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from uuid import UUID

from packhorse.console.facts import (
    Act,
    Discard,
    Facts,
    FailedAttempt,
    Forgotten,
    Hold,
    InboxRow,
    OutboxRow,
    Outcome,
    Place,
    QuarantinedMessage,
    State,
)
from packhorse.core.partitions import partition_of

_WIDTHS = ("row", "key", "partition", "topic")
"""Scopes of holds, the narrowest first: a row waits in the narrowest that fits it."""


class Published(StrEnum):
    """Whether the message is on its topic, as far as this database and the search can say."""

    YES = "yes"
    NOT_YET = "not yet"
    NEVER = "never"
    UNKNOWN = "unknown"


class Redrive(StrEnum):
    """How far a redrive has come; only an outcome proves it."""

    NONE = "none"
    ASKED = "asked"
    SENT = "sent"
    PROVED = "proved"


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """
    What a look into the topic brought.

    Attributes:
        place: Where the record stands, if it was seen.
        said: What was looked through and with what result, or why nobody looked.
    """

    place: Place | None = None
    said: str


NOT_NEEDED = Search(said="not needed: a delivery is known")
NOT_ASKED = Search(said="not searched; --search looks into the key's partition")


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupStatus:
    """How one group stands with the message of one topic."""

    group: str
    topic: str
    inbox: InboxRow | None
    attempts: tuple[FailedAttempt, ...]
    quarantined: QuarantinedMessage | None
    redrive: Redrive
    standing: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """
    The way of one message so far.

    Attributes:
        known: False when this database has no row of the id: it is not recorded, not pending, nothing.
        standing: The answer in one line.
        published_why: What `published` rests on.
        place: Where the record stands on its topic, the earliest that is known.
        hold: The hold of the relay that keeps it back; None: none does.
        discard: Who gave it up before it was published.
        forgotten: Groups that may have dealt with it and whose inbox no longer keeps rows of that time.
    """

    id: UUID
    known: bool
    standing: str
    recorded: OutboxRow | None
    published: Published
    published_why: str
    place: Place | None
    search: Search
    groups: tuple[GroupStatus, ...]
    acts: tuple[Act, ...]
    hold: Hold | None = None
    discard: Discard | None = None
    forgotten: tuple[Forgotten, ...] = ()


def status_of(facts: Facts, search: Search) -> Status:
    """Return the status that *facts* and *search* add up to."""
    groups = tuple(_group_status(facts, group, topic) for group, topic in _groups(facts))
    place = search.place or _place_of(facts)
    hold = hold_of(facts)
    published, why = _published(facts, place, hold)
    known = bool(facts.recorded or groups or facts.acts or place)
    return Status(
        id=facts.id,
        known=known,
        standing=_standing(facts, known=known, published=published, groups=groups, hold=hold),
        recorded=facts.recorded,
        published=published,
        published_why=why,
        place=place,
        search=search,
        groups=groups,
        acts=facts.acts,
        hold=hold,
        discard=facts.discard,
        forgotten=tuple(
            each for each in facts.forgotten if each.group not in {group for group, _ in _groups(facts)}
        ),
    )


def hold_of(facts: Facts) -> Hold | None:
    """Return the hold that the row waits in: the narrowest of those that fit it; None: it waits in none."""
    row = facts.recorded
    if row is None:
        return None
    fits = [hold for hold in facts.holds if hold.scope != "partition" or _in_partition(row.key, hold)]
    return min(fits, key=lambda hold: (_WIDTHS.index(hold.scope), hold.id), default=None)


def _in_partition(key: str | None, hold: Hold) -> bool:
    assert hold.partitions is not None
    return key is not None and partition_of(key.encode(), hold.partitions) == hold.partition


def delivery_known(facts: Facts) -> bool:
    """Say whether some group has dealt with the message, so that no topic has to be searched."""
    return bool(facts.inbox or facts.quarantined)


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
    ran = inbox is not None and ordered is not None and inbox.attempt > ordered
    return Redrive.SENT if ran or quarantined.redrive_sent_at is not None else Redrive.ASKED


def ordered_attempt(acts: Sequence[Act], group: str, topic: str) -> int | None:
    """Return the attempt that the last redrive of *group* and *topic* ordered; None when the audit does not say."""
    details = [act.detail for act in acts if (act.act, act.group, act.topic) == ("redrive", group, topic)]
    attempt = details[-1].get("attempt") if details else None
    return attempt if isinstance(attempt, int) else None


def _groups(facts: Facts) -> list[tuple[str, str]]:
    return sorted(
        {(row.group, row.topic) for row in facts.inbox}
        | {(row.group, row.topic) for row in facts.quarantined}
        | {(row.group, row.topic) for row in facts.attempts}
    )


def _group_status(facts: Facts, group: str, topic: str) -> GroupStatus:
    inbox = next((row for row in facts.inbox if (row.group, row.topic) == (group, topic)), None)
    quarantined = next((row for row in facts.quarantined if (row.group, row.topic) == (group, topic)), None)
    ordered = ordered_attempt(facts.acts, group, topic)
    redrive = redrive_of(quarantined, inbox, ordered)
    return GroupStatus(
        group=group,
        topic=topic,
        inbox=inbox,
        attempts=tuple(row for row in facts.attempts if (row.group, row.topic) == (group, topic)),
        quarantined=quarantined,
        redrive=redrive,
        standing=_group_standing(inbox, quarantined, redrive, ordered),
    )


def _group_standing(
    inbox: InboxRow | None, quarantined: QuarantinedMessage | None, redrive: Redrive, ordered: int | None
) -> str:
    if redrive is Redrive.ASKED:
        return "redrive asked: a running processor of the group sends it"
    if redrive is Redrive.SENT:
        if inbox is not None and ordered is not None and inbox.attempt > ordered:
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


def forgotten_line(forgotten: Sequence[Forgotten]) -> str:
    """
    Say which groups may have dealt with a message and no longer know.

    >>> from datetime import UTC, datetime
    >>> forgotten_line([Forgotten(group="figures", kept_from=datetime(2026, 8, 1, tzinfo=UTC), days=22)])
    'group figures keeps rows for 22 days, and may have dealt with it'
    """
    named = ", ".join(f"{each.group} keeps rows for {each.days} days" for each in forgotten)
    return f"group {named}, and may have dealt with it"


def _published(facts: Facts, place: Place | None, hold: Hold | None) -> tuple[Published, str]:
    row = facts.recorded
    if place is not None:
        return Published.YES, f"the record was seen at {place.topic}/{place.partition}/{place.offset}"
    if facts.discard is not None:
        return Published.NEVER, f"{facts.discard.actor} gave it up"
    if hold is not None:
        again = "; it may have been published before" if hold.code == "republish" else ""
        return Published.NOT_YET, f"hold {hold.id} keeps it back ({hold.code}){again}"
    if row is None:
        return Published.UNKNOWN, "this database did not record it"
    if row.published:
        return Published.YES, "the relay's horizon is past it"
    if row.published is None:
        return Published.UNKNOWN, "this database has no row of a relay"
    if not row.relay_ran:
        return Published.NOT_YET, "no relay has run on this database yet; start one: packhorse relay run"
    return Published.NOT_YET, "the relay's horizon is not past it"


def _place_of(facts: Facts) -> Place | None:
    rows: list[InboxRow | QuarantinedMessage] = [*facts.inbox, *facts.quarantined]
    places = [Place(topic=row.topic, partition=row.partition, offset=row.offset) for row in rows]
    return min(places, key=lambda place: place.offset, default=None)


def _standing(
    facts: Facts, *, known: bool, published: Published, groups: tuple[GroupStatus, ...], hold: Hold | None
) -> str:
    if not known and facts.forgotten:
        return f"older than the inbox keeps: no row; {forgotten_line(facts.forgotten)}"
    if not known:
        return (
            f"unknown: no outbox row, delivery, quarantined message or act in database schema {facts.schema}; "
            "it was never committed here, or its rows are older than what is kept"
        )
    if groups:
        return "; ".join(f"{group.group}: {group.standing}" for group in groups)
    if published is Published.NEVER:
        return "discarded before it was published"
    if published is Published.NOT_YET:
        return (
            "recorded, not yet published"
            if hold is None
            else f"held by the relay, hold {hold.id}: {hold.code}"
        )
    if published is Published.YES and facts.forgotten:
        return f"published; {forgotten_line(facts.forgotten)}"
    if published is Published.YES:
        return "published, no delivery known in this database"
    return "recorded; whether it is published is unknown"
