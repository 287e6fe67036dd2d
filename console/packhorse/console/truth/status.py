"""One answer for one id, put together from facts; what is not known is said so. Pure: no I/O, no clock."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from uuid import UUID

from packhorse.console.facts import (
    Act,
    Discard,
    Facts,
    Forgotten,
    Hold,
    InboxRow,
    OutboxRow,
    Place,
    QuarantinedMessage,
)
from packhorse.console.truth.around import NOTHING_AROUND, Around
from packhorse.console.truth.awaited import Awaited, awaited_of
from packhorse.console.truth.groups import GroupStatus, group_status, groups_of
from packhorse.console.truth.jobs import JobFacts, job_standing
from packhorse.core.partitions import partition_of

_WIDTHS = ("row", "key", "partition", "topic")
"""Scopes of holds, the narrowest first: a row waits in the narrowest that fits it."""


class Published(StrEnum):
    """Whether the message is on its topic, as far as this database and the search can say."""

    YES = "yes"
    NOT_YET = "not yet"
    NEVER = "never"
    UNKNOWN = "unknown"


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
        awaited: Groups that read its topic and have no row of it.
        job: How the job of this id stands; None: it is no job's.
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
    awaited: tuple[Awaited, ...] = ()
    job: JobFacts | None = None
    around: Around = NOTHING_AROUND


def status_of(facts: Facts, search: Search) -> Status:
    """Return the status that *facts* and *search* add up to."""
    groups = tuple(group_status(facts, group, topic) for group, topic in groups_of(facts))
    place = search.place or _place_of(facts)
    hold = _hold_of(facts)
    published, why = _published(facts, place, hold)
    row = facts.recorded
    known = {group.group for group in groups}
    made = Status(
        id=facts.id,
        known=bool(row or groups or facts.acts or place or facts.around.parents or facts.job),
        standing="",
        recorded=row,
        published=published,
        published_why=why,
        place=place,
        search=search,
        groups=groups,
        acts=facts.acts,
        hold=hold,
        discard=facts.discard,
        forgotten=tuple(each for each in facts.forgotten if each.group not in known),
        awaited=()
        if published is not Published.YES
        else awaited_of(
            facts.around, place, {(group.group, group.topic) for group in groups}, facts.forgotten
        ),
        job=facts.job,
        around=facts.around,
    )
    return replace(made, standing=_standing(facts, made))


def _hold_of(facts: Facts) -> Hold | None:
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
    return _unrecorded(facts.job) if row is None else _by_horizon(row)


def _unrecorded(job: JobFacts | None) -> tuple[Published, str]:
    if job is not None and job.due_at is not None:
        return Published.NOT_YET, "the job waits for its time; its outbox row is written then"
    return (
        Published.UNKNOWN,
        "this database did not record it" if job is None else "no outbox row of it is kept",
    )


def _by_horizon(row: OutboxRow) -> tuple[Published, str]:
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


def _standing(facts: Facts, status: Status) -> str:
    if not status.known:
        return _unknown(facts)
    if facts.job is None:
        return _message_standing(facts, status)
    assert facts.around.now is not None, "the facts come with the database's time"
    job = job_standing(facts.job, facts.around.now)
    return job if facts.job.due_at is not None else f"{job}; {_message_standing(facts, status)}"


def _message_standing(facts: Facts, status: Status) -> str:
    if status.groups:
        late = [f"{each.group}: {each.short}" for each in status.awaited if each.below is False]
        return "; ".join([*(f"{group.group}: {group.standing}" for group in status.groups), *late])
    hold = status.hold
    match status.published:
        case Published.NEVER:
            return "discarded before it was published"
        case Published.NOT_YET:
            return (
                "recorded, not yet published"
                if hold is None
                else f"held by the relay, hold {hold.id}: {hold.code}"
            )
        case Published.YES if any(each.below is not None for each in status.awaited):
            told = (f"{each.group}: {each.short}" for each in status.awaited if each.below is not None)
            return f"published; {'; '.join(told)}"
        case Published.YES if facts.forgotten:
            return f"published; {forgotten_line(facts.forgotten)}"
        case Published.YES:
            return "published, no delivery known in this database"
        case _ if status.recorded is None:
            return "no outbox row of it (any more)"
        case _:
            return "recorded; whether it is published is unknown"


def _unknown(facts: Facts) -> str:
    if facts.forgotten:
        return f"older than the inbox keeps: no row; {forgotten_line(facts.forgotten)}"
    return (
        f"unknown: no outbox row, delivery, quarantined message or act in database schema {facts.schema}; "
        "it was never committed here, or its rows are older than what is kept"
    )
