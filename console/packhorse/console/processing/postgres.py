"""One group in the tables, each statement bounded."""

from packhorse.console.acting.person import Person
from packhorse.console.acting.postgres import Database
from packhorse.console.pausing.sql import GROUP
from packhorse.console.processing import sql
from packhorse.console.processing.follows import Following, Follows, PauseAct
from packhorse.console.processing.model import (
    BEHIND,
    DUE_FIRST,
    KEYS,
    MOST_PROCESSES,
    Inside,
    KeyPosition,
    ParkedKey,
    ParkedPage,
    Tier,
    key_page,
    process_of,
)
from packhorse.processor.pausing.pauses import ALL, EVERY, Scope
from packhorse.processor.pausing.table import PauseTable
from packhorse.processor.storing.sql import queries_for
from packhorse.processor.storing.store import Store


class ProcessingTables:
    """Groups from inside; each method raises what `Database.reading` does."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._queries = queries_for(database.schema)

    def inside(self, person: Person, group: str) -> Inside:
        """Return *group* from inside."""
        table = self._pauses(group)
        with self._database.reading(person, doing="see what flows") as rows:
            at = rows.all(sql.NOW)[0]["at"]
            tiers = rows.all(sql.TIERS, {"group": group, "most": DUE_FIRST})
            processes = rows.all(sql.PROCESSES, {"group": group, "most": MOST_PROCESSES})
            pauses = rows.carry(table.pauses()).rows
            keys = rows.carry(table.paused_keys())
            known = bool(pauses or keys or rows.all(GROUP, {"group": group})[0]["known"])
        return Inside(
            at=at,
            known=known,
            tiers=tuple(Tier(**row) for row in tiers),
            processes=tuple(process_of(row, now=at) for row in processes),
            pauses=pauses,
            paused_keys=tuple(keys),
        )

    def parked(self, person: Person, group: str, *, after: KeyPosition | None, limit: int) -> ParkedPage:
        """Return the keys that are parked for longest behind *after*."""
        values = {
            "group": group,
            "keys": KEYS,
            "behind": BEHIND,
            "at": None if after is None else after.parked_at,
            "topic": None if after is None else after.topic,
            "key_hash": None if after is None else after.key_hash,
            "limit": limit + 1,
        }
        with self._database.reading(person, doing="see what flows") as rows:
            found = [ParkedKey(**row) for row in rows.all(sql.PARKED, values)]
            looked = rows.all(sql.KEYS, values)[0]["keys"]
        return key_page(found, limit=limit, looked=looked)

    def following(self, person: Person, group: str, scope: Scope) -> Following:
        """Return whether the processes follow what was ordered of *scope*, which is no key."""
        place = {"group": group, "topic": scope.topic, "partition": scope.partition}
        topic, partition = scope.topic or ALL, EVERY if scope.partition is None else scope.partition
        with self._database.reading(person, doing="see what flows") as rows:
            at = rows.all(sql.NOW)[0]["at"]
            pauses = rows.carry(self._pauses(group).pauses()).rows
            last = rows.first(sql.LAST, place)
            processes = rows.all(sql.FOLLOWS, place)
        own = next((row for row in pauses if (row.topic, row.partition) == (topic, partition)), None)
        return Following(
            at=at,
            pause=own,
            others=tuple(row for row in pauses if row is not own and scope.within(row)),
            last=None if last is None else PauseAct(**last),
            processes=tuple(Follows(**row) for row in processes),
        )

    def _pauses(self, group: str) -> PauseTable:
        return PauseTable(store=Store(queries=self._queries, group=group, schema=self._database.schema))
