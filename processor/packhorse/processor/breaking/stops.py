"""Brakes and breakers of all handlers of a process: the one mutable thing around the decisions, owned by the loop's thread."""

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple, TypeVar

from packhorse.processor.breaking import brake
from packhorse.processor.breaking.brake import BrakeSettings, BrakeState, Seen
from packhorse.processor.breaking.breaker import brake_found, breaker_found, open_for
from packhorse.processor.breaking.probing import (
    CLOSED,
    Found,
    ProbeEnded,
    ProbeSent,
    ProbeSettings,
    Probing,
    Tell,
    Telling,
    Tripped,
    choose,
    decide,
    wait_of,
)
from packhorse.processor.running.work import Failure, Ran

C = TypeVar("C", bound=Hashable)


class Cause(StrEnum):
    """Why a handler is stopped."""

    BRAKE = "brake"
    """Most of its messages fail."""
    BREAKER = "breaker"
    """A system behind it is down."""


class Told(NamedTuple):
    """
    Something to tell people of a handler.

    Attributes:
        handler: Its name.
        cause: Why it is or was stopped.
        tell: What has come about.
        failures, seen: Of the brake: how many of the last first attempts failed.
    """

    handler: str
    cause: Cause
    tell: Tell
    failures: int = 0
    seen: int = 0

    @property
    def alarms(self) -> bool:
        """Return whether somebody should look, rather than know."""
        return self.tell.what is not Telling.RESUMED

    def __str__(self) -> str:
        seconds, probes, next_in = (
            f"{self.tell.seconds:.0f} s",
            self.tell.probes,
            f"{self.tell.next_in:.0f} s",
        )
        if self.tell.what is Telling.RESUMED:
            return (
                f"handler {self.handler} takes messages again after {seconds} and {probes} tries that failed"
            )
        why = (
            f"{self.failures} of its last {self.seen} messages failed at their first attempt"
            if self.cause is Cause.BRAKE
            else "an error that it names in down= says that a system behind it is down"
        )
        since = "" if self.tell.what is Telling.STOPPED else f" for {seconds}, after {probes} tries"
        return (
            f"handler {self.handler} is stopped{since}: {why}; one message at a time is tried, the next in {next_in}, nothing is "
            "charged, and it goes on by itself when one goes well"
        )


class Stopped(NamedTuple):
    """
    A handler that is stopped, for status.

    Attributes:
        handler: Its name.
        cause: Why.
        seconds: For how long.
        probes: How many messages were tried in vain.
        next_in: Seconds until the next may be tried; infinity while one is in hand.
    """

    handler: str
    cause: Cause
    seconds: float
    probes: int
    next_in: float

    @property
    def told(self) -> str:
        """
        Return it for the member's status, which people read.

        >>> Stopped("moved", Cause.BRAKE, 42.4, 3, 30.0).told
        'moved: brake, after 3 tries'
        """
        return f"{self.handler}: {self.cause.value}, after {self.probes} tries"


@dataclass(slots=True)
class _Of:
    brake: BrakeState = field(default_factory=BrakeState)
    breaker: Probing = CLOSED


class Stops:
    """
    Hold the brake and the breaker of each handler.

    Not thread-safe: the loop's thread owns it, feeds it when a chunk has ended and asks it before it hands one out. Between
    `sent` and `ended` of a probe no other message of the handler may be handed out; whoever can't say how it ended (partition
    revoked, lane lost) calls `ended` with None, or the handler stands still for ever.

    Args:
        braking: When a brake stops its handler.
        breaking: How a handler whose breaker is open is tried.
    """

    def __init__(self, braking: BrakeSettings | None = None, breaking: ProbeSettings | None = None) -> None:
        self._braking = braking or BrakeSettings()
        self._breaking = breaking or ProbeSettings()
        self._of: dict[str, _Of] = {}

    def wait(self, handler: str, *, now: float) -> float | None:
        """Return None while all messages of *handler* may run; else the seconds until one may: 0 is now."""
        if (of := self._of.get(handler)) is None:
            return None
        waits = [
            wait for one in (of.brake.probing, of.breaker) if (wait := wait_of(one, now=now)) is not None
        ]
        return max(waits, default=None)

    def choose(self, handler: str, candidates: Iterable[C]) -> C | None:
        """Return which of *candidates* (ids of messages, partitions: whatever `sent` is told) to probe; None without any."""
        of = self._of.get(handler, _Of())
        return choose(of.brake.probing if of.brake.braked else of.breaker, candidates)

    def seen(self, handler: str, event: Seen, *, now: float, jitter: float) -> list[Told]:
        """Count first attempts that have ended; leave out those that are nobody's fault, and probes."""
        of = self._of.setdefault(handler, _Of())
        of.brake, tells = brake.decide(of.brake, event, now=now, jitter=jitter, settings=self._braking)
        return self._told(handler, Cause.BRAKE, tells, of.brake) if tells else []

    def down(self, handler: str, *, now: float, jitter: float) -> list[Told]:
        """Open the breaker: a message ended with an error of `down=`."""
        of = self._of.setdefault(handler, _Of())
        of.breaker, tells = decide(of.breaker, Tripped(), now=now, jitter=jitter, settings=self._breaking)
        return self._told(handler, Cause.BREAKER, tells)

    def sent(self, handler: str, message: Hashable, *, now: float) -> None:
        """Note that *message* was handed out as the probe."""
        of = self._of.setdefault(handler, _Of())
        event = ProbeSent(message)
        of.brake, _ = brake.decide(of.brake, event, now=now, jitter=0.0, settings=self._braking)
        of.breaker, _ = decide(of.breaker, event, now=now, jitter=0.0, settings=self._breaking)

    def ended(
        self,
        handler: str,
        message: Hashable,
        ran: Ran | None,
        *,
        now: float,
        jitter: float,
        dealt: bool = False,
    ) -> list[Told]:
        """
        Note how the probe *message* ended; None: it was not run, or nobody can say. Another than the probe is nothing.

        *dealt*: It is dealt with. One that was so without being run says nothing, and costs no wait.
        """
        of = self._of.setdefault(handler, _Of())
        before, idle = of.brake, dealt and ran is None
        event = ProbeEnded(message, Found.NOTHING if idle else brake_found(ran))
        of.brake, tells = brake.decide(before, event, now=now, jitter=jitter, settings=self._braking)
        told = self._told(handler, Cause.BRAKE, tells, before)
        event = ProbeEnded(message, Found.NOTHING if idle else breaker_found(ran))
        of.breaker, tells = decide(of.breaker, event, now=now, jitter=jitter, settings=self._breaking)
        told += self._told(handler, Cause.BREAKER, tells)
        if ran is not None and ran.failure is Failure.DOWN:
            told += self.down(handler, now=now, jitter=jitter)
        return told

    def stopped(self, *, now: float) -> list[Stopped]:
        """Return the handlers that are stopped, by name."""
        return [
            Stopped(name, cause, seconds, state.failures, wait_of(state, now=now) or 0.0)
            for name, of in sorted(self._of.items())
            for cause, state in ((Cause.BRAKE, of.brake.probing), (Cause.BREAKER, of.breaker))
            if (seconds := open_for(state, now=now)) is not None
        ]

    @staticmethod
    def _told(handler: str, cause: Cause, tells: Iterable[Tell], of: BrakeState | None = None) -> list[Told]:
        failures, seen = (of.failures, of.seen) if of is not None else (0, 0)
        return [Told(handler, cause, tell, failures, seen) for tell in tells]
