"""The inbox through the functions of migration 0007: one connection of its own, each step a transaction of its own."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, cast
from uuid import UUID

from packhorse.core.errors import NotReady
from packhorse.processor.inbox import sql
from packhorse.processor.inbox.model import (
    Cleaned,
    Code,
    Dropped,
    Facts,
    InboxRules,
    KeptRow,
    Part,
    Place,
    Turn,
)
from packhorse.processor.keeping.postgres import Kept

ANSWER_MS = 300_000
"""Proving that a large partition has no row that must stay reads it whole."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupKept:
    """What a group keeps: closed rows that changed from *kept_from* on, discarded messages from *discarded_from* on."""

    group: str
    kept_from: datetime
    discarded_from: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Last:
    """The last turn: when, by whom, what it left behind; and what each group keeps."""

    at: datetime | None
    by: str | None
    detail: Mapping[str, Any]
    groups: tuple[GroupKept, ...]


class InboxTables(Kept):
    """Do the steps; each raises DatabaseUnavailable, NotReady or Contention as `postgres.translated` says."""

    def __init__(self, url: str, schema: str) -> None:
        super().__init__(url, schema, what="inbox", claim=sql.CLAIM, renew=sql.RENEW, answer_ms=ANSWER_MS)

    def record(self, by: str, turn: Turn) -> None:
        """End the turn and write down what it left behind."""
        self.rows(sql.RECORD, by=by, detail=json.dumps(turn.as_dict()))

    def move_clocks(self, rules: InboxRules) -> None:
        """Say for each group until when rows may go."""
        if rules.keep_days is not None:
            self.rows(sql.CLOCKS, keep=rules.keep_days, discarded=rules.discarded_days)

    def facts(self) -> Facts:
        """
        Return how the inbox stands.

        Raises:
            NotReady: It has no partition of ours.
        """
        rows = self.rows(sql.FACTS)
        if not rows:
            raise NotReady(
                f"table {self._schema}.inbox has no partition of ours, not even inbox_default; run `packhorse migrate up`, and "
                "see docs/how-to/retention.md"
            )
        return Facts(
            today=rows[0][0],
            parts=tuple(Part(name=row[1], day=row[2], size=row[3] or 0) for row in rows),
            kept_from=rows[0][4],
        )

    def make(self, day: date) -> Code:
        """Make a day's partition."""
        return Code(self.rows(sql.MAKE, day=day)[0][0])

    def fence(self, act: str, day: date | None = None) -> Code:
        """Raise, prove or lower the constraint that the default partition has no row of *day*."""
        return Code(self.rows(sql.FENCE, act=act, day=day)[0][0])

    def drop(self, name: str, *, act: bool = True) -> Dropped:
        """Drop a partition in which every row may go."""
        answer = self.rows(sql.DROP, name=name, act=act)[0][0]
        row = answer.get("row")
        return Dropped(
            code=Code(answer["outcome"]),
            row=None if row is None else KeptRow(**row),
            text=answer.get("text"),
        )

    def clean(self, name: str, place: Place, step: int) -> Cleaned:
        """Remove what may go among the next *step* rows of a partition."""
        answer = self.rows(sql.CLEAN, name=name, step=step, **_named(place))[0][0]
        after = answer.get("after")
        return Cleaned(
            given_way=answer["outcome"] != "cleaned",
            seen=answer.get("seen", 0),
            removed=answer.get("removed", 0),
            after=None if after is None else (UUID(after[0]), after[1], after[2]),
        )

    def clean_attempts(self, place: Place, step: int) -> Cleaned:
        """Remove failed attempts whose inbox row is gone."""
        return _cleaned(self.rows(sql.CLEAN_ATTEMPTS, step=step, **_named(place))[0])

    def clean_quarantined(self, place: Place, step: int) -> Cleaned:
        """Remove messages that no longer wait in quarantine and whose inbox row is gone."""
        return _cleaned(self.rows(sql.CLEAN_QUARANTINED, step=step, **_named(place))[0])

    def clean_rest(self) -> None:
        """Remove what processes that are gone left behind."""
        for statement in (sql.CLEAN_IN_HAND, sql.CLEAN_STARTED, sql.CLEAN_MEMBERS):
            self.rows(statement)

    def last(self) -> Last:
        """Return the last turn, and what each group keeps."""
        rows = {row[0]: row for row in self.rows(sql.LAST)}
        detail = dict(rows.pop("")[3]) if "" in rows else {}
        at, by = detail.pop("at", None), detail.pop("by", None)
        return Last(
            at=None if at is None else datetime.fromisoformat(at),
            by=by,
            detail=detail,
            groups=tuple(
                GroupKept(group=row[0], kept_from=row[1], discarded_from=row[2]) for row in rows.values()
            ),
        )


def _named(place: Place) -> dict[str, object]:
    return {"id": place[0], "group": place[1], "topic": place[2]}


def _cleaned(row: tuple[Any, ...]) -> Cleaned:
    seen, removed, *after = row
    return Cleaned(
        seen=seen, removed=removed, after=None if after[0] is None else cast("Place", tuple(after))
    )
