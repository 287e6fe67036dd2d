"""The broker, simulated: topics, the group's coordinator and its committed offsets, a producer and a member's consumer."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from uuid import UUID, uuid5

from packhorse.core.errors import BrokerUnavailable
from packhorse.processor.copies import CopiesMissed, Copy
from packhorse.processor.kafka.consumer import CommitReport, Polled
from packhorse.processor.offsets.starting import LogEnds
from packhorse.processor.record import HeaderList, Record
from packhorse.processor.storing.store import Place as Stands

if TYPE_CHECKING:
    from tests.simulation.processor.process import Process
    from tests.simulation.processor.world import World

Place = tuple[str, int]
SESSION = 6.0
"""Seconds after which the coordinator takes a member for gone."""
LONGEST = 2.0
"""Seconds that a poll which brings nothing lasts at most."""
NAMESPACE = UUID(int=5)


@dataclass(slots=True)
class Log:
    """One partition: its records, and the next offset; what lies between two records is a hole."""

    records: list[Record] = field(default_factory=list)
    high: int = 0


KEEP = {"owners": 0.4, "returns": 0.1}
"""How often who reads a partition keeps it when they are dealt anew, where that is not nearly always."""


class Broker:
    """Topics, and the group."""

    def __init__(self, world: "World", partitions: int) -> None:
        self.world = world
        self.partitions = partitions
        self.logs: dict[Place, Log] = {}
        self.committed: dict[Place, int] = {}
        self.copies: set[tuple[UUID, int | None]] = set()
        self.members: list[Process] = []
        self.owners: dict[Place, Process] = {}
        self.wanted: dict[Place, Process] = {}

    def make(self, topic: str) -> None:
        for partition in range(self.partitions):
            self.logs[topic, partition] = Log()

    def topic_id(self, topic: str) -> UUID:
        self.world.hub.pause()
        return id_of(topic)

    def log_ends(self, group: str, topic: str, partition: int) -> LogEnds:
        del group
        self.world.hub.pause()
        if self.world.fault("broker does not answer"):
            raise BrokerUnavailable("no answer")
        place = topic, partition
        return LogEnds(0, self.logs[place].high, self.committed.get(place))

    def append(self, place: Place, key: bytes | None, value: bytes | None, headers: HeaderList) -> int:
        log = self.logs[place]
        offset = log.high
        log.records.append(Record(*place, offset, 0, int(self.world.hub.now * 1000), key, value, headers))
        log.high = offset + 1
        owner = self.owners.get(place)
        if owner is not None:
            owner.wake()
        return offset

    def send(self, copy: Copy) -> int:
        """Take a copy."""
        self.copies.add((copy.id, None if copy.topic.endswith(".quarantine") else copy.attempt))
        return self.append((copy.topic, copy.partition), copy.key, copy.value, copy.headers)

    def skip(self, place: Place, holes: int) -> None:
        """Leave a hole, as compaction and the marks of transactions do."""
        self.logs[place].high += holes

    # The group.

    def join(self, member: "Process") -> None:
        self.members.append(member)
        self.deal()

    def leave(self, member: "Process") -> None:
        if member in self.members:
            self.members.remove(member)
            self.owners = {place: owner for place, owner in self.owners.items() if owner is not member}
            self.deal()

    def deal(self) -> None:
        """Deal the partitions that are read anew; who keeps one is not asked to give it back."""
        random, places = self.world.random, self.world.places
        if not self.members:
            self.wanted = {}
            return
        most = -(-len(places) // len(self.members))
        counts = dict.fromkeys(map(id, self.members), 0)
        wanted: dict[Place, Process] = {}
        for place in places:
            old = self.wanted.get(place)
            if (
                old in self.members
                and counts[id(old)] < most
                and random.random() < KEEP.get(self.world.theme, 0.9)
            ):
                wanted[place] = old
                counts[id(old)] += 1
        for place in places:
            if place not in wanted:
                able = [one for one in self.members if counts[id(one)] < most]
                wanted[place] = random.choice(able)
                counts[id(wanted[place])] += 1
        self.wanted = wanted
        for one in self.members:
            one.wake()

    def commit(self, member: "Process", place: Place, position: int) -> str:
        """Take a commit; of whoever does not own the partition it is refused."""
        if self.owners.get(place) is not member:
            return "refused"
        if self.world.fault("commit failed"):
            return "failed"
        self.world.checks.committed(place, position)
        self.committed[place] = position
        return "failed" if self.world.fault("commit's answer lost") else "ok"


def id_of(topic: str) -> UUID:
    """Return Kafka's id of a topic."""
    return uuid5(NAMESPACE, topic)


