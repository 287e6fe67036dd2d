"""
What brake and breaker have in common: once stopped, one message at a time is tried, with growing waits, until one goes well.

            Tripped                     ProbeSent
    CLOSED ─────────▶ WAITING ─────────────────────▶ PROBING
      ▲                 ▲   ProbeEnded(BAD): longer wait  │
      │                 ├─────────────────────────────────┤
      │                 │   ProbeEnded(NEITHER): same wait│
      │                 └─────────────────────────────────┤
      │                     ProbeEnded(GOOD)              │
      └───────────────────────────────────────────────────┘

What stands in no row of the table changes nothing: a late report of a probe that was given up, a second Tripped, what
messages say that ran before it stopped. A probe is charged no attempt, however it ends.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import NamedTuple, TypeVar

from packhorse.core.backoff import Backoff, delay_after
from packhorse.core.errors import SettingsError

C = TypeVar("C", bound=Hashable)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeSettings:
    """
    Say how often it is tried and told of.

    Attributes:
        waits: Waits before probe 1, 2, …; jitter lengthens.
        remind: Seconds between two reminders that it is still stopped.
        remembered: So many of the last probed are tried again only when all that could be tried were.

    Raises:
        SettingsError: A number is not above zero.
    """

    waits: Backoff = field(default_factory=lambda: Backoff(first=1.0, longest=60.0))
    remind: float = 600.0
    remembered: int = 64

    def __post_init__(self) -> None:
        if self.remind <= 0 or self.remembered < 1:
            raise SettingsError(f"{self} is not allowed: remind > 0, remembered >= 1")


class Phase(StrEnum):
    """Whether messages are taken."""

    CLOSED = "closed"
    """All are."""
    WAITING = "waiting"
    """None is, until the next probe."""
    PROBING = "probing"
    """One is in hand."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Probing:
    """
    Where it stands.

    Attributes:
        phase: Whether messages are taken.
        since: When it stopped, by the caller's clock.
        failures: Probes that went badly since.
        next_at: No probe before.
        probe: The message in hand as a probe.
        told_at: When it was last told of.
        probed: The last messages that were probed, the newest last.
    """

    phase: Phase = Phase.CLOSED
    since: float = 0.0
    failures: int = 0
    next_at: float = 0.0
    probe: Hashable = None
    told_at: float = 0.0
    probed: tuple[Hashable, ...] = ()


CLOSED = Probing()


class Found(StrEnum):
    """What a probe says."""

    GOOD = "good"
    BAD = "bad"
    NEITHER = "neither"
    """It could not be run, or ended for a reason of its own: revoked, contention, the database away."""
    NOTHING = "nothing"
    """It is dealt with and was not run: it was a duplicate, had expired, or went behind a parked key. Another may be tried at once."""


class Tripped(NamedTuple):
    """It must stop."""


class ProbeSent(NamedTuple):
    """A message was handed to a lane as the probe."""

    message: Hashable


class ProbeEnded(NamedTuple):
    """That message is no longer in hand."""

    message: Hashable
    found: Found


Event = Tripped | ProbeSent | ProbeEnded


class Telling(StrEnum):
    """What to tell people."""

    STOPPED = "stopped"
    STILL = "still"
    RESUMED = "resumed"


class Tell(NamedTuple):
    """
    Tell people: log, count, alarm.

    Attributes:
        what: What has come about.
        seconds: For how long it has been stopped.
        probes: How many probes went badly.
        next_in: Seconds until the next probe may go.
    """

    what: Telling
    seconds: float
    probes: int
    next_in: float


class _At(NamedTuple):
    now: float
    jitter: float
    settings: ProbeSettings


Decision = tuple[Probing, tuple[Tell, ...]]


def decide(state: Probing, event: Event, *, now: float, jitter: float, settings: ProbeSettings) -> Decision:
    """
    Return the state after *event* and what to tell; *now* is of a clock that never goes back, *jitter* of [0, 1).

    >>> state, _ = decide(CLOSED, Tripped(), now=0.0, jitter=0.0, settings=ProbeSettings())
    >>> wait_of(state, now=0.0)
    1.0
    >>> state, _ = decide(state, ProbeSent("a"), now=1.0, jitter=0.0, settings=ProbeSettings())
    >>> state, _ = decide(state, ProbeEnded("a", Found.BAD), now=1.0, jitter=0.0, settings=ProbeSettings())
    >>> wait_of(state, now=1.0)
    2.0
    """
    step = _STEPS.get((state.phase, type(event)))
    return (state, ()) if step is None else step(state, event, _At(now, jitter, settings))


def wait_of(state: Probing, *, now: float) -> float | None:
    """Return None while all may run; else the seconds until one message may: 0 is now, infinity until the one in hand ends."""
    if state.phase is Phase.CLOSED:
        return None
    return float("inf") if state.phase is Phase.PROBING else max(0.0, state.next_at - now)


def choose(state: Probing, candidates: Iterable[C]) -> C | None:
    """
    Return which of *candidates* to probe: the first not probed lately, else the one whose turn is longest ago.

    One message that always fails so never keeps the others from saying that all is well.

    >>> choose(Probing(probed=("a", "b")), ["b", "a", "c"]), choose(Probing(probed=("a", "b")), ["b", "a"])
    ('c', 'a')
    """
    turn = {message: at for at, message in enumerate(state.probed)}
    return min(candidates, key=lambda one: turn.get(one, -1), default=None)


def _stop(state: Probing, _event: Event, at: _At) -> Decision:
    wait = delay_after(1, at.settings.waits, jitter=at.jitter)
    stopped = replace(
        state, phase=Phase.WAITING, since=at.now, failures=0, next_at=at.now + wait, told_at=at.now
    )
    return replace(stopped, probed=()), (Tell(Telling.STOPPED, 0.0, 0, wait),)


def _send(state: Probing, event: Event, at: _At) -> Decision:
    assert isinstance(event, ProbeSent)
    others = tuple(one for one in state.probed if one != event.message)
    probed = (*others, event.message)[-at.settings.remembered :]
    return replace(state, phase=Phase.PROBING, probe=event.message, probed=probed), ()


def _end(state: Probing, event: Event, at: _At) -> Decision:
    assert isinstance(event, ProbeEnded)
    if event.message != state.probe:
        return state, ()
    seconds = at.now - state.since
    if event.found is Found.GOOD:
        return CLOSED, (Tell(Telling.RESUMED, seconds, state.failures, 0.0),)
    if event.found is Found.NOTHING:
        return replace(state, phase=Phase.WAITING, probe=None, next_at=at.now), ()
    failures = state.failures + (event.found is Found.BAD)
    wait = delay_after(failures + 1, at.settings.waits, jitter=at.jitter)
    waiting = replace(state, phase=Phase.WAITING, probe=None, failures=failures, next_at=at.now + wait)
    if at.now - state.told_at < at.settings.remind:
        return waiting, ()
    return replace(waiting, told_at=at.now), (Tell(Telling.STILL, seconds, failures, wait),)


_STEPS: Mapping[tuple[Phase, type[Event]], Callable[[Probing, Event, _At], Decision]] = {
    (Phase.CLOSED, Tripped): _stop,
    (Phase.WAITING, ProbeSent): _send,
    (Phase.PROBING, ProbeEnded): _end,
}
