"""
The brake of a handler: when most messages fail at their first attempt, it stops filling quarantine and tries one at a time.

Only first attempts count, so one message that fails again and again weighs as much as one that fails once. What ran before
it was braked is charged as ever; while it is braked nothing is.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from packhorse.core.errors import SettingsError
from packhorse.processor.breaking.probing import (
    CLOSED,
    Phase,
    ProbeEnded,
    ProbeSent,
    ProbeSettings,
    Probing,
    Tell,
    Telling,
    Tripped,
)
from packhorse.processor.breaking.probing import decide as probe


@dataclass(frozen=True, slots=True, kw_only=True)
class BrakeSettings:
    """
    Say when failures are too many.

    Attributes:
        window: So many of the last first attempts are looked at.
        least: With fewer failures among them it never brakes by ratio.
        ratio: It brakes when at least this part of them failed,
        run: or when the last so many all failed.
        probing: How one at a time is tried then.

    Raises:
        SettingsError: Numbers with which it could never brake, or would at once.
    """

    window: int = 100
    least: int = 30
    ratio: float = 0.5
    run: int = 30
    probing: ProbeSettings = field(default_factory=ProbeSettings)

    def __post_init__(self) -> None:
        if not (1 <= self.least <= self.window and 1 <= self.run <= self.window and 0 < self.ratio <= 1):
            raise SettingsError(
                f"{self} is not allowed: 1 <= least <= window, 1 <= run <= window, 0 < ratio <= 1"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class BrakeState:
    """
    Where it stands.

    Attributes:
        seen: How many first attempts are in the window.
        failed: Which of them failed: a bit each, the newest lowest.
        probing: Whether it is braked, and how that goes.
    """

    seen: int = 0
    failed: int = 0
    probing: Probing = CLOSED

    @property
    def braked(self) -> bool:
        """Return whether it is braked."""
        return self.probing.phase is not Phase.CLOSED

    @property
    def failures(self) -> int:
        """Return how many of the window failed."""
        return self.failed.bit_count()


class Seen(NamedTuple):
    """
    First attempts of a chunk have ended.

    Attributes:
        attempts: How many.
        failed: Which failed: a bit each, the last one lowest.
    """

    attempts: int
    failed: int = 0


def seen(failures: Iterable[bool]) -> Seen:
    """
    Return the event of a chunk from whether each of its first attempts failed, in order.

    >>> seen([True, False, True, True])
    Seen(attempts=4, failed=11)
    """
    attempts = bits = 0
    for failed in failures:
        attempts += 1
        bits = bits << 1 | failed
    return Seen(attempts, bits)


Event = Seen | ProbeSent | ProbeEnded


def decide(
    state: BrakeState, event: Event, *, now: float, jitter: float, settings: BrakeSettings
) -> tuple[BrakeState, tuple[Tell, ...]]:
    """
    Return the state after *event* and what to tell.

    A chunk without failures after a window without failures costs one comparison: the state is as it was.

    >>> decide(BrakeState(), Seen(30, 2**30 - 1), now=0.0, jitter=0.0, settings=BrakeSettings())[0].braked
    True
    """
    if isinstance(event, Seen):
        return _count(state, event, now=now, jitter=jitter, settings=settings)
    probing, tell = probe(state.probing, event, now=now, jitter=jitter, settings=settings.probing)
    if any(one.what is Telling.RESUMED for one in tell):
        return BrakeState(), tell
    return replace(state, probing=probing), tell


def _count(
    state: BrakeState, event: Seen, *, now: float, jitter: float, settings: BrakeSettings
) -> tuple[BrakeState, tuple[Tell, ...]]:
    if state.braked or (not event.failed and not state.failed and state.seen == settings.window):
        return state, ()
    bits = (state.failed << event.attempts | event.failed) & ((1 << settings.window) - 1)
    counted = BrakeState(seen=min(state.seen + event.attempts, settings.window), failed=bits)
    if not event.failed or not _too_many(counted, settings):
        return counted, ()
    probing, tell = probe(CLOSED, Tripped(), now=now, jitter=jitter, settings=settings.probing)
    return replace(counted, probing=probing), tell


def _too_many(state: BrakeState, settings: BrakeSettings) -> bool:
    run = (1 << settings.run) - 1
    if state.failed & run == run:
        return True
    return state.failures >= settings.least and state.failures >= settings.ratio * state.seen
