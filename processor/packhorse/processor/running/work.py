"""What a chunk works on, what is known of it, and what becomes of it; values alone."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from types import MappingProxyType
from typing import NamedTuple
from uuid import UUID

from packhorse.core.message import TypedMessage
from packhorse.processor.handlers import Handler
from packhorse.processor.jobs.spec import JobSpec
from packhorse.processor.outcomes import Outcome, Reason
from packhorse.processor.record import Delivery, Stream


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """
    One chunk of one partition.

    Attributes:
        stream: The topic that it is read from.
        partition: The partition.
        deliveries: In offset order for each key, at least one.
        keys: The hash of each one's key, None where order does not bind it.
        position, leader_epoch: The watermark as it was last known.
        topic_age: How many other topics of that name the group has known.
        charged: Why the one member is charged a failed attempt instead of being run.
        contended: The one member may not end in contention once more: then it is charged.
        suspected: Something is known against the one member, or against a follower behind it: followers run one by one.
        marked: The one member may have killed a process: its start is put on record.
        most_starts: Processes that may have died of it before it is stopped.
        careful: Members get savepoints from the start.
        tried: Offsets that were handed over before in this ownership.
        probe: The handler of which one message tries whether it may go on, the one member or a follower behind it: a failure
            is not charged. None: it is no probe.
        shut: Names of handlers that are stopped: no follower of theirs is run, but one as the probe.
        is_async: The lane is one of `async def` handlers.
        paced: They are jobs of a type that declares nothing: none waits for long for another.
        ended: They are jobs whose bodies have ended: that is recorded, and nothing is run.
        time: Seconds after which the chunk is cut: what has run is committed, the rest comes again.
    """

    stream: Stream
    partition: int
    deliveries: Sequence[Delivery]
    keys: Sequence[str | None] = ()
    position: int
    leader_epoch: int | None
    topic_age: int = 0
    charged: Reason | None = None
    contended: bool = False
    suspected: bool = False
    marked: bool = False
    most_starts: int = 3
    careful: bool = False
    tried: frozenset[int] = frozenset()
    probe: str | None = None
    shut: frozenset[str] = frozenset()
    is_async: bool = False
    paced: bool = False
    ended: bool = False
    time: float = 0.2

    def key_of(self, at: int) -> str | None:
        """Return the hash of the key of delivery number *at*."""
        return self.keys[at] if self.keys else None


class InboxRow(NamedTuple):
    """
    What the inbox knows of a message.

    Attributes:
        outcome: Its outcome.
        attempt: Of `retry` and `parked` the attempt to come, else the last one.
        due_in: Of `retry` the seconds until it is due, by the database's clock.
        age: Seconds since the first failure, by the database's clock.
        state: State of its row in quarantined_message, if there is one.
        copied: The copy of what is recorded (the attempt to come, the quarantine) is known to be confirmed.
        spent: Seconds charged to the budget: waits that were planned and runs that failed, not what an outage added.
        digest: Digest of the payload that the row was written for, hex; None in rows of before, where it is unknown.
        tier: Of `retry` the tier that its copy waits in, as in the topic's name.
    """

    outcome: Outcome
    attempt: int
    due_in: float
    age: float
    state: str | None
    copied: bool
    spent: float = 0.0
    digest: str | None = None
    tier: str | None = None


class Known(NamedTuple):
    """
    What the database knows of a batch.

    Attributes:
        position: The watermark, None without a row.
        same: The row was written by this incarnation of the server.
        now: The database's clock.
        rows: Inbox rows by message id.
        parked: Hashes of those keys, of the ones that were asked for, that are parked, with the id of their head; None
            where a key is paused or has no head.
    """

    position: int | None
    same: bool
    now: datetime | None
    rows: dict[UUID, InboxRow]
    parked: Mapping[str, UUID | None] = MappingProxyType({})


class Failure(StrEnum):
    """What kind of end a handler's run came to."""

    TEMPORARY = "temporary"
    LATER = "later"
    DOWN = "down"
    PERMANENT = "permanent"
    SKIP = "skip"
    CONTENTION = "contention"
    CONNECTION = "connection"
    BROKEN = "broken"
    STOP = "stop"
    GIVEN_UP = "given-up"


