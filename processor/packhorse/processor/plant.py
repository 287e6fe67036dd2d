"""What all lanes of a process share, as ports; and the settings that they work by."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeVar
from uuid import UUID

from packhorse.core.clock import SYSTEM_CHANCE, SYSTEM_CLOCK, Chance, Clock
from packhorse.core.logs import Log, logger
from packhorse.core.message import TypedMessage
from packhorse.core.telemetry import NO_TELEMETRY, Telemetry
from packhorse.processor.app import Processor
from packhorse.processor.copies import Copy
from packhorse.processor.jobs.ledger import Ledger
from packhorse.processor.jobs.runs import Runs
from packhorse.processor.offsets.starting import LogEnds, MissingRecords
from packhorse.processor.parking.claims import Claims
from packhorse.processor.running.deadlines import Deadlines
from packhorse.processor.running.starts import Starts
from packhorse.processor.signals import Signal, no_signal
from packhorse.processor.storing.store import Place, Store
from packhorse.processor.tiers.ladder import ReadTopic
from packhorse.processor.watching.board import Board
from packhorse.producer import Outbox

M = TypeVar("M", bound=TypedMessage)


class Decodes(Protocol):
    """Decode payloads; safe to share between threads."""

    def decode(self, payload: bytes, cls: type[M]) -> M:
        """Return the message. Raises a MessageFault or RegistryUnavailable."""


class SendsCopies(Protocol):
    """Produce to the group's own topics; safe to share between threads."""

    def send(self, copies: Sequence[Copy]) -> list[Place]:
        """
        Produce *copies* and return where the broker has put them, in their order; blocks until all are confirmed.

        Raises:
            CopiesMissed: One was not confirmed in time, or can't be; it says where the others stand.
        """


class AsksBroker(Protocol):
    """Ask the broker about topics and groups; safe to share between threads."""

    def topic_id(self, topic: str) -> UUID:
        """Return Kafka's id of *topic*. Raises BrokerUnavailable or NotReady."""

    def log_ends(self, group: str, topic: str, partition: int) -> LogEnds:
        """Return first offset, next offset and the group's committed offset. Raises BrokerUnavailable."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plant:
    """
    What lanes share.

    Attributes:
        app: The processor.
        sources: What each topic that is read carries.
        member: This process, in the tables.
        chunk_time: Seconds after which a lane commits what has run and gives the rest of its chunk back.
        conninfo: How a lane connects to the database.
        skip_unknown: Messages of a type without handler are skipped instead of quarantined.
        missing: What to do when records above the watermark are gone.
        reconnected: Is told that a lane had to connect anew.
        broke: Is told why the process must stop.
        claims: The parked keys that lanes have claimed to drain.
        starts: What is on record as begun though this process has lived through it.
        deadlines: The time-outs of handlers.
        board: What loop and lanes show of themselves.
        partitions: How many partitions each source had at the start; one beyond them is not read. Of others: any.
        runs: The runs of jobs in hand.
        ledger: Connections on which bodies of jobs keep what they want to keep.
        job_lease: Seconds that the lease of a job runs on without being renewed.
    """

    app: Processor
    sources: Mapping[str, ReadTopic]
    member: UUID
    conninfo: str
    store: Store
    decoder: Decodes
    copies: SendsCopies
    broker: AsksBroker
    outbox: Outbox
    skip_unknown: bool = False
    chunk_time: float = 0.2
    missing: MissingRecords = MissingRecords.STOP
    telemetry: Telemetry = NO_TELEMETRY
    clock: Clock = SYSTEM_CLOCK
    chance: Chance = SYSTEM_CHANCE
    signal: Signal = no_signal
    log: Log = field(default_factory=lambda: logger("processor"))
    reconnected: Callable[[], None] = lambda: None
    broke: Callable[[str], None] = lambda why: None  # noqa: ARG005 its name says what it is
    claims: Claims = field(default_factory=Claims)
    starts: Starts = field(default_factory=Starts)
    deadlines: Deadlines = field(default_factory=lambda: Deadlines(SYSTEM_CLOCK))
    board: Board = field(default_factory=lambda: Board(SYSTEM_CLOCK))
    partitions: Mapping[str, int] = field(default_factory=dict)
    runs: Runs = field(default_factory=Runs)
    job_lease: float = 30.0
    ledger: Ledger = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(
            self, "ledger", Ledger(self.conninfo)
        )  # the way that dataclasses have for a frozen field made here
