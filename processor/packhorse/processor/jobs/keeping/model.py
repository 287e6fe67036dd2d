"""What the retention of jobs thinks with: rules, which ids a turn looks at, and what a turn did. Pure: no I/O, no clock."""

import math
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple
from uuid import UUID

from packhorse.core.errors import SettingsError
from packhorse.core.ids import uuid7_from

DAY: Final = 86_400.0
WHOLE: Final = timedelta(days=1)
"""How often a turn goes over all ids: jobs that ran for long, waited for a person, or whose type is kept for less by now are found by that."""
LATE: Final = timedelta(hours=1)
"""Jobs that end so long after they were accepted are found by the turn that passes their id."""
AHEAD: Final = timedelta(days=1)
"""Ids that are so far ahead hold no time, or that of a clock that is wrong: all of them are looked at."""
LEAST, GREATEST = UUID(int=0), UUID(int=(1 << 128) - 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRules:
    """
    What to keep of jobs whose type declares nothing.

    Attributes:
        keep: Seconds after its end that a job's row lives; None: for ever.
        keep_result: Seconds after its end that input, result, checkpoint and answers live; None: as long as the row.
        step: Rows looked at in one step.

    Raises:
        SettingsError: A value is not allowed.
    """

    keep: float | None = 90 * DAY
    keep_result: float | None = 30 * DAY
    step: int = 500

    def __post_init__(self) -> None:
        for name in ("keep", "keep_result"):
            value = getattr(self, name)
            if value is not None and not 0 < value < math.inf:
                raise SettingsError(f"{name} {value} is not allowed: seconds above 0; None keeps for ever")
        if not 1 <= self.step <= 10_000:
            raise SettingsError(f"step {self.step} is not allowed: 1 to 10000")

    @property
    def seconds(self) -> dict[str, float]:
        """Return both as the statements take them: for ever is infinity."""
        return {
            "keep": math.inf if self.keep is None else self.keep,
            "keep_result": math.inf if self.keep_result is None else self.keep_result,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """
    How things stand when a turn begins, by the database's clock.

    Attributes:
        since: When the turn before began that was brought to its end; None: none was.
        whole: The same of the last one that went over all ids.
        terms: All the seconds after which something goes, of any type; none is infinite.
    """

    now: datetime
    since: datetime | None
    whole: datetime | None
    terms: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """Ids that are looked at: above *after*, up to *until*."""

    after: UUID
    until: UUID


def windows(facts: Facts, *, whole: bool = False) -> tuple[Window, ...]:
    """
    Return which ids to look at, in their order, without overlaps.

    An id is made before its job ends, so nothing is due that is younger than the shortest term. What has come of age since the
    turn before lies, for each term, in one narrow stretch; all else was looked at by then, but for what *whole* is for: asked for,
    or a day after the last such turn, it goes over all.
    """
    if not facts.terms:
        return ()
    if whole or facts.since is None or facts.whole is None or facts.now - facts.whole >= WHOLE:
        return (
            Window(after=LEAST, until=_bound(facts.now, min(facts.terms))),
            Window(after=_bound(facts.now + AHEAD, 0.0), until=GREATEST),
        )
    found: list[Window] = []
    for term in sorted(facts.terms, reverse=True):
        after, until = _bound(facts.since - LATE, term), _bound(facts.now, term)
        if found and after < found[-1].until:
            found[-1] = Window(after=found[-1].after, until=until)
        else:
            found.append(Window(after=after, until=until))
    return tuple(found)


def is_whole(made: tuple[Window, ...]) -> bool:
    """Return whether *made* goes over all ids."""
    return bool(made) and made[-1].until == GREATEST


def _bound(now: datetime, term: float) -> UUID:
    """Return the least id of *term* seconds before *now*; that of 1970 where that is earlier."""
    at = now.timestamp() - term
    return LEAST if at <= 0 else uuid7_from(datetime.fromtimestamp(at, now.tzinfo), bytes(10))


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """
    What came of one step.

    Attributes:
        ours: The turn was still ours; without it nothing was done.
        seen: Rows looked at.
        after: The last id looked at; None: there was none.
        gone: By type, how many jobs went and of how many what they held went.
    """

    ours: bool
    seen: int
    after: UUID | None
    gone: dict[str, tuple[int, int]]


class Left(NamedTuple):
    """
    What nobody sees to, each counted up to a bound.

    Attributes:
        leaseless: Jobs that run under a lease that is over for more than a minute.
        overdue: Jobs that are due for more than a minute and whose message is not sent.
        unanswered: Outside effects without answer of jobs that will not run again by themselves.
    """

    leaseless: int
    overdue: int
    unanswered: int


@dataclass(slots=True, kw_only=True)
class Turn:
    """What one turn did: by type, how many jobs went, and of how many their input, result and answers."""

    whole: bool = False
    seen: int = 0
    jobs: dict[str, int] = field(default_factory=dict)
    results: dict[str, int] = field(default_factory=dict)

    def add(self, step: Step) -> None:
        """Add what a step did."""
        self.seen += step.seen
        for name, (jobs, results) in step.gone.items():
            for counts, count in ((self.jobs, jobs), (self.results, results)):
                if count:
                    counts[name] = counts.get(name, 0) + count

    def as_dict(self) -> dict[str, Any]:
        """Return what the table and `--json` hold."""
        return {name: getattr(self, name) for name in ("whole", "seen", "jobs", "results")}
