"""The tables of counts, and of what people know of groups of failures."""

from dataclasses import replace
from datetime import datetime
from typing import Any
from uuid import UUID

from packhorse.console.acting.person import Person
from packhorse.console.acting.postgres import Acting, Database, Rows
from packhorse.console.quarantine.groups import sql
from packhorse.console.quarantine.groups.model import (
    MOST_CHANGES,
    MOST_SINCE,
    By,
    Failure,
    ForGood,
    Group,
    GroupFilter,
    GroupPage,
    GroupPosition,
    GroupShown,
    Known,
    Note,
    OfDay,
    group_page_of,
    uncounted_line,
)
from packhorse.core.errors import DatabaseUnavailable, OwnershipLost, UnknownId, UsageError
from packhorse.core.ids import time_of
from packhorse.core.moments import zulu
from packhorse.core.rights import Right

MANY_CHANGES = 5_000
"""Changes from which on they are added to the counts, so many at a time."""
WHOLE = 32
"""Digits of a whole print."""
LOOK = 10_000
"""Failed attempts that are looked at for the share that failed for good."""
SHARE_SECONDS = 1.0
"""Seconds after which that share is not known."""


class GroupTables:
    """The groups of one database's quarantine."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def page(
        self, person: Person, wanted: GroupFilter, *, by: By, after: GroupPosition | None, limit: int
    ) -> GroupPage:
        """Return at most *limit* groups, the largest first, behind *after*."""
        with self._database.reading(person) as rows:
            uncounted = _uncounted(rows)
            found = rows.all(_statement(wanted, by), _values(wanted, by, after, limit, uncounted))
        in_all = found[0]["in_all"] if found else 0
        groups = [_group(row, by) for row in found]
        return group_page_of(
            groups, by=by, limit=limit, in_all=in_all, state=wanted.state, uncounted=uncounted
        )

    def show(self, person: Person, prefix: str) -> GroupShown:
        """Return the one group of failures whose print begins with *prefix*, whole."""
        with self._database.reading(person) as rows:
            uncounted = _uncounted(rows)
            print_, failure = _the_one(rows, prefix, uncounted)
            names = _names(print_, failure) | {"changes": not uncounted}
            wanted = GroupFilter(
                group=failure.group,
                topic=failure.topic,
                type=failure.type or "",
                reason=failure.reason,
                state=None,
            )
            found = rows.all(sql.GROUPS, _values(wanted, By.FAILURE, None, 1_000, uncounted))
            shown = GroupShown(
                group=_named(found, print_),
                for_good=ForGood(said="not looked for"),
                days=tuple(OfDay(**row) for row in rows.all(sql.DAYS_OF, names)),
                tenants=tuple((row["tenant"], row["n"]) for row in rows.all(sql.TENANTS_OF, names)),
                samples=tuple(row["id"] for row in rows.all(sql.SAMPLES_OF, names)),
                notes=tuple(Note(**row) for row in rows.all(sql.NOTES_OF, names)),
                uncounted=uncounted,
            )
        return replace(shown, for_good=self._for_good(person, names))

    def note(self, person: Person, prefix: str, note: str) -> tuple[str, datetime]:
        """Write *note* about the group and record the act in one transaction; return its print, and when."""
        with self._database.acting(person, Right.ACT, doing="write notes") as act:
            print_, failure = _the_one(act, prefix)
            written = act.all(sql.WRITE_NOTE, {"print": print_, "actor": act.actor, "note": note})
            _record(act, "note", print_, failure, None)
        return print_, written[0]["at"]

    def acknowledge(self, person: Person, prefix: str, why: str) -> tuple[str, datetime]:
        """
        Acknowledge the group and record the act in one transaction; return its print, and when.

        Raises:
            OwnershipLost: Somebody has acknowledged it already; names who and when.
        """
        with self._database.acting(person, Right.ACT, doing="acknowledge failures") as act:
            print_, failure = _the_one(act, prefix)
            done = act.first(sql.ACKNOWLEDGE, {"print": print_, "actor": act.actor, "why": why})
            if done is None:
                raise OwnershipLost(_acknowledged_already(act, print_))
            _record(act, "acknowledge", print_, failure, why)
        return print_, done["at"]

    def unacknowledge(self, person: Person, prefix: str, why: str | None) -> tuple[str, datetime]:
        """
        Take the acknowledgement back and record the act in one transaction; return the print, and when.

        Raises:
            OwnershipLost: Nobody has acknowledged it.
        """
        with self._database.acting(person, Right.ACT, doing="acknowledge failures") as act:
            print_, failure = _the_one(act, prefix)
            if act.first(sql.UNACKNOWLEDGE, {"print": print_}) is None:
                raise OwnershipLost(f"group {print_[:8]} is not acknowledged; nothing was done now")
            at = _record(act, "unacknowledge", print_, failure, why)
        return print_, at

    def print_of(self, person: Person, message_id: UUID, *, group: str | None, topic: str | None) -> str:
        """Return the print of the group that a quarantined message belongs to; raises UnknownId or UsageError."""
        values = {"id": message_id, "group": group, "topic": topic}
        with self._database.reading(person) as rows:
            found = {row["print"] for row in rows.all(sql.PRINT_OF, values)}
        if not found:
            raise UnknownId(f"message {message_id} is not in quarantine; see packhorse status {message_id}")
        if len(found) > 1:
            raise UsageError(
                f"message {message_id} is in quarantine more than once; say which with --group and --topic"
            )
        return str(found.pop())

    def waits(self) -> bool:
        """Return whether so many changes wait to be added to the counts that it is worth doing, and our role may."""
        asked = {"many": MANY_CHANGES, "fold": f'"{self._database.schema}".fold_quarantine(int)'}
        with self._database.working() as rows:
            row = rows.all(sql.LONG_CHANGES, asked)[0]
        return bool(row["many"] and row["may"])

    def fold(self) -> bool:
        """Add a portion of the changes to the counts; return whether more may wait. None is added while somebody else does."""
        with self._database.working() as rows:
            return bool(rows.all(sql.FOLD, {"step": MANY_CHANGES})[0]["folded"] >= MANY_CHANGES)

    def _for_good(self, person: Person, names: dict[str, Any]) -> ForGood:
        try:
            with self._database.reading(person, timeout=SHARE_SECONDS) as rows:
                row = rows.all(sql.FOR_GOOD, {**names, "look": LOOK})[0]
        except DatabaseUnavailable:
            return ForGood(said=f"not known: counting took longer than {SHARE_SECONDS:g} s")
        if not row["failed"]:
            return ForGood(said=f"not known: none of them is among the newest {LOOK:,} failed attempts")
        whole = row["looked"] < LOOK
        return ForGood(
            failed=row["failed"],
            stopped=row["stopped"],
            since=None if row["oldest"] is None else time_of(row["oldest"]),
            said="of all that are kept" if whole else f"of the newest {LOOK:,} failed attempts, by their ids",
        )


def print_of(rows: Rows, prefix: str) -> str:
    """Return the whole print that begins with *prefix*; raises UnknownId when none does, UsageError when several do."""
    return prefix if len(prefix) == WHOLE else _the_one(rows, prefix)[0]


def _uncounted(rows: Rows) -> int:
    """Return how many changes are left out of what this transaction counts: none, as long as they are few enough to be added up."""
    waiting: int = rows.all(sql.UNCOUNTED, {"most": MOST_CHANGES})[0]["n"]
    return waiting if waiting > MOST_CHANGES else 0


def _statement(wanted: GroupFilter, by: By) -> str:
    if by is By.TENANT:
        return sql.GROUPS_BY_TENANT
    return sql.GROUPS if wanted.tenant is None else sql.GROUPS_OF_TENANTS


def _values(
    wanted: GroupFilter, by: By, after: GroupPosition | None, limit: int, uncounted: int
) -> dict[str, Any]:
    return {
        "changes": not uncounted,
        "by": by.value,
        "group": wanted.group,
        "topic": wanted.topic,
        "type": wanted.type,
        "tenant": wanted.tenant,
        "reason": wanted.reason,
        "state": wanted.state and wanted.state.value,
        "since": wanted.since,
        "until": wanted.until,
        "after_rank": after and after.rank,
        "after_total": after and after.total,
        "after_name": after and after.name,
        "limit": limit + 1,
        "most_since": MOST_SINCE,
    }


def _group(row: dict[str, Any], by: By) -> Group:
    failure = known = None
    if by is By.FAILURE:
        failure = Failure(
            group=row["group_id"],
            topic=row["topic"],
            type=row["type"] or None,
            reason=row["reason"],
            site=row["site"],
        )
        names = ("acknowledged_by", "acknowledged_at", "acknowledged_why", "since", "contact", "told_at")
        known = Known(notes=row["notes"], **{name: row[name] for name in names})
    counts = ("quarantined", "redriven", "discarded", "first_at", "last_at", "share")
    return Group(name=row["name"] or "", failure=failure, known=known, **{name: row[name] for name in counts})


def _named(found: list[dict[str, Any]], print_: str) -> Group:
    row = next((row for row in found if row["name"] == print_), None)
    if row is None:
        raise UnknownId(
            f"no message of group of failures {print_[:8]} is in quarantine any more, in no state"
        )
    return _group(row, By.FAILURE)


def _the_one(rows: Rows, prefix: str, uncounted: int | None = None) -> tuple[str, Failure]:
    """Return print and failure of the group whose print begins with *prefix*; raises UnknownId or UsageError."""
    uncounted = _uncounted(rows) if uncounted is None else uncounted
    asked = {"low": prefix, "high": prefix.ljust(32, "f"), "changes": not uncounted}
    found = rows.all(sql.PRINTS, asked)
    if not found:
        raise UnknownId(
            f"no group of failures has a print that begins with {prefix}; see packhorse quarantine groups --state all"
            + (f" ({uncounted_line(uncounted)})" if uncounted else "")
        )
    if len(found) > 1:
        raise UsageError(
            f"more than one group of failures begins with {prefix}: {', '.join(row['print'] for row in found)}; "
            "write more digits"
        )
    row = found[0]
    return row["print"], Failure(
        group=row["group_id"],
        topic=row["topic"],
        type=row["type"] or None,
        reason=row["reason"],
        site=row["site"],
    )


def _names(print_: str, failure: Failure) -> dict[str, Any]:
    return {
        "print": print_,
        "group": failure.group,
        "topic": failure.topic,
        "type": failure.type or "",
        "reason": failure.reason,
        "site": failure.site,
    }


def _record(act: Acting, name: str, print_: str, failure: Failure, why: str | None) -> datetime:
    detail = {"failure": print_, "type": failure.type, "reason": failure.reason}
    return act.record(name, why=why, group=failure.group, topic=failure.topic, detail=detail)


def _acknowledged_already(act: Acting, print_: str) -> str:
    row = act.all(sql.WHO_ACKNOWLEDGED, {"print": print_})[0]
    when = "" if row["at"] is None else f" at {zulu(row['at'])}"
    return f"group {print_[:8]} is acknowledged already: by {row['actor']}{when}; nothing was done now"
