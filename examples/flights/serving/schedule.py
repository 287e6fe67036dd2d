"""What happens when, while the demo goes on: how much traffic, which trouble, which jobs. Pure: the time is an argument."""

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

PER_SECOND = 24.0
"""Movements and plans in a second, on average: the year is over after half a day, and the machine hardly notices."""
SWELL = 0.5
"""How far above and below that the traffic goes, as a share of it."""
WAVE = 300.0
"""Seconds from one swell of the traffic to the next."""
MOST_AT_ONCE = 200
"""What one look may be late with: after a stop of the machine nobody makes up for hours."""


class Kind(StrEnum):
    """What can happen."""

    OUTAGE = "outage"
    REFUSAL = "refusal"
    POISON = "poison"
    KILL = "kill"
    REPORT = "report"
    SLOW_REPORT = "slow report"
    EARLY_REPORT = "early report"
    HOPELESS_REPORT = "hopeless report"
    DOUBTFUL_REPORT = "doubtful report"
    LATER_REPORT = "later report"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """
    How often something happens; durations are in seconds.

    Attributes:
        first: When it happens first.
        every: Between two times of it, on average.
        lasts: How long until it is mended, closed or due, as the kind has it.
    """

    first: float
    every: float
    lasts: float = 0.0


# An outage must be shorter than the attempts of `figures.PATIENT`, some 9 s, or it is a refusal. The first of each comes soon,
# for whoever has just opened the console; after that the day is long.
RULES: dict[Kind, Rule] = {
    Kind.REPORT: Rule(first=1, every=45),
    Kind.SLOW_REPORT: Rule(first=2, every=75),
    Kind.OUTAGE: Rule(first=3, every=30, lasts=6),
    Kind.HOPELESS_REPORT: Rule(first=4, every=420, lasts=60),
    Kind.POISON: Rule(first=6, every=360),
    Kind.REFUSAL: Rule(first=8, every=240, lasts=45),
    Kind.LATER_REPORT: Rule(first=9, every=200, lasts=120),
    Kind.DOUBTFUL_REPORT: Rule(first=10, every=600),
    Kind.EARLY_REPORT: Rule(first=20, every=150, lasts=5),
    Kind.KILL: Rule(first=75, every=600, lasts=8),
}
_SPREAD = 0.4


@dataclass(frozen=True, slots=True, kw_only=True)
class Happening:
    """
    One thing that is to happen now.

    Attributes:
        number: Of its kind, from 1.
        lasts: Seconds; see `Rule`.
    """

    kind: Kind
    number: int
    lasts: float


class Agenda:
    """
    Say what is due; one seed, asked at the same times, says the same.

    Args:
        seed: Of the chance in the gaps between two times of a kind.
        rules: How often each kind happens.
    """

    def __init__(self, seed: int, rules: dict[Kind, Rule] | None = None) -> None:
        self._rules = RULES if rules is None else rules
        self._chance = {kind: random.Random(f"{seed} {kind}") for kind in self._rules}
        self._next = {kind: rule.first for kind, rule in self._rules.items()}
        self._count = dict.fromkeys(self._rules, 0)

    def due(self, now: float) -> list[Happening]:
        """
        Return what is due at *now*, in seconds since the beginning; each kind at most once.

        What was missed is not made up for: after a stop of the machine things go on as if it had not been.
        """
        found = []
        for kind, rule in self._rules.items():
            if self._next[kind] > now:
                continue
            self._count[kind] += 1
            found.append(Happening(kind=kind, number=self._count[kind], lasts=rule.lasts))
            self._next[kind] = now + rule.every * self._chance[kind].uniform(1 - _SPREAD, 1 + _SPREAD)
        return found


class Pace:
    """How much traffic is owed; it swells and ebbs, so that a chart of it is a wave."""

    def __init__(self) -> None:
        self._given = 0.0

    def owed(self, now: float) -> int:
        """Return how many are to be written at *now*, in seconds since the beginning, beside those that were owed before."""
        self._given = max(self._given, owed_by(now) - MOST_AT_ONCE)
        count = int(owed_by(now) - self._given)
        self._given += count
        return count


def owed_by(now: float) -> float:
    """
    Return how many are owed in the first *now* seconds.

    >>> [round(owed_by(seconds)) for seconds in (0, 150, 300, 3600)]
    [0, 4746, 7200, 86400]
    """
    turn = 2 * math.pi / WAVE
    return PER_SECOND * (now + SWELL * (1 - math.cos(now * turn)) / turn)


@dataclass(frozen=True, slots=True, kw_only=True)
class Resting:
    """
    Something that waits for a person.

    Attributes:
        id: The message's; of a job it is the job's.
        kind: What it waits for, as `tidying` knows it.
    """

    id: str
    kind: str


def surplus(resting: Sequence[Resting], *, most: int) -> Resting | None:
    """
    Return what the demo itself sees to, so that no more than *most* wait: the one that came first of *resting*; None while there is room.

    >>> surplus([Resting(id="1", kind="poison")], most=1) is None
    True
    """
    return resting[0] if len(resting) > most else None
