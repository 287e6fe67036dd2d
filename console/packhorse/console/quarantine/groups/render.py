"""Lay groups out for people; the JSON and CSV of the same answers stand beside each."""

from collections.abc import Iterator
from typing import Any

from rich.console import Group as Sheets
from rich.console import RenderableType
from rich.text import Text

from packhorse.console.output import at, plain, said, sheet, table
from packhorse.console.quarantine.groups.model import (
    MOST_SINCE,
    By,
    ForGood,
    Group,
    GroupPage,
    GroupShown,
    uncounted_line,
)
from packhorse.core.text import counted

SHORT = 8
"""Digits of a print that a table shows; a command takes them as long as one group alone begins so."""
CSV_COLUMNS = (
    *("name", "quarantined", "redriven", "discarded", "share", "first_at", "last_at", "group", "topic"),
    *("type", "reason", "site", "acknowledged_by", "since_acknowledged", "notes", "contact"),
)


def groups_table(page: GroupPage) -> RenderableType:
    """Return one page of groups for people."""
    if page.by is not By.FAILURE:
        columns = (page.by.value, "quarantined", "share", "redriven", "discarded", "first", "last")
        return table(columns, [(group.name or "(none)", *_counts(group)) for group in page.groups])
    heads = (
        *("failure", "quarantined", "share", "redriven", "discarded", "first", "last", "group", "topic"),
        *("type", "reason", "error", "known"),
    )
    return table(heads, [_failure_row(group) for group in page.groups])


def groups_json(page: GroupPage) -> dict[str, Any]:
    """Return one page for programs; `next` is the token for --after, null on the last page."""
    return {
        "by": page.by,
        "groups": [group_json(group) for group in page.groups],
        "groups_in_all": page.groups_in_all,
        "uncounted": page.uncounted,
        "next": None if page.next is None else page.next.token(),
    }


def groups_csv(page: GroupPage) -> Iterator[tuple[object, ...]]:
    """Yield the rows of one page under CSV_COLUMNS."""
    for group in page.groups:
        failure, known = group.failure, group.known
        yield (
            *(group.name, group.quarantined, group.redriven, group.discarded, round(group.share, 4)),
            *(group.first_at, group.last_at),
            *((None,) * 5 if failure is None else _of_failure(group)),
            *(
                (None,) * 4
                if known is None
                else (known.acknowledged_by, known.since, known.notes, known.contact)
            ),
        )


def group_json(group: Group) -> dict[str, Any]:
    """Return *group* for programs."""
    return {
        "name": group.name,
        "quarantined": group.quarantined,
        "redriven": group.redriven,
        "discarded": group.discarded,
        "total": group.total,
        "share": round(group.share, 6),
        "first_at": group.first_at,
        "last_at": group.last_at,
        "failure": group.failure,
        "known": group.known,
    }


def group_sheet(shown: GroupShown) -> RenderableType:
    """Return one group of failures for people."""
    group = shown.group
    parts: list[RenderableType] = [sheet(_pairs(group, shown.for_good))]
    if shown.uncounted:
        parts.append(Text(uncounted_line(shown.uncounted)))
    days = [(f"  {day.day}", day.quarantined, day.redriven, day.discarded) for day in shown.days]
    parts += [
        Text("\nby day", style="bold"),
        table(("  day (UTC)", "quarantined", "redriven", "discarded"), days),
    ]
    if any(name for name, _ in shown.tenants):
        rows = [(f"  {plain(name or '(none)')}", count) for name, count in shown.tenants]
        parts += [Text("\ntenants, the largest", style="bold"), table(("  tenant", "quarantined"), rows)]
    parts += [Text("\nnewest messages", style="bold"), *(said(f"  {one}") for one in shown.samples)]
    if shown.notes:
        notes = [(f"  {at(note.at)}", note.actor, note.note) for note in shown.notes]
        parts += [Text("\nnotes", style="bold"), table(("  at", "by", "note"), notes)]
    # whole, however narrow the terminal is: they are there to be copied
    steps = [Text(f"  {step}", no_wrap=True, overflow="ignore") for step in next_steps(group)]
    return Sheets(*parts, Text("\nnext", style="bold"), *steps)