class Ran(NamedTuple):
    """
    How one run of a handler ended.

    Attributes:
        failure: None when it returned.
        reason: Reason code of the failure.
        error: Class and place, and the text where that is allowed; capped.
        touched: It asked for the transaction, so there may be something to roll back.
        committed: A broken transaction was committed, not rolled back.
        after: Of `temporary` and `later`: seconds that the handler wants to wait; None for the policy's next delay.
        least: Of `temporary`: seconds that a server wants its callers to wait; the policy's delay holds when it is longer.
        took: Seconds that it ran.
    """

    failure: Failure | None = None
    reason: str = ""
    error: str = ""
    touched: bool = True
    committed: bool = False
    after: float | None = None
    least: float = 0.0
    took: float = 0.0


RETURNED = Ran()
RETURNED_UNTOUCHED = Ran(touched=False)


@dataclass(slots=True)
class Member:
    """
    One delivery of a batch that is not a duplicate.

    Attributes:
        delivery: The delivery.
        key: Hash of its key; None where order does not bind it.
        head: Its key is parked, with it as the head.
        row: What the inbox knew of it.
        handler: What runs for it; None when nothing does.
        message: What it decoded to; None for a tombstone.
        result: How it ended, once that is decided; such a member is not run again.
    """

    delivery: Delivery
    key: str | None = None
    head: bool = False
    row: InboxRow | None = None
    handler: Handler | None = None
    message: TypedMessage | None = None
    result: "Result | None" = None

    @property
    def attempt(self) -> int:
        """Return the number of the attempt that is to be made, from 1."""
        return 1 if self.row is None else self.row.attempt

    @property
    def job(self) -> JobSpec | None:
        """Return what is declared of its type of jobs; None when it is none."""
        return None if self.handler is None else self.handler.job

    @property
    def redriven(self) -> bool:
        """Return whether a person ordered this attempt."""
        return self.row is not None and self.row.state == "redriven"


class Result(NamedTuple):
    """
    What is to be recorded of one member.

    Attributes:
        delivery: The delivery.
        outcome: done, skipped, retry, parked or quarantine.
        attempt: The attempt that was made, 0 when none was.
        reason, error: Why it failed or stopped.
        failed_as: Reason of the failed attempt, when one was made.
        delay: Of `retry` the seconds to wait.
        row: The inbox row that this result replaces; None when there must be none yet.
        again: The same delivery was counted before.
        key: Hash of its key; None where order does not bind it.
        parks: Its key is parked, with it as the head: anew, or still. One that stops without it lets a parked key go on.
        tier: Of `retry` the tier that its copy goes to, as in the topic's name.
        spent: Of `retry` the seconds charged to its budget so far, this wait included.
        digest: Digest of the payload, hex.
    """

    delivery: Delivery
    outcome: Outcome
    attempt: int
    reason: str | None = None
    error: str | None = None
    failed_as: str | None = None
    delay: float = 0.0
    row: InboxRow | None = None
    again: bool = False
    key: str | None = None
    parks: bool = False
    tier: str | None = None
    spent: float = 0.0
    digest: str | None = None


class Claim(NamedTuple):
    """A claim on a parked key, to drain its followers: the key's hash, and the token that no other claim of it has."""

    key: str
    token: int


class ClaimedKeys(NamedTuple):
    """The claims of those keys, of several that were asked for, that were had."""

    claims: Sequence[Claim]


class FirstFollowers(NamedTuple):
    """
    The first followers of several claimed keys.

    Attributes:
        now: The database's clock; None when there is none.
        found: By key; a key that has none, or whose bytes are too many beside the others', is not there.
    """

    now: datetime | None
    found: "Mapping[str, tuple[Delivery, InboxRow]]"


class Claimed(NamedTuple):
    """
    What a claim of a parked key came to.

    Attributes:
        claim: None when it was not had.
        now: The database's clock.
        followers: The first of them in order, each with its inbox row.
        busy: Seconds that another's lease runs on; 0 when that is not why.
        head: The message that the key waits for; None when it waits for none, is paused, or is not parked.
    """

    claim: Claim | None
    now: datetime | None = None
    followers: Sequence[tuple[Delivery, InboxRow]] = ()
    busy: float = 0.0
    head: UUID | None = None


class Released(NamedTuple):
    """
    How those keys stand that were asked to be let go; what is named nowhere is not parked (any more), or is paused.

    Attributes:
        waiting: Their head is finished, and followers wait: to be drained, sorted.
        busy: Seconds that another's lease runs on, by key.
        heads: Messages that keys wait for: see that their copies stand.
    """

    waiting: Sequence[str] = ()
    busy: Mapping[str, float] = MappingProxyType({})
    heads: Sequence[UUID] = ()
