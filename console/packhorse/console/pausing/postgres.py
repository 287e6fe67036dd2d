"""The tables of what people paused."""

from dataclasses import replace
from datetime import datetime

from packhorse.console.acting.person import Person
from packhorse.console.acting.postgres import Acting, Database
from packhorse.console.pausing import sql
from packhorse.console.pausing.known import Known
from packhorse.console.pausing.service import Paused, Resumed
from packhorse.core.errors import OwnershipLost
from packhorse.core.rights import Right
from packhorse.processor.pausing.pauses import ALL, EVERY, Scope
from packhorse.processor.pausing.table import PauseTable, hash_of
from packhorse.processor.storing.sql import queries_for
from packhorse.processor.storing.store import Store


class PausingTables:
    """What people paused in the groups of one database; each method raises what `Database.reading` or `Database.acting` does."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._queries = queries_for(database.schema)

    def known(self, person: Person, group: str, *, places: bool = True) -> Known:
        """Return what the tables know of *group*; its *places* only where they are wanted."""
        with self._database.reading(person) as rows:
            known = Known(group=bool(rows.all(sql.GROUP, {"group": group})[0]["known"]))
            if not places:
                return known
            found = rows.all(sql.PLACES, {"group": group})
            return replace(known, places=frozenset((row["topic"], row["partition"]) for row in found))

    def paused(self, person: Person, group: str) -> Paused:
        """Return what is paused in *group*."""
        table = self._table(group)
        with self._database.reading(person) as rows:
            return Paused(pauses=rows.carry(table.pauses()).rows, keys=tuple(rows.carry(table.paused_keys())))

    def groups(self, person: Person) -> list[str]:
        """Return the groups in which something is paused, by name."""
        with self._database.reading(person) as rows:
            return [row["name"] for row in rows.all(sql.PAUSED_GROUPS)]

    def pause(self, person: Person, group: str, scope: Scope, *, key_partition: int, why: str) -> bool:
        """
        Pause *scope* on the record, both or neither; return False, with nothing recorded, when it was paused already.

        Raises:
            Forbidden: The person may not act.
        """
        table = self._table(group)
        with self._database.acting(person, Right.ACT, doing="pause") as act:
            steps = table.pause(scope, key_partition=key_partition, actor=act.actor, why=why)
            return _recorded(act, "pause", group, scope, why, done=act.carry(steps))

    def resume(
        self, person: Person, group: str, scope: Scope, *, why: str, since: datetime | None = None
    ) -> Resumed:
        """
        Let *scope* go on, on the record, both or neither; nothing is recorded when it was not paused.

        Raises:
            Forbidden: The person may not act.
            OwnershipLost: It is paused, and not by the pause of *since*.
        """
        table = self._table(group)
        with self._database.acting(person, Right.ACT, doing="resume") as act:
            _check_same(act, group, scope, since)
            done = _recorded(act, "resume", group, scope, why, done=act.carry(table.resume(scope)))
            left = act.carry(table.pauses()).rows
        return Resumed(done=done, left=tuple(row for row in left if not scope.is_key and scope.within(row)))

    def _table(self, group: str) -> PauseTable:
        return PauseTable(store=Store(queries=self._queries, group=group, schema=self._database.schema))


def _check_same(act: Acting, group: str, scope: Scope, since: datetime | None) -> None:
    if since is None:
        return
    if scope.is_key:
        now = act.first(
            sql.LOCK_KEY, {"group": group, "topic": scope.topic or ALL, "key_hash": hash_of(scope)}
        )
    else:
        partition = EVERY if scope.partition is None else scope.partition
        now = act.first(sql.LOCK_PAUSE, {"group": group, "topic": scope.topic or ALL, "partition": partition})
    if now is not None and now["at"] != since:
        raise OwnershipLost(
            f"{scope.what} was resumed and is paused anew since then, by {now['by'] or 'somebody'}; nothing was done, look again"
        )


def _recorded(act: Acting, name: str, group: str, scope: Scope, why: str, *, done: bool) -> bool:
    if not done:
        act.left_alone()
        return False
    detail = {"partition": scope.partition, "key_hash": hash_of(scope) if scope.is_key else None}
    act.record(
        name,
        why=why,
        group=group,
        topic=scope.topic,
        detail={field: value for field, value in detail.items() if value is not None},
    )
    return True
