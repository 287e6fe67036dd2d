"""Looks at the tables of jobs in portions, each one snapshot; and acts that put right what can be, each on the record."""

from collections.abc import Iterator, Sequence
from typing import Any
from uuid import UUID

from packhorse.console.acting.person import Person
from packhorse.console.acting.postgres import Database
from packhorse.console.reconciling import sql
from packhorse.console.reconciling.model import MOST, PATIENCE, SHOWN, GroupState, Name, OpenJob, Portion
from packhorse.core.jobs import JobState
from packhorse.core.rights import Right

DOING = "reconcile"
STEP = 10_000
"""Rows of one portion."""
SECONDS = 60.0
"""For one portion; tables may be large and the disk cold."""
_NOBODY = UUID(int=0)
_MENDS = {Name.ORPHANS: sql.DELETE_ORPHANS, Name.STALE: sql.FREE}


class ReconcilingTables:
    """The tables of one database; each method raises what `Database.reading` or `Database.acting` does."""

    def __init__(self, database: Database, *, step: int = STEP) -> None:
        self._database = database
        self._step = step

    def open_jobs(self, person: Person, state: JobState) -> Iterator[list[OpenJob]]:
        """Yield the jobs in *state*, portion by portion, with what other tables say of them."""
        at: tuple[str, UUID] | None = ("", _NOBODY)
        while at is not None:
            values = {"state": state.value, "type": at[0], "id": at[1], "patience": PATIENCE}
            rows = self._rows(person, sql.OPEN, {**values, "step": self._step})
            yield [OpenJob(**{**row, "state": JobState(row["state"])}) for row in rows]
            at = (rows[-1]["type"], rows[-1]["id"]) if len(rows) == self._step else None

    def succeeded(self, person: Person) -> Iterator[Portion]:
        """Yield the jobs that succeeded without the fact that their message is done."""
        yield from self._walk(person, sql.SUCCEEDED)

    def orphans(self, person: Person) -> Iterator[Portion]:
        """Yield the jobs that are not there and have rows in other tables; a job may be named for each of them."""
        for statement in sql.ORPHANS.values():
            yield from self._walk(person, statement)
        at: tuple[str, str, str] | None = ("", "", "")
        while at is not None:
            values = {"type": at[0], "tenant": at[1], "key": at[2], "step": self._step}
            row = self._rows(person, sql.REQUESTS, values)[0]
            yield row["seen"], row["ids"]
            at = (row["type"], row["tenant"], row["key"]) if row["seen"] == self._step else None

    def unanswered(self, person: Person) -> list[tuple[UUID, str]]:
        """Return the jobs that have an outside effect without answer and do not run, once for each, with the job's state."""
        rows = self._rows(person, sql.UNANSWERED, {"most": MOST})
        return [(row["id"], row["state"]) for row in rows]

    def stale(self, person: Person) -> list[UUID]:
        """Return the jobs that hold a name, or wait for their time, and do not wait or run."""
        return [row["id"] for row in self._rows(person, sql.STALE, {"most": MOST})]

    def groups(self, person: Person) -> dict[str, GroupState]:
        """Return who lives of each group."""
        readers: dict[str, dict[str, int]] = {}
        for row in self._rows(person, sql.READERS, {}):
            readers.setdefault(row["group"], {})[row["topic"]] = row["readers"]
        return {
            row["group"]: GroupState(alive=row["alive"], readers=readers.get(row["group"], {}))
            for row in self._rows(person, sql.ALIVE, {})
        }

    def mend(self, person: Person, name: Name, ids: Sequence[UUID], *, why: str) -> int:
        """
        Put right what is still so of *ids*, and say so on the record; return how many were.

        What has changed since the look is left as it is.
        """
        with self._database.acting(person, Right.ADMINISTER, doing=DOING, timeout=SECONDS) as act:
            values = {"ids": list(ids), "actor": act.actor}
            if name is Name.BEHIND:
                done = [str(row["id"]) for row in act.all(sql.FOLLOW, values)]
                count = len(done)
            else:
                count, done = int(act.all(_MENDS[name], values)[0]["n"]), [str(each) for each in ids]
            if count:
                detail = {"finding": name.value, "count": count, "ids": done[:SHOWN]}
                act.record(DOING, why=why, detail=detail)
            else:
                act.left_alone()
        return count

    def _walk(self, person: Person, statement: str) -> Iterator[Portion]:
        after: UUID | None = _NOBODY
        while after is not None:
            row = self._rows(person, statement, {"after": after, "step": self._step})[0]
            yield row["seen"], row["ids"]
            after = row["last"] if row["seen"] == self._step else None

    def _rows(self, person: Person, statement: str, values: dict[str, Any]) -> list[dict[str, Any]]:
        with self._database.reading(person, doing=DOING, timeout=SECONDS) as rows:
            rows.all(sql.PLANNED)
            return rows.all(statement, values)
