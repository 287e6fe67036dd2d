"""Jobs whose time is over: one connection of its own, each step a statement and a transaction of its own."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from packhorse.core.jobs import ENDED
from packhorse.processor.jobs.keeping import sql
from packhorse.processor.jobs.keeping.model import Facts, JobRules, Left, Step, Turn
from packhorse.processor.keeping.postgres import Kept

ANSWER_MS = 60_000
PLANNED = "SET enable_seqscan = off; SET enable_bitmapscan = off"
"""A step is some hundred rows by their ids, however large the tables and however old their statistics: else it may read the whole window."""
_ENDED = sorted(state.value for state in ENDED)


@dataclass(frozen=True, slots=True, kw_only=True)
class TypeKept:
    """Seconds after their end that jobs of a type and what they hold are kept; None: as the settings say."""

    type: str
    keep: float | None
    keep_result: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Last:
    """The last turn: when, by whom, what it did; and what each type declares."""

    at: datetime | None
    by: str | None
    detail: Mapping[str, Any]
    types: tuple[TypeKept, ...]


class JobTables(Kept):
    """Do the steps; each raises DatabaseUnavailable, NotReady or Contention as `postgres.translated` says."""

    def __init__(self, url: str, schema: str) -> None:
        super().__init__(
            url, schema, what="jobs", claim=sql.CLAIM, renew=sql.RENEW, answer_ms=ANSWER_MS, planned=PLANNED
        )

    def record(self, by: str, turn: Turn, began: datetime) -> None:
        """End the turn, write down what it did, and put on the record what went of each type."""
        detail = {**turn.as_dict(), "began": began.isoformat()}
        if turn.whole:
            detail["whole_began"] = began.isoformat()
        self.rows(sql.RECORD, by=by, actor=f"processor {by}", detail=json.dumps(detail))

    def facts(self, rules: JobRules) -> Facts:
        """Return how things stand."""
        now, since, whole, terms = self.rows(sql.FACTS, **rules.seconds)[0]
        return Facts(now=now, since=since, whole=whole, terms=tuple(terms))

    def step(self, by: str, rules: JobRules, after: UUID, until: UUID) -> Step:
        """Remove what is due among the next jobs behind *after*, up to *until*."""
        return self._step(sql.STEP, rules, after, until, by=by)

    def look(self, rules: JobRules, after: UUID, until: UUID) -> Step:
        """Say what `step` would remove."""
        return self._step(sql.LOOK, rules, after, until)

    def left(self) -> Left:
        """Return what nobody sees to."""
        return Left._make(self.rows(sql.LEFT)[0])

    def last(self) -> Last:
        """Return the last turn, and what each type declares."""
        found = self.rows(sql.LAST)
        detail = next((dict(row[1]) for row in found if row[0] == ""), {})
        at, by = detail.pop("at", None), detail.pop("by", None)
        return Last(
            at=None if at is None else datetime.fromisoformat(at),
            by=by,
            detail=detail,
            types=tuple(TypeKept(type=row[0], keep=row[2], keep_result=row[3]) for row in found if row[0]),
        )

    def _step(self, statement: str, rules: JobRules, after: UUID, until: UUID, **more: object) -> Step:
        values = {**rules.seconds, "step": rules.step, "ended": _ENDED, "after": after, "until": until}
        ours, seen, last, gone = self.rows(statement, **values, **more)[0]
        return Step(ours=ours, seen=seen, after=last, gone={name: (a, b) for name, (a, b) in gone.items()})
