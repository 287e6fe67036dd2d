"""Who works on a run: a lease under a token that fences whoever had it before. Pure: no I/O, no clock."""

import os
import socket
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from packhorse.core.errors import OwnershipLost
from packhorse.core.users import system_user

LEASE = 15.0
"""Seconds for which a runner has a run without renewing: after a kill, so long until another may go on."""
RENEW_EVERY = 4.0
"""Seconds between two renewals: three may fail before the lease runs out."""


class Ending(StrEnum):
    """Why a runner does no more for a run."""

    OVER = "over"
    """The run has come to an end of its own, which its row says."""
    MOVED = "moved"
    """A person paused or ended it, or another runner has it."""
    LEFT = "left"
    """This runner was asked to stop; the run goes on with whoever takes it next."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """
    The right to write what comes of one run, until another takes it over.

    Attributes:
        run: Id of the run.
        token: One more at each take-over; a write under an older one changes nothing.
    """

    run: int
    token: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """
    How a run stands.

    Attributes:
        said: Why it is paused, halted or at its end.
        runner: Who has worked on it last.
        lease_until: By the database's clock; None: nobody has it.
        alive: Whether the lease is running.
    """

    id: int
    state: str
    said: str | None
    runner: str | None
    token: int
    lease_until: datetime | None
    alive: bool


class LeaseLost(OwnershipLost):
    """The run is another runner's by now, or a person has paused or ended it; nothing was written."""


def this_runner() -> str:
    """Return what a run's row calls this process: user, host and process id."""
    return f"{system_user()} on {socket.gethostname()}, process {os.getpid()}"
