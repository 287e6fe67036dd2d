"""What the relay needs from the outside: the outbox's database, the broker, the lease keeper, and named signals."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar
from uuid import UUID

from packhorse.relay.deciding.commands import Save
from packhorse.relay.holds import Fault, Hold, Leg, Scope
from packhorse.relay.identity.judge import Verdict
from packhorse.relay.model import Batch, Position, Row

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ownership:
    """
    What the relay's row said when this process took or kept the lease.

    Attributes:
        position: How far the outbox is published.
        epoch: Grows by one with each take-over.
        trouble: What the row says is wrong.
        verdict: What the server is to the one that the position was saved on; None: nobody asked.
        holds: What is left out.
        orders: Count of people's orders, all taken into account here.
        finish: Take no new target.
        mode: How the row says that the outbox is read.
        shard, shards: Which shard of how many.
    """

    position: Position
    epoch: int
    trouble: str | None
    verdict: Verdict | None = None
    holds: tuple[Hold, ...] = ()
    orders: int = 0
    finish: bool = False
    mode: str = "polling"
    shard: int = 0
    shards: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Orders:
    """What people want of the owner; fields as in Ownership."""

    holds: tuple[Hold, ...]
    orders: int
    finish: bool


class Outbox(Protocol):
    """
    The tables outbox and relay, through one connection.

    `own` connects when there is no connection. Every other method raises DatabaseUnavailable then: what was read through a
    connection is void without it, and only `own` reads it again. All block for at most the time-out of an answer, and raise
    DatabaseUnavailable (the connection is gone), StatementFailed (it is still good) or NotReady (a table or right is missing).
    """

    def own(self, token: UUID, owner: str, lease: float) -> Ownership | None:
        """Take the lease when it is free, over or already *token*'s, for *lease* seconds; None: somebody else has it."""

    def fetch(self, position: Position, limit: int) -> Batch:
        """
        Return at most *limit* rows behind *position* in seq order.

        Without a target in *position* the batch's target is this statement's own snapshot.
        """

    def log_reached(self, until: str) -> bool:
        """Tell whether the write-ahead log is on disk up to *until*."""

    def flush_log(self) -> None:
        """Commit a small write with synchronous_commit on: all of the log before it is on disk when this returns."""

    def fetch_held(self, scope: Scope, leg: Leg, limit: int) -> Batch:
        """
        Return at most *limit* rows of *scope* behind the leg's start, in seq order, without those that a person discarded.

        A look goes only so far: the batch's `reach` says how far; `complete`: to the end of the leg. Rows of other
        partitions may be among them.
        """

    def orders(self) -> Orders:
        """Return the holds and people's orders."""

    def save(self, token: UUID, save: Save) -> bool:
        """Do *save* durably, all of it or nothing; False when *token* or the old position is not there."""

    def record_mode(self, token: UUID, mode: str, cause: str) -> bool:
        """Write how the outbox is read; False when *token* is not there."""

    def record_trouble(self, token: UUID, text: str | None) -> bool:
        """Write what is wrong; False when *token* is not there."""

    def lag(self, position: Position) -> tuple[int, float]:
        """Return how many committed rows are not behind *position*, counted up to a bound, and the oldest one's age in seconds."""

    def release(self, token: UUID) -> None:
        """Give the lease back at once, if it is *token*'s."""

    def close(self) -> None:
        """Drop the connection; never raises, never blocks."""


@dataclass(frozen=True, slots=True)
class Handed:
    """
    The client took the first `count` rows.

    Attributes:
        count: May be fewer than given when the client had no room for a while.
        fault: Set when the row behind them can't be sent; it was not handed over.
    """

    count: int
    fault: Fault | None = None


@dataclass(frozen=True, slots=True)
class Failed:
    """
    A row that was handed over was refused, or the client is beyond use; what stands behind it may not have arrived.

    Attributes:
        fault: Whose fault it is: the first such row in the order of handing over, of those that the broker refused
            together, or the topic of all of them; None when neither is to blame.
        reason: What the client says.
        silent: Partitions of which nothing was confirmed while rows of others were; filled by `renew`.
        fenced: Another relay has taken the name that this one sends under: it owns the shard by now, whatever the lease says.
    """

    fault: Fault | None
    reason: str
    silent: Sequence[Fault] = ()
    fenced: bool = False


class Broker(Protocol):
    """
    The topics, through one client that keeps the order of each partition.

    Raises BrokerUnavailable when a topic's limits can't be asked for.
    """

    def send(self, rows: Sequence[Row]) -> Handed:
        """
        Hand *rows* to the client in order; returns before they are delivered.

        Blocks for a short while when the client has no room, then returns what it took.
        """

    def confirmed(self, patience: float) -> bool:
        """Wait up to *patience* seconds; True when the broker has confirmed every row handed over."""

    def failed(self) -> Failed | None:
        """Return the first failure since the client was made."""

    def unreachable(self) -> Sequence[Fault]:
        """
        Return the partitions, of those that unconfirmed rows go to, that have no leader or too few replicas in sync, by the
        broker's own word.

        Raises:
            BrokerUnavailable: No broker answers.
        """

    def probe(self, scope: Scope) -> str | None:
        """Say what still keeps *scope* from being sent to: topic, right, leader; None: nothing that the broker tells."""

    def halt(self) -> None:
        """Drop what has not left yet; may be called from any thread."""

    def renew(self, patience: float) -> Failed | None:
        """Await reports up to *patience* seconds, drop the rest, make the client anew; return what had failed."""

    def close(self) -> None:
        """Drop everything and close; never blocks for long."""


class Keeper(Protocol):
    """Keeps a lease apart from the relay's own loop."""

    def keep(self, token: UUID, deadline: float) -> None:
        """Begin to renew the lease of *token*, which ends at *deadline*."""

    def deadline(self) -> float | None:
        """
        Return until when the lease runs; None when a renewal was refused: somebody else owns the shard.

        Raises:
            PackhorseError: Nobody renews any more; the process must end.
        """

    def orders(self) -> int:
        """Return how many orders of people the last renewal saw; 0 before the first."""

    def drop(self) -> None:
        """Stop renewing."""


class Pending(Protocol[T_co]):
    """Work that runs meanwhile."""

    def result(self) -> T_co:
        """Wait for its end; return what it returned or raise what it raised."""

    def done(self) -> bool:
        """Tell whether it has ended."""


class Pace(Protocol):
    """How the relay waits, and works on two things at once."""

    def pause(self, seconds: float) -> None:
        """Wait *seconds*, or until `wake`."""

    def wake(self) -> None:
        """End the pause that runs, or the next one; may be called from any thread and from a signal handler."""

    def begin(self, fetch: Callable[[], Batch]) -> Pending[Batch]:
        """Run *fetch* meanwhile; one at a time."""

    def aside(self, work: Callable[[], T]) -> Pending[T]:
        """Run *work*, which may take long, beside the fetches; one at a time."""


class Probe(Protocol):
    """Hears of named points in the relay's way; tests kill the process there."""

    def reached(self, point: str) -> None:
        """Hear that the relay is at *point*: owned, fetched, sent, confirmed, saved, released."""


class NoProbe:
    """Hear nothing."""

    def reached(self, point: str) -> None:
        """Do nothing."""
