"""How a replay stands, as its rows say. Pure."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from packhorse.console.replaying.checks import Check
from packhorse.console.replaying.wanted import Wanted

PROVED_GOOD = ("done", "skipped", "discarded")
PROVED_BAD = ("quarantine", "uncertain")


class Counted(NamedTuple):
    """Messages of one outcome; `behind` of them wait for another message, or for a person."""

    n: int
    behind: int


class Part(NamedTuple):
    """One partition's range, and how far it is."""

    partition: int
    first: int
    position: int
    past: int
    gone: int
    matches: int | None
    counts: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """
    One replay.

    Attributes:
        counts: What the plan has counted.
        expired: It was planned and not run in time.
        alive: A runner works on it now.
        unproved: What was handed over and is not counted yet, by outcome.
        held_keys: Keys that it holds, since more of them is to come.
        waiting_behind: Live messages of these keys that wait for it.
    """

    id: int
    state: str
    topic_id: UUID
    wanted: Wanted
    counts: Mapping[str, Any]
    checks: tuple[Check, ...]
    planned_by: str
    planned_at: datetime
    expires_at: datetime
    expired: bool
    confirmed_by: str | None
    confirmed_at: datetime | None
    why: str | None
    said: str | None
    runner: str | None
    alive: bool
    changed_at: datetime
    ended_at: datetime | None
    parts: tuple[Part, ...]
    unproved: Mapping[str, Counted] = field(default_factory=dict)
    held_keys: int = 0
    waiting_behind: int = 0

    @property
    def progress(self) -> "Progress":
        """Return how far it is."""
        return progress_of(self.parts, self.unproved)


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """
    How far a replay is.

    Attributes:
        offsets, passed: Of the range, and up to the position.
        matches: Wanted messages, as planned.
        handed: Given to the group.
        done, skipped, discarded, failed: Proved by an outcome; failed ones are in quarantine or uncertain.
        retry, parked: Not proved yet.
        resting: Of those, what waits in retry, behind another message, or for a person.
        duplicates: Not handed over, since done before.
        given_up: Not handed over, since discarded by a person, with or without an edited copy, or purged.
        older: Not handed over, since older than what the inbox keeps.
        open, reused: Not handed over, since it waits elsewhere; since its id is another's.
        moved: Not handed over, since newer messages of its key were done after the plan.
    """

    offsets: int
    passed: int
    matches: int
    handed: int
    done: int
    skipped: int
    discarded: int
    failed: int
    retry: int
    parked: int
    resting: int
    duplicates: int
    given_up: int
    older: int
    open: int
    reused: int
    moved: int

    @property
    def unproved(self) -> int:
        """Return how many have no outcome yet."""
        return self.handed - self.done - self.skipped - self.discarded - self.failed


def progress_of(parts: Sequence[Part], unproved: Mapping[str, Counted]) -> Progress:
    """Return how far a replay is: what was counted, and what is proved but not counted yet."""
    counts: Counter[str] = Counter()
    for part in parts:
        counts.update(part.counts)
    for outcome, found in unproved.items():
        counts[outcome] += found.n
    retry, parked = unproved.get("retry", Counted(0, 0)), unproved.get("parked", Counted(0, 0))
    return Progress(
        offsets=sum(part.past - part.first for part in parts),
        passed=sum(part.position - part.first for part in parts),
        matches=sum(part.matches or 0 for part in parts),
        handed=counts["handed"],
        done=counts["done"],
        skipped=counts["skipped"],
        discarded=counts["discarded"],
        failed=sum(counts[name] for name in PROVED_BAD),
        retry=retry.n,
        parked=parked.n,
        resting=retry.n + parked.behind,
        duplicates=counts["was-done"],
        given_up=counts["was-discarded"] + counts["was-edited"] + counts["was-purged"],
        older=counts["was-older"],
        open=counts["was-open"],
        reused=counts["was-reused"],
        moved=counts["moved"],
    )


def progress_line(now: Progress) -> str:
    """Return how far a replay is, in one line."""
    parts = [
        f"{now.passed} of {now.offsets} offsets",
        f"{now.handed} of {now.matches} handed over",
        f"{now.done + now.skipped + now.discarded} proved",
    ]
    for n, what in (
        (now.failed, "stopped"),
        (now.resting, "resting"),
        (now.duplicates, "done before"),
        (now.given_up, "given up by a person"),
        (now.older, "older than the inbox keeps"),
        (now.open, "waiting elsewhere"),
        (now.moved, "of keys that have moved on"),
        (now.reused, "with a used id"),
    ):
        if n:
            parts.append(f"{n} {what}")
    return ", ".join(parts)


def failed_in(parts: Sequence[Part]) -> int:
    """Return how many of what was handed over are counted as stopped."""
    return sum(part.counts.get(name, 0) for part in parts for name in PROVED_BAD)


def state_said(run: int, state: str, said: str | None) -> str:
    """
    Return how replay *run* stands, in words.

    >>> state_said(3, "paused", None)
    'replay 3 is paused'
    """
    return f"replay {run} is {state}" + (f": {said}" if said else "")
