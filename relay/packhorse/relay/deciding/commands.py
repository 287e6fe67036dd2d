"""What to do: the words in which the relay's core tells its shell; each gives the events that it names, or DatabaseFailed."""

from collections.abc import Sequence
from dataclasses import dataclass

from packhorse.relay.cdc.stream import Cause
from packhorse.relay.holds import Hold, Leg, Scope
from packhorse.relay.model import Position, Row, Snapshot


@dataclass(frozen=True, slots=True)
class Own:
    """Take the lease, or keep it, and read position and holds, in one transaction; gives Owned, OwnedElsewhere."""


@dataclass(frozen=True, slots=True)
class ReadOrders:
    """Read the holds and what people ordered; gives OrdersRead."""


@dataclass(frozen=True, slots=True)
class HoldChange:
    """What becomes of one hold in a save; None: it ends."""

    scope: Scope
    hold: Hold | None


@dataclass(frozen=True, slots=True)
class Save:
    """
    Replace `old` by `new` in the table and change the holds, if token and old value stand there; gives Saved, OwnerChanged.

    Attributes:
        rows: So many more are published.
    """

    old: Position
    new: Position
    rows: int
    holds: Sequence[HoldChange] = ()


@dataclass(frozen=True, slots=True)
class RecordTrouble:
    """Write to the table what is wrong; None: nothing is; gives TroubleRecorded, OwnerChanged."""

    text: str | None


@dataclass(frozen=True, slots=True)
class RecordMode:
    """Write to the table how the outbox is read from now on, and why; gives ModeRecorded, OwnerChanged."""

    mode: str
    cause: Cause


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


# --- rows by polling, and their way to the broker


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
    """Await reports up to `patience`, drop what is on its way, close the client and make it anew; gives SenderRenewed."""

    patience: float


@dataclass(frozen=True, slots=True)
class LookAtBroker:
    """Ask the broker which partitions of unconfirmed rows can't be written to; gives BrokerSeen, BrokerAway."""


# --- releases of holds, through a second client


@dataclass(frozen=True, slots=True)
class ProbeScope:
    """Ask the broker whether `scope` can be sent to; gives ScopeProbed."""

    scope: Scope


@dataclass(frozen=True, slots=True)
class FetchHeld:
    """Read at most `limit` rows of `scope` behind the leg's start, discarded ones left out; gives HeldFetched."""

    scope: Scope
    leg: Leg
    limit: int


@dataclass(frozen=True, slots=True)
class SendHeld:
    """Hand `rows` to the second client in order; gives HeldSent, HeldRefused."""

    rows: Sequence[Row]


@dataclass(frozen=True, slots=True)
class ConfirmHeld:
    """Wait up to `patience` until all of the release is confirmed; gives HeldConfirmed, HeldUnconfirmed, HeldRefused."""

    patience: float


@dataclass(frozen=True, slots=True)
class RenewReleaser:
    """Await reports up to `patience`, drop what is on its way, close the second client; gives ReleaserRenewed."""

    patience: float


# --- the stream


@dataclass(frozen=True, slots=True)
class PrepareSlot:
    """Begin to make the slot ready, and draw a fence behind it; gives SlotAsked, and SlotReady or StreamFailed later."""


@dataclass(frozen=True, slots=True)
class StartStream:
    """Stream from position `at` of the log, without what is visible in `horizon`; gives StreamStarted, StreamFailed."""

    horizon: Snapshot
    at: int


@dataclass(frozen=True, slots=True)
class ReadStream:
    """Wait up to `patience` for rows; `confirmed` and `ask` as Stream.read; gives Streamed, StreamFailed."""

    patience: float
    confirmed: int
    ask: bool


@dataclass(frozen=True, slots=True)
class MarkHorizon:
    """Take a snapshot, then a position of the log; gives Marked, StreamFailed."""


@dataclass(frozen=True, slots=True)
class LookAtSlot:
    """Ask how the slot stands; gives SlotSeen, StreamFailed."""


@dataclass(frozen=True, slots=True)
class StopStream:
    """Leave the stream; the slot stays, unless `drop`; gives StreamStopped."""

    drop: bool = False


Command = (
    Own
    | ReadOrders
    | Save
    | RecordTrouble
    | RecordMode
    | MeasureLag
    | Wait
    | Release
    | Leave
    | Fetch
    | LookAtLog
    | FlushLog
    | Send
    | Confirm
    | RenewSender
    | LookAtBroker
    | ProbeScope
    | FetchHeld
    | SendHeld
    | ConfirmHeld
    | RenewReleaser
    | PrepareSlot
    | StartStream
    | ReadStream
    | MarkHorizon
    | LookAtSlot
    | StopStream
)
