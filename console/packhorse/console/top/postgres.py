"""One look at the tables, in one snapshot, each statement bounded."""

from collections.abc import Callable, Iterator
from typing import Any

from packhorse.console.acting.person import Person
from packhorse.console.acting.postgres import Database, Rows
from packhorse.console.doctor.sql import RELAY
from packhorse.console.top import sql
from packhorse.console.top.facts import (
    COUNTED,
    Failing,
    Jobs,
    Look,
    Paused,
    Process,
    Run,
    Shard,
    Size,
    Waiting,
)
from packhorse.console.truth.around import Mark
from packhorse.core.clock import SYSTEM_CLOCK, Clock
from packhorse.processor.watching.stall import QUIET

Told = Callable[[str, float], None]
"""Hears how many seconds each question took."""


class TopTables:
    """Look at one database."""

    def __init__(self, database: Database, *, clock: Clock = SYSTEM_CLOCK, told: Told | None = None) -> None:
        self._database = database
        self._clock = clock
        self._told = told

    def look(self, person: Person) -> Look:
        """
        Return how everything stands.

        Raises:
            Forbidden, NotSignedIn: The person may not look.
            DatabaseUnavailable, NotReady: The database does not answer; a table or right is missing.
        """
        with self._database.reading(person, doing="see what flows") as rows:
            asked = _Asked(rows, self._clock, self._told)
            now = asked.all("now", sql.NOW)[0]
            groups = [row["name"] for row in asked.all("groups", sql.GROUPS)]
            return Look(
                at=now["at"],
                drawn=now["drawn"],
                relays=now["relays"],
                shards=tuple(_shards(asked.all("relay", RELAY), asked.all("published", sql.PUBLISHED))),
                marks=tuple(Mark(**row) for row in asked.all("marks", sql.MARKS)),
                waiting=tuple(
                    Waiting(**row)
                    for group in groups
                    for row in asked.all("waiting", sql.WAITING, {"group": group, "most": COUNTED})
                ),
                failing=tuple(Failing(**row) for row in asked.all("failing", sql.FAILING)),
                processes=tuple(_process(row) for row in asked.all("processes", sql.PROCESSES)),
                paused=tuple(Paused(**row) for row in asked.all("paused", sql.PAUSED)),
                runs=tuple(Run(**row) for row in asked.all("runs", sql.RUNS)),
                jobs=tuple(Jobs(**row) for row in asked.all("jobs", sql.JOBS, {"most": COUNTED})),
                sizes=tuple(Size(**row) for row in asked.all("sizes", sql.SIZES)),
                took=asked.slowest,
            )


class _Asked:
    """The statements of one look, and which of them took longest."""

    def __init__(self, rows: Rows, clock: Clock, told: Told | None) -> None:
        self._rows = rows
        self._clock = clock
        self._told = told
        self.slowest = ("", 0.0)

    def all(self, name: str, statement: str, values: dict[str, Any] | None = None) -> list[dict[str, Any]]:
        began = self._clock.monotonic()
        found = self._rows.all(statement, values)
        seconds = self._clock.monotonic() - began
        if self._told is not None:
            self._told(name, seconds)
        self.slowest = max(self.slowest, (name, seconds), key=lambda one: one[1])
        return found


def _shards(rows: list[dict[str, Any]], published: list[dict[str, Any]]) -> Iterator[Shard]:
    counts = {row["shard"]: row["published"] for row in published}
    for row in rows:
        yield Shard(
            shard=row["shard"],
            owner=row["owner"] if row["owned"] else None,
            published=counts[row["shard"]],
            oldest=row["oldest"] if row["waiting"] else None,
            trouble=row["trouble"],
            holds=row["heal"] + len(row["people"]),
            people=len(row["people"]),
        )


def _process(row: dict[str, Any]) -> Process:
    stalls = [each for each in _list(row["stalls"]) if isinstance(each, dict)]
    told = [
        f"{each.get('topic')}[{each.get('partition')}], {each.get('cause')}"
        for each in stalls
        if each.get("cause") not in QUIET
    ]
    return Process(
        **{
            **row,
            "stalls": tuple(told),
            "wrong": tuple(map(str, _list(row["wrong"]))),
            "stopped": tuple(map(str, _list(row["stopped"]))),
        }
    )


def _list(value: Any) -> list[Any]:
    """Return a list of what another version may write as something else."""
    return value if isinstance(value, list) else []
