"""When a stall is said: once, then with growing distance, and once more when it has ended; pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple

from packhorse.core.backoff import Backoff, delay_after
from packhorse.processor.watching.stall import QUIET, Cause, Stall, Subject

LONGEST = 3_600.0
"""Seconds between two lines about one stall that lasts."""


class Said(NamedTuple):
    """What was said of a stall that lasts: since when it stands, its cause, how often, and when to say it again."""

    since: float
    cause: Cause
    times: int
    again: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """A stall that was told is over, after so many *seconds*."""

    subject: Subject
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Alarms:
    """What was said so far."""

    said: Mapping[Subject, Said] = field(default_factory=lambda: MappingProxyType({}))


def speak(
    alarms: Alarms, stalls: Iterable[Stall], *, now: float, after: float
) -> tuple[Alarms, tuple[Stall | Ended, ...]]:
    """
    Return what to remember and what to say: new stalls, those whose cause has changed, old ones again, and ends.

    The distance between two lines about one stall grows from *after* seconds to an hour. What a person or the clock wants
    so is not said.
    """
    policy = Backoff(first=max(after, 0.001), longest=max(LONGEST, after), spread=0.0)
    said: dict[Subject, Said] = {}
    spoken: list[Stall | Ended] = []
    for stall in stalls:
        if stall.cause in QUIET or stall.subject in said:
            continue
        before = alarms.said.get(stall.subject)
        news = before is None or before.cause is not stall.cause
        if before is not None and not news and now < before.again:
            said[stall.subject] = before
            continue
        times = 1 if before is None or news else before.times + 1
        since = stall.since if before is None else before.since
        said[stall.subject] = Said(since, stall.cause, times, now + delay_after(times, policy, jitter=0.0))
        spoken.append(stall)
    over = [subject for subject in alarms.said if subject not in said]
    spoken += [Ended(subject=one, seconds=now - alarms.said[one].since) for one in over]
    return Alarms(said=MappingProxyType(said)), tuple(spoken)