def next_steps(group: Group) -> tuple[str, ...]:
    """Return the commands that a person goes on with: look at the messages, say that it is known, redrive what is mended."""
    print_ = plain(group.name)[:SHORT]
    return (
        f"packhorse quarantine list --failure {print_}",
        f'packhorse quarantine ack {print_} --why "…"',
        f"packhorse redrive preview --failure {print_}",
    )


def group_shown_json(shown: GroupShown) -> dict[str, Any]:
    """Return one group of failures for programs."""
    good = shown.for_good
    return {
        **group_json(shown.group),
        "failed_for_good": {
            "share": None if good.share is None else round(good.share, 6),
            "failed": good.failed,
            "stopped": good.stopped,
            "since": good.since,
            "said": good.said,
        },
        "days": [
            {
                "day": str(day.day),
                "quarantined": day.quarantined,
                "redriven": day.redriven,
                "discarded": day.discarded,
            }
            for day in shown.days
        ],
        "tenants": [{"tenant": name, "quarantined": count} for name, count in shown.tenants],
        "samples": shown.samples,
        "notes": shown.notes,
        "uncounted": shown.uncounted,
    }


def known_line(group: Group) -> str:
    """Return what people know of a group, in a few words."""
    known = group.known
    if known is None:
        return ""
    found = []
    if known.acknowledged_at is not None:
        more = "" if known.since is None else f", {_since(known.since)} since"
        found.append(f"acknowledged by {known.acknowledged_by} {at(known.acknowledged_at)}{more}")
    if known.notes:
        found.append(f"{counted(known.notes, 'note')}")
    if known.contact is not None:
        told = "not told yet" if known.told_at is None else f"told {at(known.told_at)}"
        found.append(f"contact {known.contact}, {told}")
    return "; ".join(found) or "-"


def for_good_line(found: ForGood) -> str:
    """
    Say which share of what failed ended in quarantine, and of what that is known.

    >>> for_good_line(ForGood(failed=40, stopped=10, said="of all that are kept"))
    '25.0 %: of 40 messages of this group, topic and type that failed at least once, 10 ended here (of all that are kept)'
    """
    if found.share is None:
        return found.said
    since = "" if found.since is None else f", since {at(found.since)}"
    return (
        f"{found.share * 100:.1f} %: of {counted(found.failed or 0, 'message')} of this group, topic and type that failed at least once, "
        f"{found.stopped} ended here ({found.said}{since})"
    )


def _since(count: int) -> str:
    return f"at least {count}" if count >= MOST_SINCE else str(count)


def _counts(group: Group) -> tuple[object, ...]:
    return (
        *(group.quarantined, f"{group.share * 100:.1f} %", group.redriven, group.discarded),
        *(group.first_at, group.last_at),
    )


def _of_failure(group: Group) -> tuple[object, ...]:
    failure = group.failure
    assert failure is not None
    return failure.group, failure.topic, failure.type, failure.reason, failure.site


def _failure_row(group: Group) -> tuple[object, ...]:
    return group.name[:SHORT], *_counts(group), *_of_failure(group), known_line(group)


def _pairs(group: Group, good: ForGood) -> list[tuple[str, object]]:
    failure = group.failure
    assert failure is not None
    return [
        ("failure", said(group.name, "bold")),
        ("group", failure.group),
        ("topic", failure.topic),
        ("type", failure.type),
        ("reason", failure.reason),
        ("error", failure.site),
        ("quarantined", group.quarantined),
        ("redriven", group.redriven),
        ("discarded", group.discarded),
        ("first", group.first_at),
        ("last", group.last_at),
        ("failed for good", for_good_line(good)),
        ("known", known_line(group)),
    ]
