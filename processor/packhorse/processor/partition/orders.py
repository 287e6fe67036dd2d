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
    """Put the records that just arrived into the queue."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Forget:
    """Empty the queue: reading starts anew at *offset*."""

    offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Suspect:
    """Let the record at *offset* share no chunk from now on: its run ended with the connection."""

    offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """Move the watermark from *old* to *new*, by compare-and-set."""

    old: int
    new: int
    leader_epoch: int | None


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
    Open | Attach | Seek | Pause | Resume | Take | Forget | Suspect | Mark | Commit | Alarm | StopProcess
)
