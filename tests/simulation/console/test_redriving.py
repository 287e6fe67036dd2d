"""
The pure half of a redrive over a table in memory, through crashes, lost leases and returning failures, from one seed.

What the statements do is played by `Table`: a portion takes whole keys, a crash before the commit undoes it, one after it does not. What
the runner remembers is lost with it and counted anew by the next one, with the product's own functions.
"""

import random
from collections import Counter
from dataclasses import dataclass, field

import pytest

from packhorse.console.redriving.deciding import FULL, Ask, Plan, Tally, decide
from packhorse.console.redriving.tallying import asked, proved, tallied
from packhorse.console.running.deciding import Bucket, End, Halt, Wait

MEMBERS, STEPS = 150, 20_000


class Crash(BaseException):
    """The runner dies."""


@dataclass
class Member:
    """A row of redrive_member, and when it was asked for."""

    ordinal: int
    key: int
    state: str = "waiting"
    stage: int | None = None
    at: float = 0.0
    asks: int = 0


@dataclass
class Table:
    """The members of one set, and the group that deals with them."""

    members: list[Member]
    chance: random.Random
    failing: float = 0.0
    moved: frozenset[int] = frozenset()
    ran: list[int] = field(default_factory=list)
    broken: bool = False

    def counts(self) -> list[tuple[int | None, str, bool, int]]:
        """Count as the statement does."""
        found = Counter((one.stage, one.state) for one in self.members)
        return [(stage, state, False, count) for (stage, state), count in found.items()]

    def ask(self, stage: int, count: int, now: float, *, dies: str | None) -> tuple[int, int]:
        """Ask for a portion in one transaction."""
        waiting = [one for one in self.members if one.state == "waiting"]
        portion = waiting[:count]
        last = portion[-1]
        portion += [one for one in waiting[count:] if one.key == last.key]
        if dies == "before":
            raise Crash
        opened = 0
        for one in portion:
            if one.ordinal in self.moved:
                one.state = "moved"
                continue
            one.state, one.stage, one.at = "asked", stage, now
            one.asks += 1
            opened += 1
        if dies == "after":
            raise Crash
        return opened, len(portion) - opened

    def run(self, now: float) -> list[tuple[int, str]]:
        """Let the group deal with some of what is asked for: of a key the first alone, later ones once it is done."""
        done = []
        for one in self.members:
            if one.state != "asked" or self.chance.random() < 0.5:
                continue
            if any(other.key == one.key and other.state == "asked" for other in self.members[: one.ordinal]):
                continue
            bad = self.broken or self.chance.random() < self.failing
            one.state = "unproved-bad" if bad else "unproved-good"
            self.ran.append(one.ordinal)
            done.append((one.ordinal, one.state))
        return done

    def prove(self) -> list[tuple[int, str, bool]]:
        """Find outcomes as the statement does."""
        found = []
        for one in self.members:
            if one.state.startswith("unproved"):
                one.state = one.state.removeprefix("unproved-")
                assert one.stage is not None
                found.append((one.stage, one.state, False))
        return found

    def visible(self) -> list[tuple[int | None, str, bool, int]]:
        """Count what a new runner sees: what nobody has found yet is still asked for."""
        return [
            (stage, "asked" if state.startswith("unproved") else state, refused, count)
            for stage, state, refused, count in self.counts()
        ]


def members(chance: random.Random) -> list[Member]:
    """Return members in the order of a preview: keys with several come last, each together."""
    keys = [1] * chance.randint(0, MEMBERS) + [chance.randint(2, 5) for _ in range(chance.randint(0, 20))]
    found: list[Member] = []
    for key, size in enumerate(sorted(keys)):
        found += [Member(len(found) + n, key) for n in range(size)]
    return found


def plan_of(chance: random.Random, first: int = 0) -> Plan:
    return Plan(rate=chance.choice([5.0, 60.0, 500.0]), stages=(1, 5, 20, 100), first=first)


def worked(table: Table, plan: Plan, chance: random.Random, faults: float) -> tuple[str, list[str], float]:
    """Work on the set until it ends or halts, each crash followed by another runner; return how it ended."""
    log: list[str] = []
    now = 0.0
    while True:
        tally, bucket = tallied(table.visible(), first=plan.first), FULL
        try:
            for _ in range(STEPS):
                now += chance.choice([0.0, 0.05, 0.3])
                tally = proved(tally, table.prove()) if tally.open else tally
                bucket = bucket.filled(plan.rate, most=plan.burst, now=now)
                command = decide(plan, tally, bucket)
                log.append(f"{now:.2f} {command}")
                match command:
                    case Ask(stage=stage, count=count):
                        check_stage(table, plan, stage, tally)
                        dies = chance.choice(["before", "after"]) if chance.random() < faults else None
                        opened, closed = table.ask(stage, count, now, dies=dies)
                        bucket = bucket.taken(opened)
                        tally = asked(tally, stage, opened=opened, closed=closed)
                    case Wait(seconds=seconds):
                        now += seconds
                    case Halt():
                        return "halted", log, now
                    case End():
                        return "ended", log, now
                table.run(now)
                _may_die(chance, faults / 4)
            raise AssertionError("neither ended nor halted")
        except Crash:
            log.append(f"{now:.2f} crash")
            now += 15.0


