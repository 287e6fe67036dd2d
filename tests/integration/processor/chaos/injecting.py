"""Do to members, broker and database what the schedule says, and undo it."""

import heapq
import signal
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random

import psycopg
from confluent_kafka import ConsumerGroupTopicPartitions, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient
from tests.integration.processor.chaos.app import GROUP
from tests.integration.processor.chaos.members import Crew
from tests.integration.processor.chaos.schedule import Fault, Kind
from tests.integration.processor.chaos.traffic import Sampler
from tests.support.proxy import Proxy
from tests.support.stack import PrivateBroker, PrivateDatabase
from tests.support.wait import eventually

from packhorse.core.clock import SYSTEM_CLOCK

BACKENDS = """
SELECT pid FROM pg_stat_activity WHERE datname = %s AND backend_type = 'client backend' AND pid <> pg_backend_pid()
ORDER BY pid
"""
DATABASE = {
    Kind.DATABASE_CUT: Proxy.cut,
    Kind.DATABASE_HOLE: Proxy.black_hole,
    Kind.DATABASE_MUTE: Proxy.swallow_answers,
    Kind.DATABASE_HELD: Proxy.freeze,
}
BROKER = {
    Kind.BROKER_CUT: Proxy.cut,
    Kind.BROKER_HOLE: Proxy.black_hole,
    Kind.BROKER_MUTE: Proxy.swallow_answers,
    Kind.BROKER_HELD: Proxy.freeze,
}
Undo = Callable[[], object]


@dataclass(frozen=True)
class Ends:
    """What a run works on: the servers, and the topics that the group reads."""

    broker: PrivateBroker
    database: PrivateDatabase
    topics: Sequence[str]
    partitions: int


