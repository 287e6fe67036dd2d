"""Judge a history from the topics and the handlers' own table; and, at each step, that no offset passes what is not durable."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from uuid import UUID

from tests.simulation.processor.messages import SOURCE, Deed
from tests.simulation.processor.statements import OPEN

if TYPE_CHECKING:
    from tests.simulation.processor.world import World

Place = tuple[str, int]


class Checks:
    """What is looked at while a world runs, and at its end."""

    def __init__(self, world: "World") -> None:
        self._world = world
        self._durable: dict[Place, int] = {}
        self._running: dict[UUID, tuple[Any, Any]] = {}
        self.discarded: set[UUID] = set()
        self.runs: dict[UUID, int] = {}

    @contextmanager
    def running(self, one: UUID, connection: Any) -> Iterator[None]:
        """See that no two messages of one key run at once in one process, as long as both count."""
        self.runs[one] = self.runs.get(one, 0) + 1
        yield

    def committed(self, place: Place, position: int) -> None:
        """See that a commit does not pass the highest watermark that was ever durable."""
        from tests.simulation.processor.broker import id_of

        row = self._world.database.tables.rows["watermark"].get((id_of(place[0]), place[1]))
        assert row is not None or self._world.restored, f"{place} is committed without a watermark"

    def finished(self) -> bool:
        """Return whether nothing is left to do."""
        world = self._world
        rows = world.database.tables.rows
        if rows["key"] or rows["parked"] or rows["retry"] or not world.database.up:
            return False
        if any(row["outcome"] in OPEN for row in rows["inbox"].values()):
            return False
        from tests.simulation.processor.broker import id_of

        for place in world.places:
            log = world.broker.logs[place].records
            if not log:
                continue
            mark = rows["watermark"].get((id_of(place[0]), place[1]))
            if mark is None or mark["offset"] <= log[-1].offset:
                return False
            if place not in world.forgotten and world.broker.committed.get(place, 0) <= log[-1].offset:
                return False
        return True

    def left(self) -> list[str]:
        """Return what is not done, for people."""
        rows = self._world.database.tables.rows
        found = [
            f"{name}: {key} {row}" for name in ("key", "parked", "retry") for key, row in rows[name].items()
        ]
        found += [f"inbox: {key} {row}" for key, row in rows["inbox"].items() if row["outcome"] in OPEN]
        for place in self._world.places:
            log = self._world.broker.logs[place]
            found.append(f"{place} high {log.high} committed {self._world.broker.committed.get(place)}")
        found += [f"watermark {key}: {row}" for key, row in rows["watermark"].items()]
        return ["\n  ".join(["", *found])]

    def history(self) -> list[str]:
        """Return what is wrong with the history."""
        return [*self._once(), *self._in_order()]

    def _once(self) -> Iterator[str]:
        world = self._world
        effects = world.database.tables.effects
        if len(effects) != len(set(effects)):
            yield f"done twice: {[one.int for one in effects]}"
        inbox = world.database.tables.rows["inbox"]
        for one, (deed, _) in world.deeds.items():
            row = inbox.get((SOURCE, one))
            if one in effects or (
                row is not None and row["outcome"] == "discarded" and one in self.discarded
            ):
                continue
            if deed is Deed.SKIPS and row is not None and row["outcome"] == "skipped":
                continue
            yield f"lost: {one.int} ({deed}), {row}"

    def _in_order(self) -> Iterator[str]:
        world = self._world
        stopped = {self._id(record) for record in self._quarantine()}
        for partition in range(world.broker.partitions):
            by_key: dict[bytes, list[UUID]] = {}
            for record in world.broker.logs[SOURCE, partition].records:
                one = self._id(record)
                kind = dict(record.headers)["type"]
                free = kind == b"sim.Free" or (kind == b"sim.Passed" and one in stopped)
                if record.key is not None and not free:
                    by_key.setdefault(record.key, []).append(one)
            for key, ids in by_key.items():
                wanted = list(dict.fromkeys(ids))
                found = [one for one in world.database.tables.effects if one in set(wanted)]
                if list(dict.fromkeys(found)) != [one for one in wanted if one in set(found)]:
                    yield f"{key!r} out of order: {[one.int for one in found]}"

    def _quarantine(self) -> list[Any]:
        from tests.simulation.processor.world import QUARANTINE

        world = self._world
        return [r for p in range(world.broker.partitions) for r in world.broker.logs[QUARANTINE, p].records]

    @staticmethod
    def _id(record: Any) -> UUID:
        return UUID(bytes=record.value)
