"""Whether a process is well, from what is known of it; pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

PATIENCE = 30.0
"""Seconds that a loop may take for one turn; revoking and leaving go on turning it."""
DATABASE_PATIENCE = 15.0
"""Seconds since the database has answered after which it counts as not reached; it is asked every second."""
STANDBY = 30.0
"""Seconds after the start at which a member without partitions counts as one that waits for them, not as one that joins."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """
    What is known of a process at one moment; times are monotonic seconds.

    Attributes:
        started: When it began.
        beats: When each loop has last turned, by name.
        dead: Threads that have ended though nobody asked them to, and what is known of why.
        stalled: What does not move and does not explain itself, in words.
        assigned: The group has dealt partitions to it, maybe none.
        answered: When the database has last answered.
        leaving: It was asked to stop.
    """

    started: float
    beats: Mapping[str, float]
    dead: Mapping[str, str]
    stalled: Sequence[str] = ()
    assigned: bool = False
    answered: float | None = None
    leaving: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """
    How a process is.

    Attributes:
        not_live: Why it should be ended and started anew; empty when it should not.
        not_ready: Why it does no work just now; empty when it does.
    """

    not_live: tuple[str, ...]
    not_ready: tuple[str, ...]

    @property
    def live(self) -> bool:
        """Return whether it should go on."""
        return not self.not_live

    @property
    def ready(self) -> bool:
        """Return whether it works."""
        return self.live and not self.not_ready


def health_of(facts: Facts, *, now: float) -> Health:
    """
    Judge a process: live while its loops turn, no thread has died and nothing stands still without a reason; ready while it
    has joined the group, reaches the database and was not asked to stop.

    Something underneath that is away makes it not ready, never not live: starting anew mends no broker.
    """
    dead = [f"{name} has ended: {why or 'nobody asked it to'}" for name, why in sorted(facts.dead.items())]
    slow = [
        f"{name} has not turned for {now - at:.0f} s"
        for name, at in sorted(facts.beats.items())
        if now - at > PATIENCE and name not in facts.dead
    ]
    return Health(
        not_live=(*dead, *slow, *(f"does not move: {text}" for text in facts.stalled)),
        not_ready=tuple(_not_ready(facts, now)),
    )


def _not_ready(facts: Facts, now: float) -> list[str]:
    found = []
    if facts.leaving:
        found.append("it was asked to stop")
    if not facts.beats:
        found.append("it has not begun to read")
    if not facts.assigned and now - facts.started < STANDBY:
        found.append("it has not joined the group")
    if facts.answered is None or now - facts.answered > DATABASE_PATIENCE:
        since = "yet" if facts.answered is None else f"for {now - facts.answered:.0f} s"
        found.append(f"the database has not answered {since}")
    return found
