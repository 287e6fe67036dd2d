"""A lane, simulated: it answers a batch's requests from the simulated database, with the handlers' deeds scripted."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from uuid import UUID

from tests.simulation.processor.database import Connection, Stopped

from packhorse.core.errors import BrokerUnavailable, RegistryUnavailable, Undecodable
from packhorse.processor.member.fence import Fence
from packhorse.processor.outcomes import Reason
from packhorse.processor.record import Record
from packhorse.processor.running.work import (
    Begin,
    CommitTransaction,
    CountDeliveries,
    Decode,
    Failure,
    LookUp,
    Member,
    MoveWatermark,
    Ran,
    Request,
    RollBack,
    RollBackToSavepoint,
    RunHandler,
    Savepoint,
    SendCopies,
    Work,
    Write,
)


class Deed(StrEnum):
    """What handling a message comes to, each time while `times` lasts."""

    WELL = "well"
    FAILS = "fails"
    SKIPS = "skips"
    STOPS = "stops"
    CONTENDS = "contends"
    CUTS = "cuts"
    JUNK = "junk"
    REGISTRY = "registry"


@dataclass(slots=True)
class Script:
    """What the handlers do, by message, and how often they have run."""

    deeds: dict[UUID, tuple[Deed, int]]
    runs: int = 0

    def next(self, one: UUID) -> Deed:
        deed, times = self.deeds.get(one, (Deed.WELL, 0))
        if times <= 0:
            return Deed.WELL
        self.deeds[one] = (deed, times - 1)
        return deed

    def peek(self, one: UUID) -> Deed:
        deed, times = self.deeds.get(one, (Deed.WELL, 0))
        return deed if times > 0 else Deed.WELL


class Copies:
    """The quarantine topic; a send may be lost, or only its acknowledgement."""

    def __init__(self, fault: Callable[[str], bool]) -> None:
        self.log: list[UUID] = []
        self._fault = fault

    def send(self, stopped: list[Stopped]) -> None:
        for one in stopped:
            if self._fault("copy lost"):
                raise BrokerUnavailable("not sent")
            self.log.append(one.delivery.id)
            if self._fault("copy's acknowledgement lost"):
                raise BrokerUnavailable("not acknowledged")


@dataclass(frozen=True, slots=True)
class Message:
    """What a payload decodes to."""

    value: bytes


class Lane:
    """Answer one batch's requests on one connection."""

    def __init__(
        self, connection: Connection, work: Work, script: Script, copies: Copies, fence: Fence
    ) -> None:
        self.connection = connection
        self._work = work
        self._script = script
        self._copies = copies
        self._fence = fence

    def execute(self, request: Request) -> object:
        connection, work = self.connection, self._work
        match request:
            case LookUp(ids):
                return connection.look_up(work.stream, work.partition, ids)
            case Decode(payload):
                return self._decode(payload)
            case Begin():
                connection.begin()
            case Savepoint():
                connection.savepoint()
            case RollBackToSavepoint():
                connection.to_savepoint()
            case RunHandler(member):
                return self._run(member)
            case Write(results):
                return connection.write(work.stream, results)
            case CommitTransaction():
                self._fence.check()
                connection.commit()
            case RollBack():
                connection.roll_back()
            case _:
                return self._after_commit(request)
        return None

    def _after_commit(self, request: Request) -> object:
        connection, work = self.connection, self._work
        match request:
            case CountDeliveries(ids):
                connection.count_deliveries(work.stream, ids)
            case SendCopies(deliveries):
                stopped = connection.uncopied(work.stream.source, [one.id for one in deliveries])
                self._copies.send(stopped)
                connection.confirm_copies(stopped)
            case MoveWatermark(old, new, leader_epoch):
                return connection.move_watermark(
                    work.stream, work.partition, old=old, new=new, leader_epoch=leader_epoch
                )
        return None

    def _decode(self, payload: bytes) -> object:
        one = UUID(bytes=payload)
        deed = self._script.peek(one)
        if deed is Deed.JUNK:
            return Undecodable("junk")
        if deed is Deed.REGISTRY:
            self._script.next(one)
            raise RegistryUnavailable("away")
        return Message(payload)

    def _run(self, member: Member) -> Ran:
        self._script.runs += 1
        one, connection = member.delivery.id, self.connection
        deed = self._script.next(one)
        if self._fence.up:
            return Ran(Failure.GIVEN_UP)
        connection.effect(one)
        match deed:
            case Deed.FAILS:
                return Ran(Failure.TEMPORARY, Reason.FAILED.value, "fails")
            case Deed.STOPS:
                return Ran(Failure.PERMANENT, Reason.PERMANENT.value, "stops")
            case Deed.SKIPS:
                return Ran(Failure.SKIP, "", "skips")
            case Deed.CONTENDS:
                return Ran(Failure.CONTENTION, Reason.CONTENTION.value, "contends")
            case Deed.CUTS:
                connection.lost, connection.pending = True, None
                return Ran(Failure.CONNECTION, "", "cuts")
            case _:
                return Ran()


def record(topic: str, partition: int, offset: int, one: UUID, type_name: str, epoch: int = 0) -> Record:
    """Return a record of message *one*, whose payload is its id."""
    headers = (("id", str(one).encode()), ("type", type_name.encode()))
    return Record(topic, partition, offset, epoch, 0, b"k", one.bytes, headers)
