"""The tables of replays: what a plan asks, what people do with one, and how one stands."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any
from uuid import UUID

from psycopg.types.json import Jsonb

from packhorse.console.acting.person import Person
from packhorse.console.acting.postgres import Acting, Database, Rows
from packhorse.console.replaying import sql
from packhorse.console.replaying.checks import Check, GroupFacts
from packhorse.console.replaying.ranges import Range
from packhorse.console.replaying.records import Seen
from packhorse.console.replaying.run import Counted, Part, Run, state_said
from packhorse.console.replaying.wanted import Wanted, wanted_from
from packhorse.core.errors import OwnershipLost, UnknownId
from packhorse.core.moments import zulu
from packhorse.core.rights import Right
from packhorse.processor.storing.rows import span, uuids


class ReplayTables:
    """The replays of one database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def watermarks(self, person: Person, group: str, topic: str) -> dict[UUID, dict[int, int]]:
        """Return the group's watermarks in the topic, by the topic's ids and partitions."""
        found: dict[UUID, dict[int, int]] = {}
        with self._database.reading(person) as rows:
            for row in rows.all(sql.WATERMARKS, {"group": group, "topic": topic}):
                found.setdefault(row["topic_id"], {})[row["partition"]] = row["offset"]
        return found

    def group(self, person: Person, group: str, topic: str) -> GroupFacts:
        """Return how the group stands."""
        with self._database.reading(person) as rows:
            row = rows.all(sql.GROUP_FACTS, {"group": group, "topic": topic})[0]
        return GroupFacts(
            now=row["now"],
            kept_from=row["kept_from"],
            members=row["members"],
            handlers=tuple(row["handlers"] or ()),
            pauses=tuple(row["pauses"]),
            open_runs=tuple(row["open_runs"]),
        )

    def seen(self, person: Person, group: str, topic: str, ids: Sequence[UUID]) -> dict[UUID, Seen]:
        """Return what the inbox knows of *ids*."""
        with self._database.reading(person) as rows:
            return seen_in(rows, group, topic, ids)

    def stuck(self, person: Person, group: str, topic: str) -> frozenset[str]:
        """Return the hashes of keys that wait for a person; of more than 100,000 some."""
        with self._database.reading(person) as rows:
            found = rows.all(sql.STUCK_KEYS, {"group": group, "topic": topic})
        return frozenset(row["key_hash"] for row in found)

    def plan(
        self,
        person: Person,
        wanted: Wanted,
        topic_id: UUID,
        ranges: Sequence[tuple[Range, int]],
        *,
        counts: dict[str, Any],
        checks: Sequence[Check],
    ) -> int:
        """
        Keep a plan, each range with how many of its records are wanted, on the record, in one transaction; return its number.

        Raises:
            Forbidden: The person may not act.
        """
        with self._database.acting(person, Right.ACT, doing="plan a replay") as act:
            values = {
                "group": wanted.group,
                "topic": wanted.topic,
                "topic_id": topic_id,
                "wanted": Jsonb({**wanted.as_json(), "counts": counts}),
                "checks": Jsonb([asdict(one) for one in checks]),
                "again": wanted.own_identity,
                "rate": wanted.rate,
                "most_failures": wanted.most_failures,
                "by": act.actor,
            }
            run = int(act.all(sql.INSERT_REPLAY, values)[0]["id"])
            act.count(
                sql.INSERT_RANGES,
                {
                    "id": run,
                    "partitions": [one.partition for one, _ in ranges],
                    "firsts": [one.first for one, _ in ranges],
                    "pasts": [one.past for one, _ in ranges],
                    "gones": [one.gone for one, _ in ranges],
                    "matches": [matches for _, matches in ranges],
                },
            )
            _record(act, "replay-plan", run, wanted.group, wanted.topic, why=None, matched=counts["matched"])
        return run

    def confirm(self, person: Person, run: Run, *, why: str) -> None:
        """
        Let a plan run, on the record, in one transaction.

        What may put old state over new needs the right to administer, everything else the right to act.

        Raises:
            Forbidden: The person may not.
            OwnershipLost: It is no plan any more, is too old, or another replay of the group and topic is open; says which.
        """
        right = Right.ADMINISTER if run.wanted.beyond else Right.ACT
        with self._database.acting(person, right, doing=f"run replay {run.id}") as act:
            act.all(sql.ONE_AT_A_TIME, {"id": run.id})
            if act.first(sql.CONFIRM, {"id": run.id, "by": act.actor, "why": why}) is None:
                raise OwnershipLost(_not_confirmed(act, run.id))
            _record(
                act,
                "replay-run",
                run.id,
                run.wanted.group,
                run.wanted.topic,
                why=why,
                again=run.wanted.again,
                with_discarded=run.wanted.with_discarded,
                beyond=run.wanted.beyond,
                handler=run.wanted.handler,
                matched=run.counts["matched"],
            )

    def pause(self, person: Person, run: Run, *, why: str) -> None:
        """Have nothing more handed over for now. Raises Forbidden, or OwnershipLost when it does not run."""
        with self._database.acting(person, Right.ACT, doing=f"pause replay {run.id}") as act:
            self._moved(act, sql.PAUSE, {"id": run.id, "said": f"paused by {act.actor}: {why}"}, run)
            _record(act, "replay-pause", run.id, run.wanted.group, run.wanted.topic, why=why)

    def resume(self, person: Person, run: Run, *, why: str, most_failures: int | None) -> None:
        """Go on. Raises Forbidden, or OwnershipLost when it is not paused or halted."""
        with self._database.acting(person, Right.ACT, doing=f"resume replay {run.id}") as act:
            self._moved(act, sql.RESUME, {"id": run.id, "most": most_failures}, run)
            _record(
                act,
                "replay-resume",
                run.id,
                run.wanted.group,
                run.wanted.topic,
                why=why,
                most_failures=most_failures,
            )

    def stop(self, person: Person, run: Run, *, why: str) -> None:
        """End it for good, and let go of its keys. Raises Forbidden, or OwnershipLost when it is at its end."""
        with self._database.acting(person, Right.ACT, doing=f"stop replay {run.id}") as act:
            self._moved(act, sql.STOP, {"id": run.id, "said": f"stopped by {act.actor}: {why}"}, run)
            _record(act, "replay-stop", run.id, run.wanted.group, run.wanted.topic, why=why)
            act.count(sql.LET_GO, {"id": run.id})  # keys last, sorted, as processors lock them

    def run(self, person: Person, run: int) -> Run:
        """Return how replay *run* stands. Raises UnknownId."""
        with self._database.reading(person) as rows:
            row = rows.first(sql.RUN, {"id": run})
            if row is None:
                raise UnknownId(f"there is no replay {run}; see packhorse replay list")
            return _run_of(rows, row)

    def runs(self, person: Person, *, group: str | None, topic: str | None, limit: int) -> list[Run]:
        """Return the latest replays."""
        with self._database.reading(person) as rows:
            found = rows.all(sql.RUNS, {"group": group, "topic": topic, "limit": limit})
            return [_run_of(rows, row) for row in found]

    def _moved(self, act: Acting, statement: str, values: dict[str, Any], run: Run) -> None:
        if act.first(statement, values) is None:
            raise OwnershipLost(f"nothing was done: {_state(act, run.id)}")


