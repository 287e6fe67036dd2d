"""
Decide how a confirmed redrive goes on: what to ask for next, when to wait, when to halt. Pure: no I/O, no clock.

Members are asked for in stages. The first ones are canaries: the next stage begins only when each member of the last one is
proved by an outcome. Once a stage is as large as what may be in flight, stages follow each other without waiting, and only
the number in flight is bounded. The same rule halts in both: too many failures in any stage that has open members or ended last.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from packhorse.console.running.deciding import Bucket, End, Halt, Wait

PORTION = 1_000
"""Members that one transaction asks for at most."""
WINDOW = 2.0
"""Seconds of the rate that may be in flight in the steady state."""
GROWTH = 5
POLL = 0.2
"""Seconds between two looks at outcomes."""
_LEAST_WAIT = 0.001
"""Seconds; what is shorter may be lost in the clock's last digit, and come again for ever."""
BEAT = 0.1
"""Seconds of the rate that are asked for together, so that a transaction is worth its while."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """
    How a set is worked through.

    Attributes:
        rate: Members a second, at most.
        stages: Sizes of the first stages; then each is five times the one before.
        most_failures: Failures in one stage that are borne; None: none in stages of fewer than 20, else a tenth of its full size,
            also where fewer are left for it.
        first: The number of the stage that the sizes begin with: after a halt they begin small again.
    """

    rate: float
    stages: tuple[int, ...]
    most_failures: int | None = None
    first: int = 0

    @property
    def window(self) -> int:
        """Return how many may be in flight in the steady state."""
        return max(100, self.stages[-1], int(self.rate * WINDOW))

    @property
    def burst(self) -> float:
        """Return how many the rate may allow together: a second of it at most."""
        return max(1.0, min(self.rate, float(PORTION)))

    def size(self, stage: int) -> int:
        """
        Return how many members stage number *stage* has.

        >>> [Plan(rate=500, stages=(1, 5, 20, 100)).size(n) for n in range(7)]
        [1, 5, 20, 100, 500, 1000, 1000]
        """
        at = stage - self.first
        if at < len(self.stages):
            return self.stages[at]
        size = self.stages[-1]
        for _ in range(at - len(self.stages) + 1):
            size = min(size * GROWTH, self.window)
            if size == self.window:
                break
        return size

    def is_steady(self, stage: int) -> bool:
        """Return whether stages from *stage* on need not wait for the one before to be proved."""
        return stage - self.first >= len(self.stages) and self.size(stage) >= self.window

    def borne(self, stage: int) -> int:
        """
        Return how many failures stage number *stage* may have.

        >>> [Plan(rate=500, stages=(1, 5, 20, 100)).borne(n) for n in range(4)]
        [0, 0, 2, 10]
        """
        if self.most_failures is not None:
            return self.most_failures
        size = self.size(stage)
        return 0 if size < 20 else size // 10

    def refusals_borne(self, stage: int) -> int:
        """Return how many members of stage number *stage* the broker may refuse: one always, else a tenth."""
        return max(1, self.size(stage) // 10)


@dataclass(frozen=True, slots=True, kw_only=True)
class StageTally:
    """
    How the members of one stage stand.

    Attributes:
        taken: Members that were asked for in it; what was found moved is no canary and does not count.
        open: Asked for, without an outcome.
        bad: Failed again.
        refused: The broker does not take them.
    """

    taken: int = 0
    open: int = 0
    bad: int = 0
    refused: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """
    How a set stands.

    Attributes:
        stages: By number, those of this round.
        waiting: Members that are not asked for.
    """

    stages: Mapping[int, StageTally] = field(default_factory=dict)
    waiting: int = 0

    @property
    def open(self) -> int:
        """Return how many are in flight."""
        return sum(stage.open for stage in self.stages.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """Ask for up to *count* members, as members of *stage*."""

    stage: int
    count: int


Command = Ask | Wait | Halt | End
FULL = Bucket(tokens=1.0)
"""Of a run that was just taken: the first member needs not wait."""


def decide(plan: Plan, tally: Tally, bucket: Bucket) -> Command:
    """
    Return what is to be done next about a set that stands as *tally* says; *bucket* is filled to now.

    Halting comes first: no member is asked for in the same breath in which too many failures are seen.
    """
    if (said := _halts(plan, tally)) is not None:
        return Halt(said=said)
    if tally.waiting == 0:
        return Wait(seconds=POLL) if tally.open else End()
    stage = max((one for one in tally.stages if one >= plan.first), default=plan.first)
    now = tally.stages.get(stage, StageTally())
    room = plan.size(stage) - now.taken
    if room <= 0:
        if now.open and not plan.is_steady(stage + 1):
            return Wait(seconds=POLL)
        stage, room = stage + 1, plan.size(stage + 1)
    if plan.is_steady(stage):
        room = min(room, plan.window - tally.open)
        if room <= 0:
            return Wait(seconds=POLL)
    return _asked(plan, bucket, stage, min(room, tally.waiting, PORTION))


def _asked(plan: Plan, bucket: Bucket, stage: int, room: int) -> Command:
    """Ask for what the rate allows; wait until that is worth a transaction."""
    worth = max(1, min(room, int(plan.rate * BEAT)))
    if bucket.tokens < worth:
        return Wait(seconds=min(POLL, max(_LEAST_WAIT, (worth - bucket.tokens) / plan.rate)))
    return Ask(stage=stage, count=min(room, int(bucket.tokens)))


def _halts(plan: Plan, tally: Tally) -> str | None:
    for stage, now in tally.stages.items():
        if stage < plan.first:
            continue
        if now.bad > plan.borne(stage):
            return (
                f"{now.bad} of {now.taken} in stage {stage - plan.first + 1} failed again, {plan.borne(stage)} are borne: "
                "the cause is still there"
            )
        if now.refused > plan.refusals_borne(stage):
            return (
                f"the broker refuses {now.refused} of {now.taken} in stage {stage - plan.first + 1}, "
                f"{plan.refusals_borne(stage)} are borne"
            )
    return None
