"""What jobs do: effects and steps, drawn from the seed."""

from random import Random
from typing import NamedTuple
from uuid import UUID


class Effect(NamedTuple):
    """
    One effect of one job.

    Attributes:
        verify: "tells", "can't tell", or "none": it has no verify.
        timeout: Seconds that its call may take.
    """

    job: UUID
    key: str
    verify: str
    timeout: float


class Step(NamedTuple):
    """One step of one job, which takes some seconds."""

    job: UUID
    name: str
    seconds: float


def script(job: UUID, random: Random, theme: str) -> list[Effect | Step]:
    """Return what *job* does, in order."""
    if theme == "late":
        return [Effect(job, "e0", "tells", random.choice((1.0, 1.0, 10.0)))]
    found: list[Effect | Step] = []
    for n in range(random.randint(1, 3)):
        if random.random() < 0.25:
            found.append(Step(job, f"s{n}", random.choice((0.0, 1.0, 6.0))))
        verify = random.choice(("tells", "tells", "tells", "can't tell", "none", "none"))
        found.append(Effect(job, f"e{n}", verify, random.choice((1.0, 10.0, 30.0))))
    return found
