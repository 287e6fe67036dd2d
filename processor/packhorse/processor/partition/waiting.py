"""Wait, because something is away, or what is remembered counts for nothing; then the watermark is read again."""

from dataclasses import dataclass, replace

from packhorse.core.backoff import delay_after
from packhorse.processor.partition.orders import Alarm, Command
from packhorse.processor.partition.state import Limits, Load, PartitionState, Phase

Decision = tuple[PartitionState, tuple[Command, ...]]
"""The state to come, and what is ordered."""

DEAF = frozenset({Phase.OPENING, Phase.REFUSED, Phase.DRAINING})
"""Phases in which nothing is remembered that could turn out to be wrong, or nothing follows from it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """What a decision is made with besides state and event; *jitter* is drawn from [0, 1)."""

    load: Load
    limits: Limits
    now: float
    jitter: float

    def wait(self, failure: int) -> float:
        """Return the seconds to wait after failure number *failure*."""
        return delay_after(failure, self.limits.backoff, jitter=self.jitter)


def away(state: PartitionState, what: str, at: Moment, *, reopen: bool, text: str) -> Decision:
    """Wait, longer each time; chunks that meet the same trouble at once count as one."""
    reopen = reopen or state.reopen
    if state.phase is Phase.AWAY:
        return replace(state, reopen=reopen), ()
    failures = state.failures + 1
    wait = at.wait(failures)
    waiting = replace(
        state,
        phase=Phase.AWAY,
        failures=failures,
        due=at.now + wait,
        reopen=reopen,
        trouble=f"{what}: {text}",
    )
    return waiting, (Alarm(what=what, text=text, wait=wait),)


def void(state: PartitionState, *, now: float) -> Decision:
    """Read the watermark again, at *now*; whoever reads it just now or is about to has nothing to forget."""
    if state.phase in DEAF or state.reopen:
        return state, ()
    return replace(state, phase=Phase.AWAY, due=now, reopen=True), ()
