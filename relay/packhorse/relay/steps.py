"""What happened (events) and what to do (commands): the words between the relay's core and its shell."""

from collections.abc import Sequence
from dataclasses import dataclass

from packhorse.relay.holds import Fault
from packhorse.relay.model import Batch, Position, Row

# --- events: what happened -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Started:
    """The process runs; nothing else is known."""


@dataclass(frozen=True, slots=True)
class Waited:
    """A pause is over, or was cut short."""


@dataclass(frozen=True, slots=True)
class StopAsked:
    """Somebody asked for a clean stop."""


@dataclass(frozen=True, slots=True)
class Owned:
    """This process owns the shard; `position` was read under its own token, and the lease ends at `deadline`."""

    position: Position
    deadline: float
    trouble: str | None = None


@dataclass(frozen=True, slots=True)
class OwnedElsewhere:
    """Another process holds the lease."""


@dataclass(frozen=True, slots=True)
class Renewed:
    """The lease now ends at `deadline` (this machine's monotonic clock)."""

    deadline: float


@dataclass(frozen=True, slots=True)
class OwnerChanged:
    """A write was refused: the token in the table is not ours."""


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
    """The client took the first `count` rows of the batch in hand, and will deliver them in order."""

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
    Sending stopped; `sent` rows of the batch in hand went before.

    Attributes:
        fault: The row that can't be sent; it was not handed over. None: no row is to blame.
        broken: A report said that rows failed, or the client is beyond use.
    """

    fault: Fault | None
    reason: str
    broken: bool
    sent: int = 0


@dataclass(frozen=True, slots=True)
class SenderRenewed:
    """The client was made anew; nothing is on its way any more. `fault` is the first row that a report said failed."""

    fault: Fault | None = None


@dataclass(frozen=True, slots=True)
class Saved:
    """The position is in the table."""


@dataclass(frozen=True, slots=True)
class TroubleRecorded:
    """The table says what is wrong, or that nothing is."""


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


Event = (
    Started
    | Waited
    | StopAsked
    | Owned
    | OwnedElsewhere
    | Renewed
    | OwnerChanged
    | Fetched
    | LogFlushed
    | Sent
    | Confirmed
    | Unconfirmed
    | Refused
    | SenderRenewed
    | Saved
    | TroubleRecorded
    | LagMeasured
    | DatabaseFailed
    | Released
)


# --- commands: what to do --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Own:
    """Take the lease, or keep it, and read the position, in one write; gives Owned, OwnedElsewhere."""


@dataclass(frozen=True, slots=True)
class Fetch:
    """Read the rows behind `position`; gives Fetched."""

    position: Position


@dataclass(frozen=True, slots=True)
class LookAtLog:
    """Ask whether the log is flushed up to `until`; gives LogFlushed."""

    until: str


@dataclass(frozen=True, slots=True)
class FlushLog:
    """Commit a small write, so that the log is flushed; gives LogFlushed(True)."""


@dataclass(frozen=True, slots=True)
class Send:
    """Hand `rows` to the client in order; begin to fetch behind `ahead` meanwhile; gives Sent, Refused."""

    rows: Sequence[Row]
    ahead: Position | None


@dataclass(frozen=True, slots=True)
class Confirm:
    """Wait up to `patience` until the broker has confirmed all that was sent; gives Confirmed, Unconfirmed, Refused."""

    patience: float


@dataclass(frozen=True, slots=True)
class RenewSender:
    """
    Drop what is on its way, close the client and make it anew; unless `at_once`, await reports within a bound first.

    Gives SenderRenewed.
    """

    at_once: bool


@dataclass(frozen=True, slots=True)
class Save:
    """Replace `old` by `new` in the table, if token and old value stand there; `rows` more are published; gives Saved, OwnerChanged."""

    old: Position
    new: Position
    rows: int


@dataclass(frozen=True, slots=True)
class RecordTrouble:
    """Write to the table what is wrong; None: nothing is; gives TroubleRecorded, OwnerChanged."""

    text: str | None


@dataclass(frozen=True, slots=True)
class MeasureLag:
    """Count what is not behind `position`, for the gauges; gives LagMeasured."""

    position: Position


@dataclass(frozen=True, slots=True)
class Wait:
    """Do nothing for `seconds`, or until something else happens; gives Waited."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Release:
    """Give the lease back; gives Released."""


@dataclass(frozen=True, slots=True)
class Leave:
    """End."""


Command = (
    Own
    | Fetch
    | LookAtLog
    | FlushLog
    | Send
    | Confirm
    | RenewSender
    | Save
    | RecordTrouble
    | MeasureLag
    | Wait
    | Release
    | Leave
)
