"""The watermarks of groups, and their reset."""

from collections.abc import Sequence
from uuid import UUID

from packhorse.console.acting.person import Person
from packhorse.console.acting.postgres import Database
from packhorse.console.offsets import sql
from packhorse.core.errors import OwnershipLost
from packhorse.core.rights import Right
from packhorse.processor.offsets.resetting import Move
from packhorse.processor.record import Stream
from packhorse.processor.storing.sql import queries_for
from packhorse.processor.storing.store import Store


class OffsetsTables:
    """The watermarks of one database; each method raises what `Database.reading` or `Database.acting` does."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._queries = queries_for(database.schema)

    def watermarks(
        self, person: Person, group: str, topic: str, topic_id: UUID, count: int
    ) -> list[int | None]:
        """Return the group's watermark in each partition."""
        store, stream = self._store(group), _stream(topic, topic_id)
        with self._database.reading(person) as rows:
            return [rows.carry(store.read_watermark(stream, partition)).offset for partition in range(count)]

    def reset(self, person: Person, group: str, planned: Sequence[Move], *, why: str) -> str:
        """
        Set the watermarks as *planned* and put that on the record, in one transaction; return who is on record.

        Raises:
            Forbidden: The person may not administer.
            OwnershipLost: A watermark was not what it was planned from; nothing was done.
        """
        topic, topic_id = planned[0].standing.topic, planned[0].standing.topic_id
        store, stream = self._store(group), _stream(topic, topic_id)
        with self._database.acting(person, Right.ADMINISTER, doing="reset offsets") as act:
            for move in planned:
                place = {"group": group, "topic_id": topic_id, "partition": move.standing.partition}
                row = act.first(sql.LOCK_WATERMARK, place)
                was = None if row is None else row["offset"]
                if was != move.standing.watermark:
                    raise OwnershipLost(
                        f"{topic}[{move.standing.partition}]: the watermark is {was} by now, and was "
                        f"{move.standing.watermark} when this was previewed; nothing was done, look again"
                    )
                act.carry(store.reset_watermark(stream, move.standing.partition, move.to))
            act.record(
                "offsets-reset",
                why=why,
                group=group,
                topic=topic,
                detail={"topic_id": str(topic_id), "partitions": [_detail(move) for move in planned]},
            )
            return act.actor

    def _store(self, group: str) -> Store:
        return Store(queries=self._queries, group=group, schema=self._database.schema)


def _stream(topic: str, topic_id: UUID) -> Stream:
    return Stream(topic=topic, topic_id=topic_id, source=topic)


def _detail(move: Move) -> dict[str, int | None]:
    one = move.standing
    return {
        "partition": one.partition,
        "watermark": one.watermark,
        "committed": one.committed,
        "to": move.to,
    }