def seen_in(rows: Rows, group: str, topic: str, ids: Sequence[UUID]) -> dict[UUID, Seen]:
    """Return what the inbox knows of *ids*."""
    values = {"ids": uuids(ids), **span(ids), "group": group, "topic": topic}
    return {
        row["message_id"]: Seen(row["outcome"], row["digest"], row["edited"], row["purged"])
        for row in rows.all(sql.STANDINGS, values)
    }


def _record(
    act: Acting, name: str, run: int, group: str, topic: str, *, why: str | None, **detail: object
) -> None:
    act.record(name, why=why, group=group, topic=topic, detail={"replay": run, **detail})


def _not_confirmed(act: Acting, run: int) -> str:
    row = act.all(sql.RUN, {"id": run})[0]
    if row["state"] != "planned":
        return f"nothing was done: {_state(act, run)}"
    if row["expired"]:
        return (
            f"nothing was done: the plan of replay {run} was good until {zulu(row['expires_at'])}; plan anew, "
            "what it counted may be otherwise by now"
        )
    facts = act.all(sql.GROUP_FACTS, {"group": row["group"], "topic": row["topic"]})[0]
    return (
        f"nothing was done: replay {', '.join(map(str, facts['open_runs']))} of this group and topic is open; "
        "wait for its end, or stop it"
    )


def _state(act: Acting, run: int) -> str:
    row = act.all(sql.RUN, {"id": run})[0]
    return state_said(run, row["state"], row["said"])


def _run_of(rows: Rows, row: dict[str, Any]) -> Run:
    values = {"id": row["id"]}
    parts = tuple(Part(**part) for part in rows.all(sql.RANGES, values))
    unproved = {one["outcome"]: Counted(one["n"], one["behind"]) for one in rows.all(sql.UNPROVED, values)}
    held = rows.all(sql.HELD_KEYS, values)[0]
    row = dict(row)
    kept, checks = row.pop("wanted"), row.pop("checks")
    del row["group"], row["topic"], row["again"]
    wanted = wanted_from({**kept, "rate": row.pop("rate"), "most_failures": row.pop("most_failures")})
    return Run(
        wanted=wanted,
        counts=kept.get("counts", {}),
        checks=tuple(Check(**one) for one in checks),
        parts=parts,
        unproved=unproved,
        held_keys=held["keys"],
        waiting_behind=held["waiting"],
        **row,
    )