class Producer:
    """Sends copies for one process."""

    def __init__(self, world: "World") -> None:
        self._world = world

    def send(self, copies: Sequence[Copy]) -> list[Stands]:
        world, stand = self._world, dict[int, Stands]()
        for at, copy in enumerate(copies):
            world.hub.pause(world.latency())
            if world.fault("copy lost", 0.08):
                continue
            offset = world.broker.send(copy)
            if world.fault("copy doubled", 0.04):
                world.broker.send(copy)
            if not world.fault("copy's acknowledgement lost", 0.04):
                stand[at] = Stands(copy.id, copy.partition, offset, copy.attempt)
        if len(stand) < len(copies):
            world.hub.pause(1.0)
            raise CopiesMissed("not acknowledged", stand)
        world.hub.pause()
        return list(stand.values())


class Consumer:
    """One member's consumer."""

    def __init__(self, world: "World", process: "Process", loop: Any) -> None:
        self._world = world
        self._process = process
        self._loop = loop
        self._at: dict[Place, int] = {}
        self._stale: dict[Place, int] = {}
        self._paused: set[Place] = set()
        self._owned: list[Place] = []
        self._commits: list[CommitReport] = []
        self._idle = 0.05

    def poll(self, wait: float, most: int) -> Polled:
        hub = self._world.hub
        hub.pause()
        self._rebalance()
        records = self._fetch(most)
        commits, self._commits = self._commits, []
        if records or commits or wait == 0:
            self._idle = wait
            return Polled(records, (), commits)
        # Longer and longer, though never past what somebody has to say: an empty poll is no news.
        self._idle = max(wait, min(LONGEST, self._idle * 2))
        self._process.life.polls = hub.turn
        hub.wait(hub.now + self._idle)
        self._process.life.polls = None
        return Polled(self._fetch(most), (), commits)

    def _rebalance(self) -> None:
        broker, me = self._world.broker, self._process
        if me not in broker.members:
            if self._owned:
                owned, self._owned = self._owned, []
                self._gone(owned)
                self._loop.lost(owned)
            broker.join(me)
            return
        away = [place for place in self._owned if broker.wanted.get(place) is not me]
        if away:
            self._loop.revoked(away)
            self._gone(away)
            self._owned = [place for place in self._owned if place not in away]
            for place in away:
                if broker.owners.get(place) is me:
                    del broker.owners[place]
            for one in broker.members:
                one.wake()
        mine = [
            p
            for p, one in broker.wanted.items()
            if one is me and p not in broker.owners and p not in self._owned
        ]
        if mine:
            for place in mine:
                broker.owners[place] = me
            self._owned += mine
            self._loop.assigned(mine)

    def _gone(self, places: Sequence[Place]) -> None:
        for place in places:
            self._at.pop(place, None)
            self._stale.pop(place, None)
            self._paused.discard(place)

    def _fetch(self, most: int) -> dict[Place, list[Record]]:
        del most
        random, found = self._world.random, {}
        for place, at in self._at.items():
            if place in self._paused:
                continue
            start = self._stale.pop(place, at)
            log = self._world.broker.logs[place].records
            if not log or log[-1].offset < start:
                continue
            records = [one for one in log if one.offset >= start][: random.randint(1, 6)]
            found[place] = records
            if start == at:
                self._at[place] = records[-1].offset + 1
        return found

    def attach(self, topic: str, partition: int, offset: int) -> None:
        self._at[topic, partition] = offset

    def seek(self, topic: str, partition: int, offset: int) -> bool:
        place = topic, partition
        if self._world.fault("seek fails", 0.05):
            return False
        if place in self._at and self._world.fault("stale fetch", 0.3):
            self._stale[place] = self._at[place]
        self._at[place] = offset
        return True

    def pause(self, topic: str, partition: int) -> None:
        self._paused.add((topic, partition))

    def resume(self, topic: str, partition: int) -> None:
        self._paused.discard((topic, partition))

    def commit(self, topic: str, partition: int, position: int, leader_epoch: int | None) -> None:
        del leader_epoch
        ended = self._world.broker.commit(self._process, (topic, partition), position)
        self._commits.append(CommitReport(topic, partition, position, ended, ended))

    def join(self) -> None:
        self._world.broker.join(self._process)

    def close(self, wait: float) -> bool:
        del wait
        self._world.broker.leave(self._process)
        return True
