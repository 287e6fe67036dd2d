"""
One confirmed set in hand: ask for portions, find outcomes, halt or end, each in one transaction that asks for the lease first.

Order of effects, and what a kill between two of them leaves:

1. A portion: rows of inbox and quarantine, the audit, the members' state and the keys are one transaction. Before its commit
   nothing has happened; after it the members are `asked` for whoever goes on.
2. The copies are sent by the group's processors, which find what is ordered in the tables.
3. Outcomes are found in the inbox, by whoever holds the lease. What a killed runner did not find the next one finds.

So no member is asked for twice, and none is left out, whoever is killed when.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from packhorse.console.acting.postgres import Database, Rows
from packhorse.console.redriving import sql_asking as sql
from packhorse.console.redriving.deciding import FULL, Ask, Plan, Tally, decide
from packhorse.console.redriving.postgres import progress_of
from packhorse.console.redriving.tallying import asked, proved, tallied
from packhorse.console.running.deciding import Bucket, End, Halt, Wait
from packhorse.console.running.lease import Lease
from packhorse.console.running.loop import Step
from packhorse.console.running.postgres import Leases
from packhorse.core.errors import DatabaseUnavailable

STUCK_EVERY = 1.0
"""Seconds between two looks for members that will have no outcome by themselves."""
_TRIES = 5
PORTION_TIMEOUT = 60.0
"""Seconds that one portion may take: a key with very many members is one."""


class Point(StrEnum):
    """Named points at which a test may look in or kill; nothing happens at them in production."""

    BEFORE_COMMIT = "before-commit"
    """A portion is written, and not committed."""
    AFTER_COMMIT = "after-commit"
    """A portion is committed, and nobody was told."""
    AFTER_PROOF = "after-proof"
    """Outcomes are on record."""


Signal = Callable[[Point], None]


def _no_signal(point: Point) -> None:
    del point


@dataclass(frozen=True, slots=True, kw_only=True)
class _Stand:
    """
    How a set stands, carried from step to step so that none counts the whole set.

    A step that breaks off leaves none: whether its commit was done is not known, and the next one counts by the tables.
    """

    plan: Plan
    tally: Tally
    bucket: Bucket = FULL


class RedriveShell:
    """
    Be the shell of one redrive that was taken.

    Args:
        leases: Under which everything is written.
        lease: Of this run.
        signal: For tests.
    """

    def __init__(
        self, database: Database, leases: Leases, lease: Lease, *, signal: Signal = _no_signal
    ) -> None:
        self._database = database
        self._leases = leases
        self._lease = lease
        self._signal = signal
        self._stuck_at = 0.0
        self._stand: _Stand | None = None

    def step(self, now: float) -> Step:
        """Find outcomes, decide, and carry it out; raises what `loop.Shell.step` says."""
        stand, self._stand = self._stand or self._counted(), None
        if stand.tally.open:
            stand = self._prove(stand, now)
        bucket = stand.bucket.filled(stand.plan.rate, most=stand.plan.burst, now=now)
        stand, command = replace(stand, bucket=bucket), decide(stand.plan, stand.tally, bucket)
        if isinstance(command, Ask):
            stand = self._ask(stand, command.stage, command.count)
        self._stand = stand
        match command:
            case Ask():
                return Step()
            case Wait(seconds=seconds):
                return Step(wait=seconds)
            case Halt(said=said):
                self._leases.close(self._lease, state="halted", said=said, final=False)
                return Step(over=True)
            case End():
                self._leases.close(self._lease, state="ended", said=None, final=True)
                return Step(over=True)

    def progress(self) -> str:
        """Return how far the set is."""
        with self._database.working() as rows:
            return progress_of(rows, self._lease.run).line

    def close(self) -> None:
        """Nothing is open."""

    def _values(self) -> dict[str, object]:
        return {"id": self._lease.run}

    def _counted(self) -> "_Stand":
        """Return how the set stands by the tables."""
        with self._leases.writing(self._lease) as rows:
            run = rows.all(sql.RUN, self._values())[0]
            counts = rows.all(sql.COUNTS, self._values())
        first = run["first_stage"]
        found = ((row["stage"], row["state"], row["refused"], row["n"]) for row in counts)
        return _Stand(
            plan=Plan(
                rate=run["rate"], stages=tuple(run["stages"]), most_failures=run["most_failures"], first=first
            ),
            tally=tallied(found, first=first),
        )

    def _prove(self, stand: "_Stand", now: float) -> "_Stand":
        with self._leases.writing(self._lease) as rows:
            rows.all(sql.BY_INDEX)
            found = rows.all(sql.PROVE, self._values())
            if now - self._stuck_at >= STUCK_EVERY:
                self._stuck_at = now
                found += rows.all(sql.FIND_STUCK, self._values())
                found += rows.all(sql.FIND_FORGOTTEN, self._values())
        if found:
            self._signal(Point.AFTER_PROOF)
        seen = ((row["stage"], row["state"], row["refused"]) for row in found)
        return replace(stand, tally=proved(stand.tally, seen))

    def _ask(self, stand: "_Stand", stage: int, count: int) -> "_Stand":
        with self._leases.writing(self._lease, timeout=PORTION_TIMEOUT) as rows:
            opened, closed = ask(rows, self._lease.run, stage=stage, count=count)
            self._signal(Point.BEFORE_COMMIT)
        self._signal(Point.AFTER_COMMIT)
        assert opened or closed, f"redrive {self._lease.run} counts waiting members that are not there"
        tally = asked(stand.tally, stage, opened=opened, closed=closed)
        return replace(stand, tally=tally, bucket=stand.bucket.taken(opened))


def ask(rows: Rows, redrive_id: int, *, stage: int, count: int) -> tuple[int, int]:
    """
    Ask for the next *count* members of a set and those of the same keys; return how many were, and how many were not.

    Inbox rows are locked first and sorted, then the quarantined messages; the audit is written; keys come last. Of one key the
    first member becomes the head and the others wait behind it, in the places where they first stood: they take effect in
    their first order, then what was parked behind them. The commit makes all of it true at once.
    """
    run = {"id": redrive_id}
    rows.all(sql.BY_INDEX)
    rows.all(sql.ACT_AS, run)
    portion = _portion(rows, run | {"count": count})
    left = {row["ordinal"] for row in rows.all(sql.LEAVE_BEHIND, run | {"ordinals": portion})}
    open_ = [one for one in portion if one not in left]
    locked = rows.all(sql.LOCK_AS_FROZEN, run | {"ordinals": open_})
    frozen = [row["ordinal"] for row in locked]
    if moved := sorted(set(open_) - set(frozen)):
        rows.count(sql.MARK_MOVED, run | {"ordinals": moved})
    if frozen:
        values = run | {"ordinals": frozen, "stage": stage}
        for claim in (sql.ORDER_ATTEMPTS, sql.CLAIM_REDRIVES, sql.RECORD_REDRIVES, sql.MARK_ASKED):
            touched = rows.count(claim, values)
            assert touched == len(frozen), f"{touched} rows of {len(frozen)} were as they were locked"
        rows.count(sql.MOVE_STAGE, values)
        _take_keys(rows, values, locked)
    return len(frozen), len(portion) - len(frozen)


def _portion(rows: Rows, values: dict[str, Any]) -> list[int]:
    first = rows.all(sql.PORTION, values)
    found = [row["ordinal"] for row in first]
    if first and first[-1]["key_hash"] is not None:
        found += [row["ordinal"] for row in rows.all(sql.REST_OF_KEY, values | first[-1])]
    return found


def _take_keys(rows: Rows, values: dict[str, Any], members: list[dict[str, Any]]) -> None:
    """
    Park the members' keys and let those of each stand in order.

    Keys that are there are locked first, then new ones are put, then all are locked: one that somebody put meanwhile must be
    held too before a follower goes behind it, and one that was let go meanwhile is put again.
    """
    units = Counter((row["group_id"], row["topic"], row["key_hash"]) for row in members if row["key_hash"])
    if not units:
        return
    rows.count(sql.LOCK_KEYS, values)
    for _ in range(_TRIES):
        rows.count(sql.PARK_KEYS, values)
        if rows.count(sql.LOCK_KEYS, values) == len(units):
            break
    else:
        raise DatabaseUnavailable(
            "parked keys come and go too quickly to hold them; nothing was changed, try again"
        )
    if max(units.values()) > 1:
        rows.count(sql.TAKE_HEADS, values)
    rows.count(sql.FOLLOW, values)
    rows.count(sql.WAKE_KEYS, values)
