"""Judge a history from the topics and the handlers' own table; and, at each step, that no offset passes what is not durable."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from uuid import UUID

from tests.simulation.processor.messages import SOURCE, Deed
from tests.simulation.processor.statements import OPEN

if TYPE_CHECKING:
    from tests.simulation.processor.world import World

Place = tuple[str, int]
MOST_RUNS = 150
ALWAYS = {"connection-lost", "crashed", "attempts-exhausted", "contention"}
"""What enough faults may do to any message."""
BLAME = {
    Deed.FAILS: {"failed"},
    Deed.STOPS: {"permanent"},
    Deed.JUNK: {"undecodable"},
    Deed.DOWN: {"down"},
}
STOPPED = {**BLAME, Deed.DOWN: set[str]()}
UNBOUND = {"sim.Free", "sim.Passed"}
"""Types that take no order, or give it up when one is redriven."""


@dataclass(slots=True, eq=False)
class Run:
    """One run of a handler that goes on."""

    one: UUID
    actor: Any
    session: Any
    place: Place


class Checks:
    """What is looked at while a world runs, and at its end."""

    def __init__(self, world: "World") -> None:
        self._world = world
        self._runs: dict[bytes, list[Run]] = {}
        self._marked: dict[Place, int] = {}
        self.discarded: set[UUID] = set()
        self.runs: dict[UUID, int] = {}
        self.records: dict[UUID, Any] = {}

    @contextmanager
    def running(self, one: UUID, session: Any) -> Iterator[None]:
        """See that no two messages of one key run at once where both count, and that nothing is run for ever."""
        world, record = self._world, self.records[one]
        count = self.runs[one] = self.runs.get(one, 0) + 1
        self._see(count <= MOST_RUNS, f"{one.int} is run for the {count}th time")
        key = record.key
        if key is None or dict(record.headers)["type"].decode() in UNBOUND:
            yield
            return
        actor = world.hub.turn
        assert actor is not None
        run = Run(one, actor, session, actor.place)
        others = self._runs.setdefault(key, [])
        for other in others if self._counts(run) else ():
            self._see(not self._counts(other), f"{one.int} runs while {other.one.int} of its key does")
        others.append(run)
        try:
            yield
        finally:
            others.remove(run)

    def _see(self, holds: bool, wrong: str) -> None:
        """Remember the first thing that is wrong: whoever runs into it may swallow the error."""
        if not holds:
            self._world.broken = self._world.broken or wrong
            raise AssertionError(wrong)

    def _counts(self, run: Run) -> bool:
        """Return whether the run is one of a living owner, as far as anybody can know."""
        world, life = self._world, run.actor.life
        if world.stalled or life.dead or run.actor.fence.up or run.session.state != "open":
            return False
        owner = world.broker.owners.get(run.place)
        return owner is not None and owner.life is life

    def committed(self, place: Place, position: int) -> None:
        """See that a commit does not pass what was ever marked as durable."""
        durable = position <= self._marked.get(place, 0)
        self._see(durable, f"commit of {place} at {position}, which is not durable")

    def opened(self, place: Place, position: int) -> None:
        """Take where a watermark begins."""
        self._marked[place] = max(position, self._marked.get(place, 0))

    def moved(self, place: Place, old: int, new: int) -> None:
        """See that a watermark passes only what is durably dealt with, its copy where it should be."""
        self._marked[place] = max(new, self._marked.get(place, 0))
        for record in self._world.broker.logs[place].records:
            if not old <= record.offset < new:
                continue
            if place[0] == SOURCE:
                self._passed(self._id(record))
            elif record.value:
                self._copy_passed(self._id(record), int(dict(record.headers)["attempt"] or 0))

    def _stands(self, one: UUID, behind: int) -> bool:
        """Return whether a message in quarantine is on its topic, or will be for a copy of an attempt later than *behind*."""
        copies = self._world.broker.copies
        return (one, None) in copies or any(
            other == one and attempt is not None and attempt > behind for other, attempt in copies
        )

    def _copy_passed(self, one: UUID, attempt: int) -> None:
        row = self._world.database.tables.rows["inbox"].get((SOURCE, one))
        if row is not None and row["outcome"] == "quarantine":
            self._see(
                self._stands(one, attempt),
                f"a tier's watermark passes {one.int}, which has no copy in quarantine",
            )

    def _passed(self, one: UUID) -> None:
        rows, copies = self._world.database.tables.rows, self._world.broker.copies
        row, stopped = rows["inbox"].get((SOURCE, one)), rows["quarantined"].get((SOURCE, one))
        if row is None:
            self._see(False, f"the watermark passes {one.int}, which has no result")
            return
        if (SOURCE, one) in self._world.database.ever_parked:
            return  # Once it went behind its key, another partition's record stands for it.
        if row["outcome"] == "retry" and (stopped is None or stopped["state"] != "redriven"):
            # A later attempt's copy may be on its way: then the record of the one before stands for it.
            there = any(other == one and attempt is not None for other, attempt in copies)
            self._see(there, f"the watermark passes {one.int}, of which no attempt has a copy")
        if row["outcome"] == "quarantine":
            self._see(
                self._stands(one, 0), f"the watermark passes {one.int}, which has no copy in quarantine"
            )

    def finished(self) -> bool:
        """Return whether nothing is left to do."""
        world = self._world
        rows = world.database.tables.rows
        if (
            not world.writer.is_done
            or rows["key"]
            or rows["parked"]
            or rows["retry"]
            or not world.database.up
        ):
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
        return [*self._once(), *self._in_order(), *self._blamed()]

    def _blamed(self) -> Iterator[str]:
        """See that nothing is blamed on a message that it did not do."""
        rows = self._world.database.tables.rows
        reasons = [(one, row["reason"]) for (_, one, _), row in rows["failed"].items()]
        for one, reason in reasons:
            deed, _ = self._world.deeds[one]
            if reason not in BLAME.get(deed, set()) | ALWAYS:
                yield f"{one.int} ({deed}) is blamed for {reason}"
        for (_, one), row in rows["quarantined"].items():
            deed, _ = self._world.deeds[one]
            if row["reason"] not in STOPPED.get(deed, set()) | ALWAYS:
                yield f"{one.int} ({deed}) is stopped for {row['reason']}"

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
