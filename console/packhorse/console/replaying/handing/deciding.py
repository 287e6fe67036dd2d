"""What a replay's runner does next: decided from numbers alone. Pure."""

from dataclasses import dataclass

from packhorse.console.running.deciding import Bucket, End, Halt, Wait
from packhorse.core.text import counted

WINDOW_SECONDS = 4.0
"""Seconds of the rate that may be handed over and unproved: more would be a queue in the tables, and not faster."""
WINDOW_LEAST, WINDOW_MOST = 100, 5_000
RESTING_MOST = 10_000
"""Messages that may rest in retry or behind others: more and a person should look."""
PORTION = 200
"""Messages of one transaction at most."""
LOOK = 0.2
"""Seconds until outcomes are looked at again."""
BURST = 0.25
"""Seconds of the rate that may be made up for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """
    How the run stands.

    Attributes:
        left: Whether there is more to read.
        unproved: Handed over, without an outcome, and not resting.
        resting: Without an outcome, in retry, behind another message or for a person.
        failed: Stopped in quarantine or as uncertain.
        retrying: Of the resting ones those in retry.
        most_failures: So many of failed and retrying are borne.
        rate: Messages a second.
    """

    left: bool
    unproved: int
    resting: int
    failed: int
    retrying: int
    most_failures: int
    rate: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Hand:
    """Hand over up to *most* messages."""

    most: int


EMPTY = Bucket(tokens=0.0)
"""Of a run that was just taken."""


def window(rate: float) -> int:
    """
    Return how many messages may be handed over and unproved.

    >>> window(500), window(1), window(20_000)
    (2000, 100, 5000)
    """
    return int(min(max(WINDOW_LEAST, rate * WINDOW_SECONDS), WINDOW_MOST))


def decide(facts: Facts, allowance: float) -> Hand | Wait | Halt | End:
    """
    Return what to do now; *allowance* is how many messages the rate allows at this moment.

    >>> facts = Facts(left=True, unproved=0, resting=0, failed=0, retrying=0, most_failures=0, rate=100)
    >>> decide(facts, 12.7)
    Hand(most=12)
    """
    failures = facts.failed + facts.retrying
    if facts.left and failures > facts.most_failures:
        return Halt(
            said=f"{failures} of the messages failed ({facts.failed} stopped, {facts.retrying} wait for another try), "
            f"{facts.most_failures} are borne"
        )
    if facts.left and facts.resting > RESTING_MOST:
        return Halt(
            said=f"{counted(facts.resting, 'message waits', 'messages wait')} in retry or behind others, {RESTING_MOST} are borne"
        )
    if not facts.left:
        return _towards_the_end(facts)
    room = window(facts.rate) - facts.unproved
    if room <= 0:
        return Wait(seconds=LOOK)
    if allowance < 1:
        return Wait(seconds=min(LOOK, (1 - allowance) / facts.rate))
    return Hand(most=int(min(PORTION, room, allowance)))


def _towards_the_end(facts: Facts) -> Wait | End:
    if facts.unproved:
        return Wait(seconds=LOOK)
    if facts.resting:
        return End(
            said=f"{counted(facts.resting, 'message rests', 'messages rest')} in retry, behind others or for a person, to go on as any of the "
            "group"
        )
    return End(
        said=f"{counted(facts.failed, 'message')} stopped in quarantine or as uncertain"
        if facts.failed
        else None
    )


def filled(bucket: Bucket, rate: float, *, now: float) -> Bucket:
    """
    Return *bucket* with what *rate* allows at *now*.

    >>> [filled(Bucket(tokens=before, at=0.0), 100.0, now=now).tokens for before, now in ((0.0, 0.1), (5.0, 60.0))]
    [10.0, 25.0]
    """
    return bucket.filled(rate, most=max(1.0, rate * BURST), now=now)
