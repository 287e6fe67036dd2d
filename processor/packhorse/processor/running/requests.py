"""What a chunk asks of its lane. Each says what it gets back; an infrastructure error is thrown into the chunk."""

from collections.abc import Sequence
from typing import NamedTuple
from uuid import UUID

from packhorse.core.message import TypedMessage
from packhorse.processor.record import Delivery
from packhorse.processor.running.work import Claim, Member, Result


class LookUp(NamedTuple):
    """Ask what the database knows of these messages and, by their hashes, of these keys; gets a Known."""

    ids: list[UUID]
    keys: Sequence[str] = ()


class MarkStart(NamedTuple):
    """Put on record, durably, that the message at *offset* starts alone; gets how often it has, this time included."""

    offset: int


class Decode(NamedTuple):
    """Decode a payload; gets the message, or a MessageFault. Raises RegistryUnavailable."""

    payload: bytes
    message: type[TypedMessage]


class DecodeAll(NamedTuple):
    """
    Decode payloads, each for its class; gets for each the message, or a MessageFault. Raises RegistryUnavailable.

    *in_hand* is put on record before: a payload may kill the process while it is decoded.
    """

    payloads: Sequence[tuple[bytes, type[TypedMessage]]]
    in_hand: Sequence[int] = ()


class Begin(NamedTuple):
    """Begin a transaction; *in_hand* are the offsets that whoever comes after a crash is to look at, put on record before it."""

    in_hand: Sequence[int] = ()


class Savepoint(NamedTuple):
    """Set the savepoint to which the next member's failure rolls back."""


class RollBackToSavepoint(NamedTuple):
    """Undo what the last member did."""


class RunHandler(NamedTuple):
    """
    Run the member's handler in the transaction; gets a Ran. Raises StatementFailed when what another member has queued fails;
    with *sync* what this one queues is waited for, so that its failure is its own.
    """

    member: Member
    sync: bool = False


class RunBatch(NamedTuple):
    """Run the members' one batch handler in the transaction; gets a Ran for each, or one Ran when the handler failed."""

    members: list[Member]


class Write(NamedTuple):
    """
    Record results in the transaction, of followers of one key under their *claim*, of followers of several keys, one of each,
    under their *claims*; gets False when another owner was first with one of them, a key is not parked any more, or a claim is
    another's by now. Under *claims* it lets go of keys behind which nothing waits any more, and gets a Released.
    """

    results: list[Result]
    claim: Claim | None = None
    claims: Sequence[Claim] = ()


class CommitTransaction(NamedTuple):
    """Commit. Raises Contention when the database can't."""


class RollBack(NamedTuple):
    """Roll back; never raises."""


class CountDeliveries(NamedTuple):
    """Count one more delivery for each of these messages, in a transaction of its own."""

    ids: list[UUID]


class SendKept(NamedTuple):
    """
    Produce those copies of these messages, to tiers and quarantine, that are not known to be confirmed; await the broker,
    record where each stands. Raises BrokerUnavailable.
    """

    ids: Sequence[UUID]


class SendRound(NamedTuple):
    """Produce these copies once more, to the longest tier: their wait is longer than it. Raises BrokerUnavailable."""

    deliveries: Sequence[Delivery]


class ReleaseKeys(NamedTuple):
    """
    Let go of those keys whose head is finished and behind which nothing waits, in a transaction; gets a Released.

    *held* are claims of ours: such a key is drained by nobody else.
    """

    keys: Sequence[str]
    held: Sequence[Claim] = ()


class ClaimKey(NamedTuple):
    """Claim a key to drain it, anew when *held* is ours; gets a Claimed. Each in a transaction of its own."""

    key: str
    held: Claim | None = None


class ClaimKeys(NamedTuple):
    """Claim keys to drain them together; gets a ClaimedKeys."""

    keys: Sequence[str]


class GetFirstFollowers(NamedTuple):
    """Ask for the first follower of each of these claimed keys; gets a FirstFollowers."""

    keys: Sequence[str]


class LeaveKey(NamedTuple):
    """End a claim; the key stays parked."""

    claim: Claim


class LeaveKeys(NamedTuple):
    """End claims; the keys stay parked."""

    claims: Sequence[Claim]


Request = (
    LookUp
    | Decode
    | DecodeAll
    | MarkStart
    | Begin
    | Savepoint
    | RollBackToSavepoint
    | RunHandler
    | RunBatch
    | Write
    | CommitTransaction
    | RollBack
    | CountDeliveries
    | SendKept
    | SendRound
    | ReleaseKeys
    | ClaimKey
    | ClaimKeys
    | GetFirstFollowers
    | LeaveKey
    | LeaveKeys
)