def _may_die(chance: random.Random, share: float) -> None:
    if chance.random() < share:
        raise Crash


def check_stage(table: Table, plan: Plan, stage: int, tally: Tally) -> None:
    """No stage begins before the one before is proved, unless it is steady; and what is in flight is bounded."""
    if not plan.is_steady(stage):
        earlier = [one for one in table.members if one.stage is not None and plan.first <= one.stage < stage]
        assert not [one for one in earlier if one.state == "asked"]
    else:
        assert tally.open < plan.window
    bad = Counter(one.stage for one in table.members if one.state == "bad")
    for at, count in bad.items():
        assert at is None or at < plan.first or count <= plan.borne(at), (
            f"asked on though stage {at} had {count}"
        )


@pytest.mark.case("O-03")
@pytest.mark.case("O-04")
@pytest.mark.case("O-06")
@pytest.mark.parametrize("seed", range(300))
def test_none_goes_twice_or_is_left_out_and_keys_keep_their_order(seed: int) -> None:
    """Fails when a stage's tally is lost with its runner, a crash asks again, or the end comes before the last outcome."""
    chance = random.Random(seed)
    found = members(chance)
    moved = frozenset(one.ordinal for one in found if chance.random() < 0.1)
    failing = chance.choice([0.0, 0.0, 0.02, 0.3])
    table = Table(found, chance, failing=failing, moved=moved)
    plan = plan_of(chance)
    for _ in range(500):
        ending, log, _ = worked(table, plan, chance, faults=chance.choice([0.0, 0.05, 0.3]))
        told = f"seed {seed}: {log[-20:]}"
        if ending == "ended":
            break
        assert any(one.state == "bad" for one in found), told
        table.failing = 0.0  # a person has mended it, and resumes
        plan = plan_of(chance, first=1 + max(one.stage for one in found if one.stage is not None))
    assert ending == "ended", told
    assert all(one.asks == (one.ordinal not in moved) for one in found), told
    assert Counter(table.ran) == Counter(one.ordinal for one in found if one.ordinal not in moved), told
    assert {one.state for one in found} <= {"good", "bad", "moved"}, told
    for key in {one.key for one in found}:
        of_key = [ordinal for ordinal in table.ran if found[ordinal].key == key]
        assert of_key == sorted(of_key), told


@pytest.mark.case("O-03")
@pytest.mark.parametrize("seed", range(100))
def test_failures_that_return_in_the_middle_halt_within_what_is_in_flight(seed: int) -> None:
    """Fails when the steady state does not look at failures, or asks in the breath in which it sees them."""
    chance = random.Random(seed)
    table = Table([Member(n, n) for n in range(4_000)], chance)
    plan = Plan(rate=500.0, stages=(1, 5, 20, 100))
    bucket, now, tally = Bucket(tokens=1.0, at=0.0), 0.0, tallied(table.visible(), first=0)
    breaks = chance.randint(0, 1_500)
    while True:
        now += 0.1
        tally = proved(tally, table.prove())
        bucket = bucket.filled(plan.rate, most=plan.burst, now=now)
        table.broken = len(table.ran) >= breaks
        match decide(plan, tally, bucket):
            case Ask(stage=stage, count=count):
                opened, _ = table.ask(stage, count, now, dies=None)
                bucket = bucket.taken(opened)
                tally = asked(tally, stage, opened=opened, closed=0)
            case Halt():
                break
            case End():
                raise AssertionError(f"seed {seed}: ended although everything failed from {breaks} on")
        table.run(now)
    gone = sum(one.asks for one in table.members)
    assert gone <= breaks + 2 * plan.window, f"seed {seed}: {gone} asked for, broken from {breaks} on"


@pytest.mark.parametrize("rate", [0.5, 20.0, 3_000.0])
def test_the_rate_is_kept_and_reached(rate: float) -> None:
    """Fails when tokens are not taken, or a wait is so long that the rate is never reached."""
    plan = Plan(rate=rate, stages=(10_000_000,))
    bucket, now, gone = Bucket(tokens=1.0, at=0.0), 0.0, 0
    while now < 60.0:
        bucket = bucket.filled(plan.rate, most=plan.burst, now=now)
        match decide(plan, Tally(waiting=10_000_000), bucket):
            case Ask(count=count):
                bucket, gone = bucket.taken(count), gone + count
            case Wait(seconds=seconds):
                now += seconds
    assert 0.9 * rate * 60 <= gone <= rate * 60 + max(1.0, min(rate, 1_000.0)) + 1
