"""What can happen next in a world: work, time, rebalances, and the faults that are left."""

from collections.abc import Callable
from functools import partial

from tests.simulation.processor.world import TOPIC, Member, World

Move = Callable[[], object]


def moves_of(world: World) -> list[Move]:
    """Return the moves that are possible, the likelier ones more than once."""
    moves: list[Move] = [partial(_time, world)] * 2
    for member in world.members:
        if member.frozen:
            moves.append(partial(_thaw, world, member))
            continue
        for running in member.jobs:
            moves += [partial(member.step_job, running)] * 6
        for place in member.fetch.at:
            if place not in member.fetch.paused:
                moves += [partial(_fetch, world, member, place[1])] * 2
        moves += [partial(_commit, world, member)] * bool(member.fetch.commits)
        moves += [partial(_finish_drain, world, member, p) for _, p in member.draining]
    for p, owner in world.owners.items():
        if owner is None:
            moves += [partial(_assign, world, p)] * 3
    if not world.database.up:
        moves += [partial(_up, world)] * 2
    if world.faults_left and world.random.random() < 0.06:
        moves += _faults(world)
    return moves


def _faults(world: World) -> list[Move]:
    faults: list[Move] = [partial(_down, world)]
    for member in world.members:
        faults += [partial(_crash, world, member), partial(_freeze, world, member)]
    for p, owner in world.owners.items():
        if owner is not None and not owner.frozen:
            faults.append(partial(_revoke, world, p))
    if world.restores_left and world.database.backups:
        faults += [world.restore] * 3
    elif len(world.database.tables.marks) == 2 and None in world.owners.values():
        faults.append(partial(_forget_offsets, world))
    return faults


def _time(world: World) -> None:
    world.database.now += 0.05
    if world.restores_left and len(world.database.tables.marks) == 2 and world.random.random() < 0.1:
        world.database.back_up()
    for member in world.members:
        if not member.frozen:
            member.desk.tick()
            if world.random.random() < 0.1:
                member.watch()


def _fetch(world: World, member: Member, partition: int) -> None:
    place = (TOPIC, partition)
    stale = member.fetch.stale.pop(place, None)
    start = member.fetch.at[place] if stale is None else stale
    count = world.random.randint(1, 4)
    records = [one for one in world.logs[partition] if one.offset >= start][:count]
    if not records:
        return
    if stale is None:
        member.fetch.at[place] = records[-1].offset + 1
    member.desk.fetched(place, records)


def _commit(world: World, member: Member) -> None:
    place, position = member.fetch.commits.pop(0)
    if world.owners[place[1]] is not member:
        world.say(f"{member.name} commit of {place[1]} refused")
        member.desk.commit_failed(place, position, refused=True)
    elif world.fault("commit failed", 0.1):
        member.desk.commit_failed(place, position, refused=False)
    else:
        _store_commit(world, place[1], position)
        if world.fault("commit's answer lost", 0.1):
            member.desk.commit_failed(place, position, refused=False)
        else:
            member.desk.committed(place, position)


def _store_commit(world: World, partition: int, position: int) -> None:
    highest = world.highest.get(partition, 0)
    assert position <= highest, f"commit of {partition} at {position}, all below {highest} was durable"
    world.committed[partition] = position


def note_watermarks(world: World) -> None:
    """Remember the highest watermark that was ever durable; a commit never passes it."""
    for (_, partition), mark in world.database.tables.marks.items():
        world.highest[partition] = max(world.highest.get(partition, 0), mark[0])


def _assign(world: World, partition: int) -> None:
    able = [member for member in world.members if not member.frozen]
    if not able:
        return
    member = world.random.choice(able)
    place = (TOPIC, partition)
    if place in member.desk:
        _lose(member, partition)
    world.owners[partition] = member
    world.say(f"{partition} to {member.name}")
    member.desk.assigned([place])


def _lose(member: Member, partition: int) -> None:
    place = (TOPIC, partition)
    member.desk.remove([place])
    member.draining.discard(place)
    member.fetch.at.pop(place, None)
    member.fetch.stale.pop(place, None)
    member.fetch.paused.discard(place)


def _revoke(world: World, partition: int) -> None:
    owner = world.owners[partition]
    assert owner is not None
    world.faults_left -= 1
    world.say(f"{partition} revoked from {owner.name}")
    owner.desk.drain([(TOPIC, partition)])
    owner.draining.add((TOPIC, partition))


def _finish_drain(world: World, member: Member, partition: int) -> None:
    place = (TOPIC, partition)
    if place in member.desk.busy and world.random.random() < 0.9:
        return
    if place in member.desk.busy:
        member.desk.give_up([place])
    if world.owners[partition] is member:
        for position, _ in member.desk.positions([place]).values():
            _store_commit(world, partition, position)
        world.owners[partition] = None
    _lose(member, partition)


def _crash(world: World, member: Member) -> None:
    world.faults_left -= 1
    world.say(f"{member.name} crashes")
    world.members.remove(member)
    for connection in member.connections.values():
        connection.lost, connection.pending = True, None
        if connection in world.database.connections:
            world.database.connections.remove(connection)
    _gone(world, member)
    world.born += 1
    world.members.append(Member(world, f"m{world.born}"))


def _freeze(world: World, member: Member) -> None:
    world.faults_left -= 1
    world.say(f"{member.name} freezes")
    member.frozen = True
    _gone(world, member)


def _gone(world: World, member: Member) -> None:
    for p, owner in world.owners.items():
        if owner is member:
            world.owners[p] = None


def _thaw(world: World, member: Member) -> None:
    """Let a frozen process go on; sooner or later it learns what it has lost."""
    world.say(f"{member.name} wakes")
    member.frozen = False
    for place in list(member.desk.states):
        if world.owners[place[1]] is not member and world.random.random() < 0.5:
            _lose(member, place[1])


def _down(world: World) -> None:
    world.faults_left -= 1
    world.say("database down")
    world.database.up = False
    world.database.cut()


def _up(world: World) -> None:
    world.say("database up")
    world.database.up = True


def _forget_offsets(world: World) -> None:
    """Let the offsets of a partition that nobody has expire, or be set to the end by hand."""
    world.faults_left -= 1
    p = world.random.choice([p for p, owner in world.owners.items() if owner is None])
    if world.random.random() < 0.5:
        world.committed.pop(p, None)
    else:
        world.committed[p] = world.logs[p][-1].offset + 1
    world.say(f"offsets of {p} are now {world.committed.get(p)}")
