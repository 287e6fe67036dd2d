"""What happened: the words in which the relay's shell tells its core."""

from collections.abc import Sequence
from dataclasses import dataclass

from packhorse.relay.deciding.events_release import ReleaseEvent
from packhorse.relay.deciding.events_stream import StreamEvent
from packhorse.relay.holds import Fault, Hold
from packhorse.relay.model import Batch, Position


@dataclass(frozen=True, slots=True)
class Started:
    """The process runs; nothing else is known."""


@dataclass(frozen=True, slots=True)
class Waited:
    """A pause is over, or was cut short."""


@dataclass(frozen=True, slots=True)
class StopAsked:
    """Somebody asked for a clean stop."""


# --- the lease and the table


@dataclass(frozen=True, slots=True)
class Owned:
    """
    This process owns the shard; all of it was read under its own token.

    Attributes:
        position, holds: How far the outbox is published, and what is left out.
        deadline: End of the lease.
        trouble: What the table says is wrong.
        orders: Count of the orders that people left, these included.
        finish: Take no new target: the shards are about to change.
        mode: How the table says that the outbox is read.
    """

    position: Position
    deadline: float
    trouble: str | None = None
    holds: tuple[Hold, ...] = ()
    orders: int = 0
    finish: bool = False
    mode: str = "polling"


@dataclass(frozen=True, slots=True)
class OwnedElsewhere:
    """Another process holds the lease."""


@dataclass(frozen=True, slots=True)
class Renewed:
    """The lease now ends at `deadline` (this machine's monotonic clock); so many orders stand in the table."""

    deadline: float
    orders: int = 0


@dataclass(frozen=True, slots=True)
class OwnerChanged:
    """A write was refused: the token in the table is not ours."""


@dataclass(frozen=True, slots=True)
class OrdersRead:
    """What the table says of holds and of finishing, and how many orders that takes in."""

    holds: tuple[Hold, ...]
    finish: bool
    orders: int


@dataclass(frozen=True, slots=True)
class Saved:
    """The position and the holds are in the table."""


@dataclass(frozen=True, slots=True)
class TroubleRecorded:
    """The table says what is wrong, or that nothing is."""


@dataclass(frozen=True, slots=True)
class ModeRecorded:
    """The table says how the outbox is read."""


@dataclass(frozen=True, slots=True)
class LagMeasured:
    """The gauges of what waits are up to date."""


@dataclass(frozen=True, slots=True)
class DatabaseFailed:
    """
    A statement failed.

    Attributes:
        connected: False when the connection is gone, and with it all that was known through it.
    """

    reason: str
    connected: bool


@dataclass(frozen=True, slots=True)
class Released:
    """The lease is given back."""


# --- rows by polling, and their way to the broker


@dataclass(frozen=True, slots=True)
class Woken:
    """Somebody says that rows were committed."""


@dataclass(frozen=True, slots=True)
class Fetched:
    """Rows came, or none."""

    batch: Batch


@dataclass(frozen=True, slots=True)
class LogFlushed:
    """Whether the log is on disk up to the position that was asked about."""

    reached: bool


@dataclass(frozen=True, slots=True)
class Sent:
    """The client took the first `count` of the rows that it was given, and will deliver them in order."""

    count: int


@dataclass(frozen=True, slots=True)
class Confirmed:
    """The broker has confirmed every row sent so far."""


@dataclass(frozen=True, slots=True)
class Unconfirmed:
    """Confirmations are still missing; nothing failed."""


@dataclass(frozen=True, slots=True)
class Refused:
    """
    Sending stopped; `sent` of the rows given went before.

    Attributes:
        fault: The row, or the topic of it, that can't be sent; it was not handed over. None: nothing is to blame.
        broken: A report said that rows failed, or the client is beyond use.
    """

    fault: Fault | None
    reason: str
    broken: bool
    sent: int = 0


@dataclass(frozen=True, slots=True)
class SenderRenewed:
    """
    The client was made anew; nothing is on its way any more.

    Attributes:
        fault: The first row that a report said failed, or the topic of those that did.
        silent: Partitions of which nothing was confirmed while rows of others were.
    """

    fault: Fault | None = None
    silent: Sequence[Fault] = ()


@dataclass(frozen=True, slots=True)
class BrokerSeen:
    """The broker answers, and says which partitions can't be written to."""

    unreachable: Sequence[Fault]


@dataclass(frozen=True, slots=True)
class BrokerAway:
    """No broker answers."""


Event = (
    Started
    | Waited
    | StopAsked
    | Owned
    | OwnedElsewhere
    | Renewed
    | OwnerChanged
    | OrdersRead
    | Saved
    | TroubleRecorded
    | ModeRecorded
    | LagMeasured
    | DatabaseFailed
    | Released
    | Woken
    | Fetched
    | LogFlushed
    | Sent
    | Confirmed
    | Unconfirmed
    | Refused
    | SenderRenewed
    | BrokerSeen
    | BrokerAway
    | ReleaseEvent
    | StreamEvent
)
