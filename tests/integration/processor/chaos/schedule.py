"""Which faults come when: drawn from a seed alone, so that a run can be told in a line and done again."""

from collections.abc import Sequence
from enum import StrEnum
from random import Random
from typing import NamedTuple


class Kind(StrEnum):
    """What is done to whom."""

    KILL = "kill -9"
    TERM = "SIGTERM"
    FREEZE = "SIGSTOP, shorter than the session"
    FREEZE_LONG = "SIGSTOP, longer than the session"
    DATABASE_CUT = "its connections to the database are reset, new ones refused"
    DATABASE_HOLE = "the database takes all and answers nothing"
    DATABASE_MUTE = "the database does all, and its answers are lost"
    DATABASE_HELD = "what goes to and from the database is held back"
    BROKER_CUT = "connections of half the members to the broker are reset, new ones refused"
    BROKER_HOLE = "the broker takes all from half the members and answers nothing"
    BROKER_MUTE = "the broker does all for half the members, and its answers are lost"
    BROKER_HELD = "what half the members send to the broker is held back"
    BACKENDS = "database backends are terminated"
    RESTART = "the database server is killed and started"
    BROKER_FROZEN = "the broker is frozen"
    BROKER_KILL = "the broker is killed and started"
    TO_START = "the stopped group's offsets are reset to the start"
    TO_END = "the stopped group's offsets are reset to the end"


SECONDS = {
    Kind.KILL: (0.2, 2.0),
    Kind.TERM: (0.2, 2.0),
    Kind.FREEZE: (0.5, 3.5),
    Kind.FREEZE_LONG: (8.0, 11.0),
    Kind.DATABASE_CUT: (0.5, 6.0),
    Kind.DATABASE_HOLE: (0.5, 9.0),
    Kind.DATABASE_MUTE: (0.2, 5.0),
    Kind.DATABASE_HELD: (0.5, 9.0),
    Kind.BROKER_CUT: (0.5, 9.0),
    Kind.BROKER_HOLE: (0.5, 9.0),
    Kind.BROKER_MUTE: (0.5, 5.0),
    Kind.BROKER_HELD: (0.5, 9.0),
    Kind.BACKENDS: (0.0, 0.0),
    Kind.RESTART: (0.0, 0.0),
    Kind.BROKER_FROZEN: (0.5, 4.0),
    Kind.BROKER_KILL: (0.0, 0.0),
    Kind.TO_START: (0.0, 0.0),
    Kind.TO_END: (0.0, 0.0),
}
WEIGHTS = {Kind.KILL: 6, Kind.FREEZE_LONG: 2, Kind.BACKENDS: 2, Kind.DATABASE_MUTE: 2}
RARE = (Kind.RESTART, Kind.TO_START, Kind.TO_END, Kind.BROKER_KILL, Kind.BROKER_FROZEN)
"""What stops everybody comes once in RARE_EVERY seconds, in turn."""
RARE_EVERY = 60.0
SHORT = (
    Kind.KILL, Kind.FREEZE_LONG, Kind.DATABASE_MUTE, Kind.KILL, Kind.BROKER_HOLE, Kind.TERM, Kind.BACKENDS,
    Kind.DATABASE_CUT, Kind.FREEZE, Kind.KILL, Kind.BROKER_CUT, Kind.DATABASE_HOLE,
)  # fmt: skip
"""What a short run must have, in any order; the server is restarted and the offsets are reset besides."""


class Fault(NamedTuple):
    """From *at* seconds on, for *seconds*, done to member number *member* where it is about one."""

    at: float
    kind: Kind
    member: int
    seconds: float

    def __str__(self) -> str:
        return f"{self.at:7.2f} s  {self.kind.name} member {self.member}, {self.seconds:.2f} s"


def short_schedule(seed: int, seconds: float, members: int) -> list[Fault]:
    """Return each fault that must be in a short run once, in an order of its own; a reset of the offsets comes last."""
    chance = Random(seed)
    kinds = [*SHORT, Kind.RESTART]
    chance.shuffle(kinds)
    kinds.append(chance.choice([Kind.TO_START, Kind.TO_END]))
    gap = seconds / (len(kinds) + 0.5)
    return [
        _fault(chance, (place + 0.2 + 0.6 * chance.random()) * gap, kind, members)
        for place, kind in enumerate(kinds)
    ]


def long_schedule(seed: int, seconds: float, members: int, *, pace: float = 1.0) -> list[Fault]:
    """Return faults for *seconds*, half a second to five apart times *pace*, and now and then one that stops everybody."""
    chance = Random(seed)
    kinds = [kind for kind in Kind if kind not in RARE]
    weights = [WEIGHTS.get(kind, 1) for kind in kinds]
    rare = list(RARE)
    chance.shuffle(rare)
    found: list[Fault] = []
    at, next_rare = 2.0, pace * RARE_EVERY / 2
    while at < seconds:
        if at >= next_rare:
            kind, next_rare = rare[0], next_rare + pace * RARE_EVERY
            rare.append(rare.pop(0))
        else:
            kind = chance.choices(kinds, weights)[0]
        found.append(_fault(chance, at, kind, members))
        at += pace * (0.5 + 4.5 * chance.random())
    return found


def _fault(chance: Random, at: float, kind: Kind, members: int) -> Fault:
    low, high = SECONDS[kind]
    return Fault(at, kind, chance.randrange(members), low + (high - low) * chance.random())


def told(schedule: Sequence[Fault]) -> str:
    """Return the schedule, one fault a line."""
    return "\n".join(str(one) for one in schedule)
