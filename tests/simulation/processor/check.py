"""Check a history from the topic, the handler's own table and the quarantine topic alone."""

from collections.abc import Mapping
from uuid import UUID

from tests.simulation.processor.lane import Deed
from tests.simulation.processor.moves import note_watermarks
from tests.simulation.processor.world import ATTEMPTS, ENDLESS, Plan, World

from packhorse.processor.record import Record

Deeds = Mapping[UUID, tuple[Deed, int]]
STEPS = 8_000


def history(seed: int, plan: Plan | None = None, world_class: type[World] = World) -> str | None:
    """Run one schedule; return what is wrong with its history, None when nothing is."""
    world = world_class(seed, plan)
    deeds = dict(world.script.deeds)
    taken = 0
    try:
        for taken, _ in enumerate(world.steps()):
            note_watermarks(world)
            if taken > STEPS:
                return f"seed {seed}: no end\n" + "\n".join(world.trace[-40:])
        faults = [*_effects(world, deeds), *_charges(world, deeds)]
    except AssertionError as error:
        faults = [str(error)]
    if not faults:
        return None
    return f"seed {seed}: {'; '.join(faults)} after {taken} steps\n" + "\n".join(world.trace[-60:])


def _effects(world: World, deeds: Deeds) -> list[str]:
    found = []
    effects = world.database.tables.effects
    quarantined = set(world.copies.log)
    for partition, log in enumerate(world.logs):
        ids = list(dict.fromkeys(_id(one) for one in log))
        mine = [one for one in effects if one in set(ids)]
        if mine != [one for one in ids if one in set(mine)]:
            found.append(f"partition {partition}: out of order or twice: {[i.int % 1000 for i in mine]}")
        for one in ids:
            deed, times = deeds.get(one, (Deed.WELL, 0))
            if one in mine and one in quarantined and not world.restored:
                found.append(f"{one.int % 1000}: done and in quarantine")
            if one not in mine and one not in quarantined and deed is not Deed.SKIPS:
                found.append(f"{one.int % 1000} of {partition} ({deed}): lost")
            if deed in {Deed.WELL, Deed.REGISTRY} and one not in mine:
                found.append(f"{one.int % 1000} of {partition} ({deed}): not done")
            if deed is Deed.FAILS and times < ATTEMPTS and one not in mine:
                found.append(f"{one.int % 1000}: quarantined after {times} failures")
            if times == ENDLESS and one in mine:
                found.append(f"{one.int % 1000}: done, though it never can be")
    return found


def _charges(world: World, deeds: Deeds) -> list[str]:
    """Only the messages that fail are charged an attempt."""
    innocent = {Deed.WELL, Deed.REGISTRY, Deed.JUNK, Deed.SKIPS}
    return [
        f"{one.int % 1000} is charged {reason}"
        for one, _, reason in world.database.tables.failed
        if deeds.get(one, (Deed.WELL, 0))[0] in innocent
    ]


def _id(record: Record) -> UUID:
    return UUID(bytes=record.value or b"")
