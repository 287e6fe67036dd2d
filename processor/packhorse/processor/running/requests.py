"""What a chunk asks of its lane. Each says what it gets back; an infrastructure error is thrown into the chunk."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple
from uuid import UUID

from packhorse.core.message import TypedMessage
from packhorse.processor.jobs.deciding import JobRow
from packhorse.processor.jobs.runs import JobRun
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
    """
    Commit. Raises Contention when the database can't, GivenUp when the partition is another's by now: unless it records the end
    of *runs*, whose leases have said in the transaction that it may, whoever owns the partition.
    """

    runs: Sequence[JobRun] = ()


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


class ClaimJobs(NamedTuple):
    """
    Take the members' jobs under leases, as far as they may run; gets HadJob by job id. In a transaction of its own.

    *in_hand* is put on record before.
    """

    members: Sequence[Member]
    in_hand: Sequence[int] = ()


class LookUpJobs(NamedTuple):
    """Ask how jobs stand that were not had; gets JobRow by job id."""

    ids: Sequence[UUID]


class RunJob(NamedTuple):
    """Run the body of the member's job under its lease, with no transaction open; gets a Ran."""

    member: Member
    run: JobRun


class RunWrites(NamedTuple):
    """Do, in the transaction, what the job's body wants written with its success; gets a Ran."""

    member: Member
    run: JobRun


class FinishJobs(NamedTuple):
    """
    Record in the transaction how jobs have ended, each with the run under whose lease it did, None without one; gets the ids of
    those that were theirs to end.
    """

    ends: Sequence[tuple[Result, JobRun | None]]


class FindDoubts(NamedTuple):
    """Ask for effects of jobs of which nobody knows whether they have happened; gets their names by job."""

    ids: Sequence[UUID]


class RecordJobs(NamedTuple):
    """
    Record how jobs have ended that are done at their first attempt and want nothing written, each with its run and its message, in a
    transaction of its own; gets the ids of those that were theirs to end, or False when another was first with a message of theirs.
    """

    ends: Sequence[tuple[Result, JobRun]]


class ReleaseJobs(NamedTuple):
    """Give jobs back that are not run to their end, in a transaction of its own; never raises."""

    runs: Sequence[JobRun]
    reason: str


class HadJob(NamedTuple):
    """
    A job that was had.

    Attributes:
        run: Its run, entered; one whose body has ended already, in an earlier ownership of the partition, is to be recorded.
        input: Its input, framed; None where it was erased.
        age: Seconds since it was accepted, or due.
    """

    run: JobRun
    input: bytes | None
    age: float


JobRows = Mapping[UUID, JobRow]
HadJobs = Mapping[UUID, HadJob]


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
    | ClaimJobs
    | LookUpJobs
    | RunJob
    | RunWrites
    | FinishJobs
    | FindDoubts
    | RecordJobs
    | ReleaseJobs
)
