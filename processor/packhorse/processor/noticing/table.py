"""Counts of the quarantine, and who was told, as steps; no I/O here."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from packhorse.core.naming import checked_identifier
from packhorse.processor.noticing import sql
from packhorse.processor.noticing.deciding import Failing
from packhorse.processor.noticing.messages import NeedsPerson
from packhorse.processor.storing.steps import Statement, Steps

STEP = 5_000
"""Changes that one statement adds to the counts."""
REST = f".{NeedsPerson.__packhorse__.aggregatetype}-{NeedsPerson.__packhorse__.type}"
"""What follows the namespace in the subject of the notice's schema."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NoticeTable:
    """The failures of one group."""

    schema: str
    group: str

    def __post_init__(self) -> None:
        checked_identifier(self.schema, what="database schema")

    def fold(self) -> Steps[int]:
        """Add a portion of what has changed to the counts; return how many changes that were."""
        answer = yield self._statement(sql.FOLD, step=STEP)
        return int(answer.rows[0][0])

    def failing(self) -> Steps[tuple[list[Failing], datetime | None]]:
        """Return the groups of failures with messages that wait, and the database's time (None: there is none)."""
        answer = yield self._statement(sql.FAILING)
        found = [
            Failing(
                print=row[0],
                topic=row[1],
                type=row[2] or None,
                reason=row[3],
                site=row[4],
                waiting=row[5],
                first_at=row[6],
                last_at=row[7],
                told_at=row[8],
                told_count=row[9],
                acknowledged=row[10],
            )
            for row in answer.rows
        ]
        return found, answer.rows[0][11] if answer.rows else None

    def tell(self, failing: Failing, contact: str | None) -> Steps[bool]:
        """Take it on to tell of *failing*; False: another process has, or a person has acknowledged it."""
        answer = yield self._statement(
            sql.TELL,
            print=failing.print,
            contact=contact,
            count=failing.waiting,
            told_at=failing.told_at,
            told_count=failing.told_count,
        )
        return bool(answer.rows)

    def namespace(self) -> Steps[str | None]:
        """Return the namespace under which the notice's schema is registered; None: it is not."""
        answer = yield self._statement(sql.NAMESPACE, rest=REST)
        return answer.rows[0][0] if answer.rows else None

    def _statement(self, text: str, **values: Any) -> Statement:
        return Statement(text.format(schema=self.schema).encode(), {"group": self.group, **values})
