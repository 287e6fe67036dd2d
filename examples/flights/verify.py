"""Compare what the database says with what the data says, and account for every message."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import psycopg
from psycopg.rows import dict_row, tuple_row

from examples.flights import sql
from examples.flights.recount import Figures
from examples.flights.trouble import Poison, Refused

# What the recount does not have: the chain's last link, and the messages that no flight of the data brought.
_ONLY_IN_DATABASE = frozenset({"last_origin"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """
    One thing that must be so at the end.

    Attributes:
        what: The thing.
        found: What was found, in words and numbers.
        differences: What is not as it must be; empty is good.
    """

    what: str
    found: str
    differences: Sequence[str] = ()

    @property
    def good(self) -> bool:
        """Tell whether it is so."""
        return not self.differences


def check_figures(what: str, counted: Figures, recounted: Figures) -> Check:
    """Compare two countings of the same figures, field by field, both ways."""
    fields = sum(len(figures) for figures in recounted.values())
    return Check(
        what=f"figures of {what}",
        found=f"{fields:,} figures of {len(recounted):,} {what} counted twice",
        differences=list(_differences(counted, recounted)),
    )


def _differences(counted: Figures, recounted: Figures) -> Iterator[str]:
    for name in sorted(counted.keys() | recounted.keys()):
        if name not in recounted or name not in counted:
            yield f"{name}: {'counted' if name in counted else 'recounted'} only"
            continue
        ours, theirs = counted[name], recounted[name]
        for field in sorted((ours.keys() | theirs.keys()) - _ONLY_IN_DATABASE):
            if ours.get(field) != theirs.get(field):
                yield f"{name}: {field} is {ours.get(field)}, the data says {theirs.get(field)}"


def read_figures(connection: psycopg.Connection[Any], statement: str, name: str) -> Figures:
    """Return the figures that *statement* selects, by its column *name*."""
    with connection.cursor(row_factory=dict_row) as cursor:
        return {row.pop(name): row for row in cursor.execute(statement).fetchall()}


def check_account(connection: psycopg.Connection[Any], *, expected: int, poison: int) -> Check:
    """Check that each message written has one result, and each result a message."""
    with connection.cursor(row_factory=dict_row) as cursor:
        account = cursor.execute(sql.ACCOUNT).fetchone() or {}
    wanted = {
        "written": expected,
        "ids": expected,
        "done": expected - poison,
        "quarantined": poison,
        "lost": 0,
        "invented": 0,
    }
    return Check(
        what="nothing lost, nothing twice",
        found=f"{account['written']:,} messages, {account['done']:,} done, {account['quarantined']} in quarantine",
        differences=[
            f"{name}: {account[name]:,}, {number:,} expected"
            for name, number in wanted.items()
            if account[name] != number
        ],
    )


def check_order(connection: psycopg.Connection[Any]) -> Check:
    """Check that the messages of each key stand on the topic in the order of their commits."""
    with connection.cursor(row_factory=tuple_row) as cursor:
        (wrong,) = cursor.execute(sql.OUT_OF_ORDER).fetchone() or (0,)
    return Check(
        what="order of each aircraft",
        found="offsets rise in the order of commits" if wrong == 0 else "offsets and commits disagree",
        differences=[f"{wrong:,} messages before their predecessor"] if wrong else [],
    )


def check_waiting(connection: psycopg.Connection[Any]) -> Check:
    """Check that nothing waits any more but what rests in quarantine."""
    with connection.cursor(row_factory=dict_row) as cursor:
        left = cursor.execute(sql.LEFT_WAITING).fetchone() or {}
    return Check(
        what="nothing waits for ever",
        found="tiers are empty, no key is parked by what is done",
        differences=[f"{count:,} {where}" for where, count in left.items() if count],
    )


def check_refused(connection: psycopg.Connection[Any], refused: Sequence[Refused]) -> list[Check]:
    """Check that what was sent back is done, and all that waited behind it; in which order, the chain of figures tells."""
    checks = []
    for each in refused:
        ids = [each.id, *each.behind]
        with connection.cursor(row_factory=tuple_row) as cursor:
            outcomes: dict[UUID, str] = dict(cursor.execute(sql.OUTCOMES, {"ids": ids}).fetchall())
        checks.append(
            Check(
                what=f"redriven: {each.aircraft}",
                found=f"was in quarantine ({each.reason}); done, and {len(each.behind)} that waited behind it",
                differences=[
                    f"{name} is {outcomes.get(name, 'nowhere')}"
                    for name in ids
                    if outcomes.get(name) != "done"
                ],
            )
        )
    return checks


def check_poison(connection: psycopg.Connection[Any], poison: Sequence[Poison]) -> list[Check]:
    """Check that each poison message rests in quarantine, for its reason, byte for byte, with its copy on the topic."""
    with connection.cursor(row_factory=dict_row) as cursor:
        found = {row["message_id"]: row for row in cursor.execute(sql.QUARANTINED).fetchall()}
    checks = [_rests(each, found.pop(each.id, None)) for each in poison]
    if found:
        checks.append(
            Check(what="quarantine", found="more than the poison", differences=[f"{name}" for name in found])
        )
    return checks


def _rests(poison: Poison, row: dict[str, Any] | None) -> Check:
    if row is None:
        return Check(what=poison.what, found="not in quarantine", differences=[f"{poison.id} is not there"])
    differences = []
    if row["reason"] != poison.reason:
        differences.append(f"its reason is {row['reason']}, {poison.reason} expected")
    if not row["same_bytes"]:
        differences.append("its bytes have changed")
    if not row["copied"]:
        differences.append("its copy is not on the quarantine topic")
    return Check(
        what=f"poison: {poison.what}", found=f"in quarantine: {row['reason']}", differences=differences
    )