class Injector:
    """
    Carry out a schedule in the caller's thread.

    Attributes:
        log: What was done, and when.
    """

    def __init__(self, ends: Ends, crew: Crew, sampler: Sampler, seed: int) -> None:
        self.log: list[str] = []
        self._ends, self._crew, self._sampler = ends, crew, sampler
        self._chance = Random(seed)
        self._began = SYSTEM_CLOCK.monotonic()

    def run(self, schedule: Sequence[Fault], seconds: float) -> None:
        """Do each fault at its time and undo it at its end; return after *seconds*, everything undone."""
        self._began = SYSTEM_CLOCK.monotonic()
        undos: list[tuple[float, int, Undo]] = []
        for number, fault in enumerate(schedule):
            self._until(fault.at, undos)
            self._say(str(fault))
            before = self._now()
            undo = self._done(fault)
            self._began += self._now() - before  # what takes its time must not bunch what comes after it
            if undo is not None:
                heapq.heappush(undos, (before + fault.seconds, number, undo))
        self._until(seconds, undos)
        while undos:
            heapq.heappop(undos)[2]()
        self.heal()
        self._say("all is undone")

    def heal(self) -> None:
        """Put everything right."""
        self._ends.broker.heal()
        self._ends.database.heal()
        for member in self._crew.members:
            member.database.resume()
            member.signal(signal.SIGCONT)
        self._aim()

    def _now(self) -> float:
        return SYSTEM_CLOCK.monotonic() - self._began

    def _say(self, text: str) -> None:
        self.log.append(f"{SYSTEM_CLOCK.now().timestamp():.3f} +{self._now():.2f} s: {text}")

    def _until(self, at: float, undos: list[tuple[float, int, Undo]]) -> None:
        pause = threading.Event()
        while undos and undos[0][0] <= at:
            due, _, undo = heapq.heappop(undos)
            pause.wait(max(0.0, due - self._now()))
            undo()
        pause.wait(max(0.0, at - self._now()))

    def _done(self, fault: Fault) -> Undo | None:
        """Do it; what can't be done now, because of what was done before it, is left out."""
        try:
            return self._do(fault)
        except (KafkaException, psycopg.Error, AssertionError) as error:
            self._say(f"it can't be done now: {error}")
            return None

    def _do(self, fault: Fault) -> Undo | None:
        member = self._crew.members[fault.member]
        match fault.kind:
            case Kind.KILL:
                member.signal(signal.SIGKILL, back=fault.seconds)
            case Kind.TERM:
                member.signal(signal.SIGTERM, back=fault.seconds)
            case Kind.FREEZE | Kind.FREEZE_LONG:
                member.signal(signal.SIGSTOP)
                return lambda: member.signal(signal.SIGCONT)
            case kind if kind in DATABASE:
                DATABASE[kind](member.database)
                return member.database.resume
            case kind if kind in BROKER:
                BROKER[kind](self._ends.broker.proxy)
                return self._ends.broker.proxy.resume
            case _:
                return self._do_to_all(fault.kind)
        return None

    def _do_to_all(self, kind: Kind) -> Undo | None:
        match kind:
            case Kind.BACKENDS:
                self._end_backends()
            case Kind.RESTART:
                self._ends.database.kill()
                self._ends.database.start()
                self._aim()
            case Kind.BROKER_FROZEN:
                self._ends.broker.pause()
                return self._ends.broker.resume
            case Kind.BROKER_KILL:
                stood = self._ends.broker.direct_bootstrap
                self._ends.broker.kill()
                self._ends.broker.start()
                assert self._ends.broker.direct_bootstrap == stood, (
                    "somebody took the broker's port: run it again"
                )
            case Kind.TO_START | Kind.TO_END:
                self._crew.hold()
                try:
                    self._reset(to_end=kind is Kind.TO_END)
                finally:
                    self._crew.release()
            case _:
                raise AssertionError(f"nobody does {kind}")
        return None

    def _aim(self) -> None:
        """Let the members' proxies lead to the server, whose port may be another after a start."""
        for member in self._crew.members:
            member.database.target = self._ends.database.proxy.target

    def _end_backends(self) -> None:
        with psycopg.connect(self._ends.database.direct_url, autocommit=True) as connection:
            pids = [row[0] for row in connection.execute(BACKENDS, (self._ends.database.database,))]
            for pid in pids:
                if self._chance.random() < 0.5:
                    connection.execute("SELECT pg_terminate_backend(%s)", (pid,))

    def _reset(self, *, to_end: bool) -> None:
        """Set the offsets that the group has committed; a member that was killed must be forgotten by the broker first."""
        places = [TopicPartition(t, p) for t in self._ends.topics for p in range(self._ends.partitions)]
        there = eventually(lambda: self._there(places), what="the group's offsets are known", timeout=60)
        ends = self._ends_of(there) if to_end else [TopicPartition(o.topic, o.partition, 0) for o in there]
        admin = AdminClient({"bootstrap.servers": self._ends.broker.direct_bootstrap, "log_level": 0})
        eventually(lambda: self._altered(admin, ends), what="the group's offsets are reset", timeout=30)
        if to_end:
            self._sampler.void.update(
                (one.partition, one.offset) for one in ends if one.topic == self._ends.topics[0]
            )
        self._say(f"reset {', '.join(f'{o.topic}[{o.partition}]={o.offset}' for o in ends)}")

    def _there(self, places: list[TopicPartition]) -> list[TopicPartition]:
        try:
            return self._sampler.committed_of(places)
        except KafkaException as error:
            raise AssertionError(str(error)) from error

    def _ends_of(self, places: Sequence[TopicPartition]) -> list[TopicPartition]:
        found = self._sampler.ends_of([(one.topic, one.partition) for one in places])
        return [TopicPartition(topic, partition, offset) for (topic, partition), offset in found.items()]

    def _altered(self, admin: AdminClient, places: Sequence[TopicPartition]) -> bool:
        request = [ConsumerGroupTopicPartitions(GROUP, list(places))]
        try:
            answer = admin.alter_consumer_group_offsets(request)[GROUP].result()
        except KafkaException as error:
            raise AssertionError(str(error)) from error
        return all(one.error is None for one in answer.topic_partitions)
