"""Groups of quarantined messages: what is counted, by what, and pages of it. Pure: no I/O, no clock."""

from dataclasses import dataclass
from datetime import date, datetime
from enum import StrEnum
from uuid import UUID

from packhorse.console import paging
from packhorse.console.facts import State
from packhorse.core.errors import UsageError

MAX_NOTE = 2_000
LEAST_PREFIX = 8
"""Hexadecimal digits of a print that a person has to type."""
MOST_SINCE = 10_000
"""Messages counted since a group was acknowledged; beyond them the answer is "at least"."""
MOST_CHANGES = 50_000
"""Changes that a look adds up itself, in 45 to 190 ms on a busy machine; with more it leaves them out, and says so: 20 to 34 ms beside a million."""


class By(StrEnum):
    """What messages are grouped by; failure is group, topic, type, reason and the class and place of the error together."""

    FAILURE = "failure"
    REASON = "reason"
    CLASS = "class"
    PLACE = "place"
    TYPE = "type"
    TENANT = "tenant"
    TOPIC = "topic"
    GROUP = "group"
    DAY = "day"
    STATE = "state"


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupFilter:
    """
    Which messages are counted; None lets all pass.

    Attributes:
        state: Groups that have any in this state, ordered by how many; the counts of other states are shown beside.
        since, until: Days in UTC, both included: counts are kept by the day.
    """

    group: str | None = None
    topic: str | None = None
    type: str | None = None
    tenant: str | None = None
    reason: str | None = None
    state: State | None = State.QUARANTINED
    since: date | None = None
    until: date | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupPosition:
    """The last group of a page; the order is the largest first."""

    rank: int
    total: int
    name: str

    def token(self) -> str:
        """Return the position as one word for a command line."""
        return paging.token_of(self.rank, self.total, self.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """What all messages of one group of failures have in common."""

    group: str
    topic: str
    type: str | None
    reason: str
    site: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """
    What people know of a group of failures.

    Attributes:
        since: How many messages have come since it was acknowledged, MOST_SINCE at most; None: it is not acknowledged.
        contact: Who is told when messages of the type need a person, if the handler names somebody.
    """

    acknowledged_by: str | None = None
    acknowledged_at: datetime | None = None
    acknowledged_why: str | None = None
    since: int | None = None
    notes: int = 0
    contact: str | None = None
    told_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """
    One group and its counts, which are exact but for what its page says is uncounted.

    Attributes:
        name: The value that its messages share; of failures the print; empty where messages have none.
        share: Part of all that the filter lets pass, in the state that is asked for, from 0 to 1.
        failure, known: Of failures alone.
    """

    name: str
    quarantined: int
    redriven: int
    discarded: int
    first_at: datetime
    last_at: datetime
    share: float
    failure: Failure | None = None
    known: Known | None = None

    @property
    def total(self) -> int:
        """Return the messages in all states."""
        return self.quarantined + self.redriven + self.discarded


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupPage:
    """
    Some groups, the largest first.

    Attributes:
        groups_in_all: Those of all pages.
        next: None on the last page.
        uncounted: Changes that are not in the counts yet; 0: these are exact. More than MOST_CHANGES are MOST_CHANGES + 1.
    """

    by: By
    groups: tuple[Group, ...]
    groups_in_all: int
    next: GroupPosition | None
    uncounted: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """What somebody has written about a group of failures."""

    at: datetime
    actor: str
    note: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ForGood:
    """
    Of messages of the same group, topic and type that failed at least once: how many ended in quarantine.

    Attributes:
        failed, stopped: Messages; None: not known, and `said` says why.
        since: The time in the id of the oldest message that was looked at.
    """

    failed: int | None = None
    stopped: int | None = None
    since: datetime | None = None
    said: str = ""

    @property
    def share(self) -> float | None:
        """Return the part that ended in quarantine; None: not known."""
        return self.stopped / self.failed if self.failed and self.stopped is not None else None


@dataclass(frozen=True, slots=True, kw_only=True)
class OfDay:
    """How many messages of a group came on one day (UTC), by how they stand now."""

    day: date
    quarantined: int
    redriven: int
    discarded: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupShown:
    """One group of failures, whole: days the newest first, tenants the largest first, samples the newest; `uncounted` as of a page."""

    group: Group
    for_good: ForGood
    days: tuple[OfDay, ...]
    tenants: tuple[tuple[str, int], ...]
    samples: tuple[UUID, ...]
    notes: tuple[Note, ...]
    uncounted: int = 0


def checked_filter(wanted: GroupFilter, by: By) -> GroupFilter:
    """
    Return *wanted* when it can be counted.

    Raises:
        UsageError: It asks for tenants and days at once, or for a time that ends before it begins.
    """
    days = wanted.since is not None or wanted.until is not None or by is By.DAY
    if days and (wanted.tenant is not None or by is By.TENANT):
        raise UsageError(
            "counts are kept by the day and by the tenant, not by both at once; leave one out, or list messages: "
            "packhorse quarantine list --tenant NAME --since TIME"
        )
    if wanted.since is not None and wanted.until is not None and wanted.until < wanted.since:
        raise UsageError(f"--until {wanted.until} lies before --since {wanted.since}")
    return wanted


def day_from(text: str, *, option: str) -> date:
    """
    Return the day that *text* names.

    >>> day_from("2026-08-01", option="--since")
    datetime.date(2026, 8, 1)

    Raises:
        UsageError: It is no day, or a time within one.
    """
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise UsageError(
            f"{option} {text[:40]!r} is no day: counts are kept by whole days in UTC, such as 2026-08-01; for times within "
            "a day: packhorse quarantine list --since TIME"
        ) from None


def checked_print(text: str) -> str:
    """
    Return *text*, the print of a group of failures or its beginning, in small letters.

    >>> checked_print("0A1B2C3D")
    '0a1b2c3d'

    Raises:
        UsageError: It is none.
    """
    found = text.strip().lower()
    if not LEAST_PREFIX <= len(found) <= 32 or not set(found) <= set("0123456789abcdef"):
        raise UsageError(
            f"{text[:40]!r} is no print of a group of failures: {LEAST_PREFIX} to 32 hexadecimal digits, as "
            "`packhorse quarantine groups` shows them"
        )
    return found


def checked_note(text: str) -> str:
    """
    Return *text* without blanks around it.

    Raises:
        UsageError: It is empty or too long.
    """
    note = text.strip()
    if not 1 <= len(note) <= MAX_NOTE:
        raise UsageError(f"a note of {len(note)} characters; 1 to {MAX_NOTE} are allowed")
    return note


def group_position_from(token: str) -> GroupPosition:
    """Return the position that *token* stands for; raises UsageError for what is no token of ours."""
    return paging.position_from(token, _position)


def _position(rank: object, total: object, name: object) -> GroupPosition:
    if not (type(rank) is int and type(total) is int and isinstance(name, str) and "\0" not in name):
        raise ValueError("no counts, or no name")
    if max(abs(rank), abs(total)) >= 1 << 62:
        raise ValueError("no counts that a table holds")
    return GroupPosition(rank=rank, total=total, name=name)


def group_page_of(
    groups: list[Group], *, by: By, limit: int, in_all: int, state: State | None, uncounted: int
) -> GroupPage:
    """Return the page of the first *limit* of *groups*; one group more says that another page follows."""
    kept = tuple(groups[:limit])
    following = None
    if len(groups) > limit:
        last = kept[-1]
        rank = getattr(last, (state or State.QUARANTINED).value)
        following = GroupPosition(rank=rank, total=last.total, name=last.name)
    return GroupPage(by=by, groups=kept, groups_in_all=in_all, next=following, uncounted=uncounted)


def uncounted_line(uncounted: int) -> str:
    """
    Say that counts are not all there is.

    >>> uncounted_line(50_001)
    'still counting: more than 50,000 changes are not in these counts yet; they are added in the background'
    """
    how_many = f"more than {MOST_CHANGES:,}" if uncounted > MOST_CHANGES else f"{uncounted:,}"
    return f"still counting: {how_many} changes are not in these counts yet; they are added in the background"
