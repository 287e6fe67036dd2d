"""What happened to the stream, or on the way to it."""

from dataclasses import dataclass

from packhorse.relay.cdc.stream import Cause, Slot, SlotState, StreamBatch
from packhorse.relay.model import Snapshot


@dataclass(frozen=True, slots=True)
class SlotAsked:
    """The slot is being made ready; SlotReady or StreamFailed comes when that is done."""


@dataclass(frozen=True, slots=True)
class SlotReady:
    """The slot stands, and a fence behind it is drawn."""

    slot: Slot


@dataclass(frozen=True, slots=True)
class StreamStarted:
    """Rows come from the slot."""


@dataclass(frozen=True, slots=True)
class Streamed:
    """Rows came from the stream, or none."""

    batch: StreamBatch


@dataclass(frozen=True, slots=True)
class Marked:
    """A snapshot, and the position of the log behind everything visible in it."""

    snapshot: Snapshot
    at: int


@dataclass(frozen=True, slots=True)
class SlotSeen:
    """How the slot stands."""

    slot: SlotState


@dataclass(frozen=True, slots=True)
class StreamFailed:
    """The stream can't be had, or broke; it is stopped."""

    cause: Cause
    reason: str


@dataclass(frozen=True, slots=True)
class StreamStopped:
    """The stream is left."""


StreamEvent = (
    SlotAsked | SlotReady | StreamStarted | Streamed | Marked | SlotSeen | StreamFailed | StreamStopped
)
