"""
The port to a stream of committed outbox rows (CDC), and the words that it speaks in.

Positions of the write-ahead log are ints here, so that they compare as they lie in the log.
"""

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from packhorse.core.errors import InfrastructureError
from packhorse.relay.model import Row, Snapshot

SLOT_PREFIX = "packhorse_"
"""How the names of our slots begin."""


class Cause(StrEnum):
    """
    Why the relay's way of reading is what it is; a closed list, for the log, the metric and `relay.mode_cause`.

    Start is how every relay begins, caught up why it streams; the next six say nothing against the stream, the others do.
    """

    START = "start"
    CAUGHT_UP = "caught_up"
    RELEASE = "release"
    FINISH = "finish"
    STOP = "stop"
    OWNER_CHANGED = "owner_changed"
    CLIENT_RENEWED = "client_renewed"
    DATABASE_AWAY = "database_away"
    SLOT_LOST = "slot_lost"
    SLOT_IN_USE = "slot_in_use"
    OVER_BUDGET = "over_budget"
    LAGGING = "lagging"
    STREAM_FAILED = "stream_failed"
    NOT_SET_UP = "not_set_up"


class StreamUnavailable(InfrastructureError):
    """
    The stream can't be had now, or broke; rows are read by polling meanwhile.

    Attributes:
        cause: What is wrong; the text says it for people, with the next step.
    """

    def __init__(self, text: str, *, cause: Cause) -> None:
        super().__init__(text)
        self.cause = cause


@dataclass(frozen=True, slots=True, kw_only=True)
class Slot:
    """
    A slot that stands, and the fence behind it.

    Attributes:
        name: The slot's name.
        fence: A transaction id drawn after the slot stood. A row that is not visible in a horizon whose xmin is past
            the fence was written by a transaction that began after `at`, so a stream from `at` brings it.
        at: Insert position of the log, read before the fence was drawn.
    """

    name: str
    fence: int
    at: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamBatch:
    """
    What the stream brought.

    Attributes:
        rows: Tuples as PostgresOutbox gives them (model.Row): transactions in commit order, inside one in seq order as
            far as one batch goes; a large transaction goes on in the next batch.
        received: Every transaction whose commit lies before this position of the log has been given whole, this batch
            included; never goes back.
    """

    rows: Sequence[Row]
    received: int


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherSlot:
    """A slot of Packhorse in this database that is not the stream's own: left by a rename, or another shard's."""

    name: str
    active: bool
    held_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotState:
    """
    How the slot stands.

    Attributes:
        name: The slot's name.
        exists: False: there is none; the other fields are then empty.
        held_bytes: Log that the server keeps for the slot; None when it keeps none any more.
        lag_bytes: Log behind the confirmed position.
        wal_status: reserved, extended, unreserved or lost, as pg_replication_slots says.
        lost: Why the server gave the slot up; None while it stands.
        active_pid: Server process that reads it; None: nobody.
        others: Other slots of ours, the one that holds most first.
    """

    name: str
    exists: bool
    held_bytes: int | None = None
    lag_bytes: int | None = None
    wal_status: str | None = None
    lost: str | None = None
    active_pid: int | None = None
    others: tuple[OtherSlot, ...] = ()


class Stream(Protocol):
    """
    Committed outbox rows as the server decodes them, through one slot.

    One thread at a time. Every method raises StreamUnavailable, and blocks no longer than the time-out of an answer
    beyond what is said here. After an error of `read` or `mark` the stream is stopped: what was read and not
    yet confirmed comes again after the next `start`.
    """

    def prepare(self) -> Slot:
        """
        Make the slot if it is missing, draw a fence, and move the slot up to where the log was then.

        Making one waits for the transactions that run meanwhile, and moving it reads the log in between: both take up to
        a bound of their own, so that this is called beside the relay's work. No slot is left half-made.
        """

    def start(self, horizon: Snapshot, at: int) -> None:
        """
        Advance the slot to *at* if it stands behind, and stream from there; rows visible in *horizon* are left out.

        Raises StreamUnavailable also when the slot stands ahead of *at*: somebody else confirmed rows.
        """

    def read(self, patience: float, *, limit: int, confirmed: int, ask: bool) -> StreamBatch:
        """
        Wait up to *patience* seconds for rows; return at most *limit*, and no more than memory allows.

        Returns as soon as some are there. *confirmed*, a position up to which the broker has confirmed everything, goes
        back to the server at least once a second: it may forget the log before it. *ask* requests word at once of how
        far the server is, and returns when that came too: `received` then moves without rows.
        """

    def tend(self) -> None:
        """
        Tell the server that we live and what `read` last confirmed, if a second has passed; nothing without a stream.

        Cheap, for a loop that is busy. Never raises: what fails here shows at the next `read`.
        """

    def stop(self) -> None:
        """Leave the stream; the slot stays. Never raises."""

    def mark(self) -> tuple[Snapshot, int]:
        """
        Return the current snapshot and a position of the log read after it, through a connection of its own.

        Once `received` has reached the position, every row visible in the snapshot has been given.
        """

    def held(self) -> SlotState:
        """Return how the slot stands."""

    def drop(self) -> None:
        """Stop and give the slot up, so that the server may forget its log; nothing when there is none."""


def lsn(text: str) -> int:
    """
    Return a position of the log from its text.

    >>> lsn("1/16B3748")
    4318771016
    """
    high, _, low = text.partition("/")
    return (int(high, 16) << 32) | int(low, 16)


def lsn_text(position: int) -> str:
    """
    Return a position of the log as Postgres writes it.

    >>> lsn_text(4318771016)
    '1/16B3748'
    """
    return f"{position >> 32:X}/{position & 0xFFFFFFFF:X}"


def slot_name(schema: str, shard: int, *, database: int) -> str:
    """
    Return the slot's name; one a shard.

    Slots of all databases of a server share one space of names, hence *database*, the database's object id. A schema
    too long for the 63 bytes of a name is cut and told apart by a digest.

    >>> slot_name("packhorse", 0, database=16384)
    'packhorse_packhorse_0_16384'
    """
    end = f"_{shard}_{database}"
    room = 63 - len(SLOT_PREFIX) - len(end)
    if len(schema) > room:
        schema = f"{schema[: room - 9]}_{zlib.crc32(schema.encode()):08x}"
    return f"{SLOT_PREFIX}{schema}{end}"


def publication_name(schema: str) -> str:
    """Return the publication's name; all shards share it. It may have 63 bytes, as the slot's."""
    name = f"{SLOT_PREFIX}{schema}"
    return name if len(name) <= 63 else f"{name[:54]}_{zlib.crc32(name.encode()):08x}"
