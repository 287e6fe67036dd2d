"""What a decision about a partition can order."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Open:
    """Read the watermark and what the coordinator holds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attach:
    """Fetch from *offset*, for the first time in this ownership."""

    offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Seek:
    """Fetch from *offset* from now on."""

    offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Pause:
    """Stop fetching."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Resume:
    """Fetch again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Take:
    """Put the records that just arrived into the buffer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DropBelow:
    """Take the records below *offset* out of the buffer."""

    offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Forget:
    """Empty the buffer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """
    Hand the first *limit* records of the buffer to a lane.

    Attributes:
        position, leader_epoch: The watermark that the lane moves.
        alone: Offset that no other record shares a batch with.
        charged: Offset that is charged a failed attempt instead of being run.
        contended: The batch has one member and may not end in contention once more: then it is charged.
    """

    limit: int
    position: int
    leader_epoch: int | None
    alone: int | None = None
    charged: int | None = None
    contended: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """Tell the coordinator that all below *position* is done."""

    position: int
    leader_epoch: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Alarm:
    """Say that the partition does not move, why, and for how long it waits now."""

    what: str
    text: str
    wait: float


@dataclass(frozen=True, slots=True, kw_only=True)
class StopProcess:
    """Stop the process with an error."""

    error: str


Command = (
    Open | Attach | Seek | Pause | Resume | Take | DropBelow | Forget | Run | Commit | Alarm | StopProcess
)
