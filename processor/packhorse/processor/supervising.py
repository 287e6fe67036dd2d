"""When a process that has ended is started again; pure."""

from dataclasses import dataclass

from packhorse.core.backoff import Backoff, delay_after

LIVED = 60.0
"""Seconds after which a process counts as one that worked: the next end is a first one."""
OFTEN = 5
"""Ends in a row, each within LIVED of its start, from which on it is said that starting again does not help."""
POLICY = Backoff(first=1.0, longest=30.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Child:
    """
    One process that is to run; times are monotonic seconds.

    Attributes:
        number: From 0.
        started: When it was started last.
        ends: Ends in a row, each soon after a start.
        start_at: When to start it; None while it runs.
    """

    number: int
    started: float = 0.0
    ends: int = 0
    start_at: float | None = 0.0

    @property
    def hopeless(self) -> bool:
        """Return whether it has ended again and again."""
        return self.ends >= OFTEN


def began(child: Child, *, now: float) -> Child:
    """Return *child* as it runs."""
    return Child(number=child.number, started=now, ends=child.ends, start_at=None)


def ended(child: Child, *, now: float, jitter: float) -> tuple[Child, float]:
    """
    Return *child* as it waits to be started again, and the seconds that it waits: from one, doubling, to thirty.

    >>> child, waits = Child(number=0), []
    >>> for _ in range(6):
    ...     child, wait = ended(began(child, now=0.0), now=1.0, jitter=0.0)
    ...     waits.append(wait)
    >>> waits, child.hopeless
    ([1.0, 2.0, 4.0, 8.0, 16.0, 30.0], True)
    """
    ends = 1 if now - child.started >= LIVED else child.ends + 1
    wait = delay_after(ends, POLICY, jitter=jitter)
    return Child(number=child.number, started=child.started, ends=ends, start_at=now + wait), wait


def without_flag(argv: list[str], flag: str) -> list[str]:
    """
    Return the command line without *flag* and its value.

    >>> without_flag(["run", "a:b", "--processes", "4", "--concurrency", "2"], "--processes")
    ['run', 'a:b', '--concurrency', '2']
    >>> without_flag(["run", "--processes=4", "a:b"], "--processes")
    ['run', 'a:b']
    """
    kept, skip = [], False
    for word in argv:
        if skip:
            skip = False
        elif word == flag:
            skip = True
        elif not word.startswith(f"{flag}="):
            kept.append(word)
    return kept
