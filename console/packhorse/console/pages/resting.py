"""Where the pages of the quarantine lead, how they count, and when what rests there came. Pure: no I/O, no clock."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from urllib.parse import urlencode
from uuid import UUID

from packhorse.console.api.models.failures import FailuresAsked
from packhorse.console.api.models.quarantine import StateAsked
from packhorse.console.pages.charts import Bar, bars_of
from packhorse.console.quarantine.groups.model import By, Group
from packhorse.core.moments import moment_from
from packhorse.core.text import counted

DAYS = 30
"""Days that the chart of arrivals shows."""
MOST_DAYS = 92
_FILTERS = ("group", "topic", "type", "reason", "tenant")


def address(path: str, **query: object) -> str:
    """
    Return *path* with all of *query* that is something.

    >>> address("/quarantine", group="figures", reason=None, type="")
    '/quarantine?group=figures'
    """
    given = {name: value for name, value in query.items() if value not in {None, ""}}
    return f"{path}?{urlencode(given)}" if given else path


def resting_at(message_id: UUID, group: str | None, topic: str | None, act: str = "") -> str:
    """
    Return where one message in quarantine is shown, or where *act* on it is offered.

    >>> resting_at(UUID(int=1), "figures", "airline.aircraft", "redrive")
    '/quarantine/00000000-0000-0000-0000-000000000001/redrive?group=figures&topic=airline.aircraft'
    """
    return address(f"/quarantine/{message_id}{act and '/' + act}", group=group, topic=topic)


def whole_way(message_id: UUID, group: str | None = None, topic: str | None = None) -> str:
    """Return where the whole way of one message is shown: there it shows whether what was asked is sent, and proved."""
    return address(f"/messages/{message_id}", group=group, topic=topic)


def timed(query: Mapping[str, str], now: datetime) -> dict[str, str]:
    """
    Return *query* with the times that people type in it, as `2h` ago, written out.

    >>> from datetime import UTC
    >>> timed({"since": "2h", "group": "figures"}, datetime(2026, 1, 2, 12, tzinfo=UTC))
    {'since': '2026-01-02T10:00:00+00:00', 'group': 'figures'}

    Raises:
        UsageError: One is no time.
    """
    return {
        name: moment_from(value, option=name, now=now).isoformat() if name in {"since", "until"} else value
        for name, value in query.items()
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """How many messages there are, by what was decided about them."""

    quarantined: int = 0
    redriven: int = 0
    discarded: int = 0


def totals_of(by_state: Iterable[Group]) -> Totals:
    """Return the counts of groups by their state."""
    found = list(by_state)
    return Totals(
        quarantined=sum(group.quarantined for group in found),
        redriven=sum(group.redriven for group in found),
        discarded=sum(group.discarded for group in found),
    )


def headline_of(totals: Totals, *, is_narrow: bool, is_counting: bool = False) -> tuple[str, str]:
    """
    Return how the quarantine stands in a few words, and how they are coloured; while it is still counted that is no verdict.

    >>> headline_of(Totals(), is_narrow=False), headline_of(Totals(quarantined=2), is_narrow=True)
    (('Nothing is in quarantine', ''), ('2 messages that fit wait for a person', 'warn'))
    >>> headline_of(Totals(quarantined=2), is_narrow=False, is_counting=True)
    ('Still counting: 2 messages so far', 'warn')
    """
    if is_counting:
        return f"Still counting: {counted(totals.quarantined, 'message')} so far", "warn"
    if totals.quarantined:
        fits = " that fit" if is_narrow else ""
        if totals.quarantined == 1:
            fits = " that fits" if is_narrow else ""
            return f"1 message{fits} waits for a person", "warn"
        return f"{counted(totals.quarantined, 'message')}{fits} wait for a person", "warn"
    return ("Nothing that fits is in quarantine" if is_narrow else "Nothing is in quarantine"), ""


def narrows(asked: FailuresAsked) -> bool:
    """Return whether *asked* leaves anything out, but for what was decided already."""
    return any(getattr(asked, name) is not None for name in (*_FILTERS, "since", "until"))


def messages_of(asked: FailuresAsked) -> dict[str, str]:
    """
    Return what a list of the messages is asked for that *asked* counts; its last day is in, so the list ends before the next.

    >>> messages_of(FailuresAsked(group="figures", until=date(2026, 8, 1)))
    {'group': 'figures', 'until': '2026-08-02T00:00:00Z'}
    """
    found = {name: value for name in _FILTERS if (value := getattr(asked, name)) is not None}
    if asked.since is not None:
        found["since"] = f"{asked.since}T00:00:00Z"
    if asked.until is not None:
        found["until"] = f"{asked.until + timedelta(days=1)}T00:00:00Z"
    if asked.state is not StateAsked.QUARANTINED:
        found["state"] = asked.state.value
    return found


def set_of(asked: FailuresAsked) -> dict[str, str]:
    """Return the filters of a set that is redriven of what *asked* counts: only what is in quarantine can be."""
    return {name: value for name, value in messages_of(asked).items() if name != "state"}


def kin_of(by: By, name: str, asked: FailuresAsked) -> str | None:
    """
    Return where the messages of a group are listed that is counted *by* something; None: no list can be asked for it.

    >>> kin_of(By.CLASS, "ValueError", FailuresAsked(topic="airline.aircraft"))
    '/quarantine/messages?topic=airline.aircraft&text=ValueError'
    """
    found = messages_of(asked)
    if not name:
        return None
    match by:
        case By.DAY:
            day = date.fromisoformat(name)
            found |= messages_of(FailuresAsked(since=day, until=day))
        case By.CLASS | By.PLACE:
            found["text"] = name
        case By.FAILURE:
            found["failure"] = name
        case _:
            found[by.value] = name
    return address("/quarantine/messages", **found)


def days_asked(asked: FailuresAsked, today: date) -> tuple[date, date] | None:
    """
    Return the first and the last day of the chart for *asked*; None where days can't be counted beside what it names.

    >>> [day.isoformat() for day in days_asked(FailuresAsked(), date(2026, 8, 30))]
    ['2026-08-01', '2026-08-30']
    """
    if asked.tenant is not None or asked.by is By.TENANT:
        return None
    last = min(asked.until or today, today)
    first = asked.since or last - timedelta(days=DAYS - 1)
    return (max(first, last - timedelta(days=MOST_DAYS - 1)), last) if first <= last else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrivals:
    """How many messages came to quarantine, day by day (UTC), however they stand now."""

    days: tuple[tuple[date, int], ...]
    bars: tuple[Bar, ...]

    @property
    def total(self) -> int:
        """Return how many came on all of these days."""
        return sum(count for _, count in self.days)

    @property
    def most(self) -> tuple[date, int]:
        """Return the day on which most came, the last of several, and how many."""
        return max(self.days, key=lambda each: (each[1], each[0]))


def arrivals_of(counts: Mapping[date, int], first: date, last: date) -> Arrivals:
    """
    Return the arrivals from *first* to *last*, both included: days on which nothing came have their place too.

    >>> [count for _, count in arrivals_of({date(2026, 8, 2): 5}, date(2026, 8, 1), date(2026, 8, 3)).days]
    [0, 5, 0]
    """
    span = [first + timedelta(days=n) for n in range((last - first).days + 1)]
    days = tuple((day, counts.get(day, 0)) for day in span)
    return Arrivals(days=days, bars=bars_of([(day.isoformat(), count) for day, count in days]))


def counts_of(by_day: Sequence[Group]) -> dict[date, int]:
    """Return the counts of groups by day."""
    return {date.fromisoformat(group.name): group.total for group in by_day if group.name}
