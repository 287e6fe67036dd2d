"""When a stall is said: once, then with growing distance, and once more when it has ended; many of one cause together; pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple

from packhorse.core.backoff import Backoff, delay_after
from packhorse.processor.watching.stall import QUIET, Cause, Stall, Subject

LONGEST = 3_600.0
"""Seconds between two lines about one stall that lasts."""
SHARED = frozenset({Cause.TROUBLE, Cause.BROKER_AWAY, Cause.LANES})
"""Causes outside a partition: they stop many at once, and are one alarm for all."""

About = Subject | Cause
"""What one alarm is about: a stall of its own, or a cause that many share."""


class Said(NamedTuple):
    """What was said of a stall that lasts: since when it stands, its cause, how often, and when to say it again."""

    since: float
    cause: Cause
    times: int
    again: float
    subjects: frozenset[Subject]


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """One line: stalls that do not move for one cause, the oldest first; there is at least one."""

    stalls: tuple[Stall, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """Stalls that were told are over, the oldest after so many *seconds*."""

    subjects: tuple[Subject, ...]
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Alarms:
    """What was said so far."""

    said: Mapping[About, Said] = field(default_factory=lambda: MappingProxyType({}))


def speak(
    alarms: Alarms, stalls: Iterable[Stall], *, now: float, after: float
) -> tuple[Alarms, tuple[Standing | Ended, ...]]:
    """
    Return what to remember and what to say: new stalls, those whose cause has changed, old ones again, and ends.

    The distance between two lines about one stall, or one shared cause, grows from *after* seconds to an hour. What a person
    or the clock wants so is not said.
    """
    policy = Backoff(first=max(after, 0.001), longest=max(LONGEST, after), spread=0.0)
    groups = _groups(stalls)
    said: dict[About, Said] = {}
    spoken: list[Standing | Ended] = []
    for about, group in groups.items():
        before, cause = alarms.said.get(about), group[0].cause
        subjects = frozenset(stall.subject for stall in group) | (before.subjects if before else frozenset())
        news = before is None or before.cause is not cause
        if before is not None and not news and now < before.again:
            said[about] = before._replace(subjects=subjects)
            continue
        times = 1 if before is None or news else before.times + 1
        since = min(group[0].since, group[0].since if before is None else before.since)
        said[about] = Said(since, cause, times, now + delay_after(times, policy, jitter=0.0), subjects)
        spoken.append(Standing(stalls=group))
    spoken += _ends(alarms, groups, said, now)
    return Alarms(said=MappingProxyType(said)), tuple(spoken)


def _groups(stalls: Iterable[Stall]) -> dict[About, tuple[Stall, ...]]:
    """Return the stalls by what they are said under; a subject counts once."""
    found: dict[About, dict[Subject, Stall]] = {}
    for stall in stalls:
        if stall.cause in QUIET:
            continue
        about = stall.cause if stall.cause in SHARED else stall.subject
        found.setdefault(about, {}).setdefault(stall.subject, stall)
    return {about: tuple(sorted(group.values(), key=lambda one: one.since)) for about, group in found.items()}


def _ends(
    alarms: Alarms, groups: Mapping[About, tuple[Stall, ...]], said: dict[About, Said], now: float
) -> list[Ended]:
    """Return the end of each alarm: of what moves now. What stands still for another cause has not ended, nor what a person paused."""
    stand = {stall.subject for group in groups.values() for stall in group}
    ends = []
    for about, before in alarms.said.items():
        over = tuple(sorted(before.subjects - stand, key=str))
        if about not in said and over:
            ends.append(Ended(subjects=over, seconds=now - before.since))
    return ends
