"""All that a member keeps of one assigned partition."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from packhorse.processor.member.fence import Fence
from packhorse.processor.member.queue import Queue, Waiting
from packhorse.processor.member.suspects import Suspects
from packhorse.processor.partition.state import PartitionState, Phase
from packhorse.processor.record import Record, Stream


@dataclass(slots=True)
class Slot:
    """
    One partition.

    Attributes:
        state: What is decided on.
        stream: What it carries; None until it was opened.
        topic_age: How many other topics of that name the group has known.
        queue: Its records.
        fence: Goes up when what runs counts for nothing any more.
        suspects: Records that share no chunk.
        flights: What is with lanes, by the number of the job.
        tried: Offsets that were handed over before.
        careful: Chunks to come whose members get savepoints from the start.
        dry: The queue had nothing that may run at the last look.
        arriving: Records that have just been fetched.
        seek: Where the client is still to be sent to.
    """

    state: PartitionState
    stream: Stream | None = None
    topic_age: int = 0
    queue: Queue = field(default_factory=Queue)
    fence: Fence = field(default_factory=Fence)
    suspects: Suspects = field(default_factory=Suspects)
    flights: dict[int, Sequence[Waiting]] = field(default_factory=dict)
    tried: set[int] = field(default_factory=set)
    careful: int = 0
    dry: bool = False
    arriving: Sequence[Record] = ()
    seek: int | None = None

    @property
    def rests(self) -> bool:
        """Return whether time changes nothing: all that is dealt with is durable and committed, and nothing waits for a time."""
        state = self.state
        settled = state.committed == state.position == self.queue.end
        return settled and state.phase is Phase.READING and not state.paused
