"""
Measure jobs beside procrastinate, DBOS and Celery, in turns, on a database, a broker and a Redis of the benchmark's own.

  python -m bench.jobs --write                  everything, some half an hour, into docs/performance.md
  python -m bench.jobs --list                   who can be measured here, and why others can't
  python -m bench.jobs --only drain,start       these parts: submit, drain, start, history, isolation, recovery
  python -m bench.jobs --only drain --who "packhorse,dbos" --rounds 5
                                                those whose names begin so
  python -m bench.jobs --smoke                  everything at a hundredth of its size: does it run?
Rates compare only within one run, and only on a quiet machine: judge by the ratios, and by how far min and max lie apart.
Each contestant has processes of its own, a fresh database on the same server, and finds its own jobs alone. Rates are told by each
one's own record of when jobs ended, without the first tenth. Processor time and memory are taken from outside.
"""

import argparse
import os
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any

from bench.jobs import page, report
from bench.jobs.contestants import CONTESTANTS, DEFAULT, SUBMITTING, Contestant
from bench.jobs.ground import Ground, private_ground
from bench.jobs.history import both
from bench.jobs.isolation import beside
from bench.jobs.recovery import recovered
from bench.jobs.runs import Drained, Submitted, drained, submitted
from bench.jobs.starting import Started, started
from bench.processor.report import Goal, goal_table
from bench.relay.report import plain
from bench.turns import rounds

PARTS = ("submit", "drain", "start", "history", "isolation", "recovery")
SIZES = {"jobs": 50_000, "one": 3_000, "finished": 1_000_000, "busy": 200}


def options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench.jobs", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--only", default=",".join(PARTS), metavar="PARTS", help="parts, with commas between")
    add("--who", default="", metavar="NAMES", help="beginnings of contestants' names, with commas between")
    add("--rounds", type=int, default=3, help="how often everybody has a turn [%(default)s]")
    add(
        "--jobs",
        type=int,
        default=SIZES["jobs"],
        help="of a backlog; slow contestants get fewer [%(default)s]",
    )
    add("--one", type=int, default=SIZES["one"], help="submitted in a transaction each [%(default)s]")
    add("--rate", type=float, default=10, help="jobs a second for latency [%(default)s]")
    add("--seconds", type=float, default=20, help="of each run at that rate [%(default)s]")
    add("--finished", type=int, default=SIZES["finished"], help="jobs in a full history [%(default)s]")
    add("--busy", type=int, default=SIZES["busy"], help="long jobs beside small ones [%(default)s]")
    add("--lease", type=float, default=30, help="seconds of a lease, for recovery [%(default)s]")
    add("--kills", type=int, default=3, help="for recovery [%(default)s]")
    add("--smoke", action="store_true", help="a hundredth of everything, one round")
    add("--write", action="store_true", help="write tables and pictures to docs/performance.md")
    add("--list", action="store_true", help="say who can be measured, and end")
    given = parser.parse_args(arguments)
    if unknown := set(given.only.split(",")) - set(PARTS):
        parser.error(f"--only {','.join(sorted(unknown))}: the parts are {', '.join(PARTS)}")
    if given.smoke:
        given.rounds, given.seconds, given.lease, given.kills, given.busy = 1, 3, 5, 1, 10
        given.jobs, given.one, given.finished = given.jobs // 20, given.one // 20, given.finished // 100
    return given


def chosen(contestants: Sequence[Contestant], who: str) -> dict[str, Contestant]:
    """Return the contestants that were asked for and can run, by their names; say why others can't."""
    starts = [start.strip() for start in who.split(",") if start.strip()]
    found = {}
    for contestant in contestants:
        if starts and not any(contestant.name.startswith(start) for start in starts):
            continue
        if (why := contestant.missing()) is None:
            found[contestant.name] = contestant
        else:
            print(f"skipped: {contestant.name}: {why}", flush=True)
    return found


def show_rate(run: Submitted | Drained) -> str:
    return f"{run.rate:>9,.0f} jobs/s  {run.cpu:6.1f} + {run.database:6.1f} µs"


def show_start(run: Started) -> str:
    return f"p50 {run.p50:.1f}  p99 {run.p99:.1f} ms  {run.core:.3f} of a core  {run.unseen} did not begin"


def show_aged(run: Any) -> str:
    return show_start(run) if isinstance(run, Started) else show_rate(run)


class Bench:
    """One run of everything that was asked for; each part is printed, and written down if that was asked for."""

    def __init__(self, ground: Ground, given: argparse.Namespace) -> None:
        self.ground, self.given = ground, given
        self.who = chosen(CONTESTANTS, given.who)
        self.goals: list[Goal] = []

    def _put(self, name: str, table: list[str], told: str) -> None:
        print("\n" + plain(table) + "\n", flush=True)
        if self.given.write:
            page.put_table(name, told, table)

    def _submitted_all(
        self, who: Mapping[str, Contestant], per: int, processes: int
    ) -> Mapping[str, Sequence[Any]]:
        def run(name: str) -> Submitted:
            return self._submitted(who[name], per, processes)

        return rounds(list(who), self.given.rounds, run, show_rate)

    def _submitted(self, contestant: Contestant, per: int, processes: int) -> Submitted:
        count = self.given.one if per == 1 else int(self.given.jobs * max(contestant.share, 0.2))
        with contestant.standing(self.ground) as place:
            return submitted(self.ground, contestant, place, count, per, processes)

    def submit(self) -> None:
        who, found = chosen(SUBMITTING, self.given.who), {}
        for per, what in ((1, "one transaction each"), (100, "100 a transaction")):
            for processes, by in ((1, "1 process"), (4, "4 processes")):
                print(f"{what}, {by}", flush=True)
                found[f"{what}, {by}"] = self._submitted_all(who, per, processes)
        told = (
            f"{self.given.rounds} rounds; {self.given.one:,} jobs one by one, {self.given.jobs:,} in hundreds"
        )
        self._put("submit", report.submit_table(found), told)
        self.goals += report.goals_of_submitting(found)

    def _drained(self, name: str) -> Drained:
        who, _, workers = name.partition(", ")
        contestant = self.who[who]
        with contestant.standing(self.ground) as place:
            jobs = int(self.given.jobs * contestant.share)
            return drained(self.ground, contestant, place, jobs, int(workers.partition(" ")[0]))

    def drain(self) -> None:
        names = [f"{name}, {workers}" for workers in ("1 worker", "2 workers") for name in self.who]
        found = rounds(names, self.given.rounds, self._drained, show_rate)
        if self.given.write:
            page.draw(
                "drain", "No-op jobs from accepted to finished", "jobs a second", found, lambda run: run.rate
            )
        told = f"{self.given.rounds} rounds; {self.given.jobs:,} jobs; slow contestants fewer, at least {self.given.jobs // 20:,}"
        self._put("drain", report.drain_table(found), told)
        self.goals += report.goals_of_draining(found)

    def _started(self, name: str) -> Started:
        with self.who[name].standing(self.ground) as place:
            return started(self.ground, self.who[name], place, self.given.rate, self.given.seconds)

    def start(self) -> None:
        found = rounds(list(self.who), self.given.rounds, self._started, show_start)
        if self.given.write:
            page.draw(
                "start", "From the submission to the body, p50", "milliseconds", found, lambda run: run.p50
            )
        told = f"{self.given.rounds} rounds; {self.given.rate:g} jobs/s for {self.given.seconds:g} s"
        self._put("start", report.start_table(found), told)
        self.goals += report.goals_of_starting(found)

    def history(self) -> None:
        given, full = self.given, f"{self.given.finished:,} finished"
        with both(self.ground, given, full) as (lines, runs):
            found = rounds(list(runs), given.rounds, lambda name: runs[name](), show_aged)
        self._put(
            "history", report.history_table(found, lines, full), f"{given.rounds} rounds; {given.jobs:,} jobs"
        )
        self.goals += report.goals_of_history(found, lines, full)

    def isolation(self) -> None:
        contestant, given = self.who[DEFAULT], self.given
        lines = {"small ones alone": 0, f"beside {given.busy:,} long ones": given.busy}
        found = rounds(
            list(lines), given.rounds,
            lambda name: beside(self.ground, contestant, lines[name], given.rate, given.seconds), show_start,
        )  # fmt: skip
        told = f"{given.rounds} rounds; {given.rate:g} small jobs/s for {given.seconds:g} s; long ones take 2 s each"
        self._put("isolation", report.start_table(found), told)

    def recovery(self) -> None:
        contestant = self.who[DEFAULT]
        found = rounds(
            ["kill -9"], self.given.kills, lambda _: recovered(self.ground, contestant, self.given.lease),
            lambda run: f"{run.after:.1f} s",
        )  # fmt: skip
        self._put("recovery", report.recovery_table(found["kill -9"]), f"{self.given.kills} kills")
        self.goals += report.goals_of_recovery(found["kill -9"])

    def run(self) -> None:
        """Do the parts in their order; a part that fails leaves the others theirs."""
        wanted = self.given.only.split(",")
        for part in (part for part in PARTS if part in wanted):
            print(f"{time.strftime('%H:%M:%S')}  {part}  load {os.getloadavg()[0]:.1f}", flush=True)
            try:
                getattr(self, part)()
            except Exception as error:
                print(f"{part} failed: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
        table = goal_table(self.goals)
        print("\n" + plain(table) + "\n", flush=True)
        if self.given.write and set(wanted) == set(PARTS) and not self.given.who:
            page.put_table("goals", f"{self.given.rounds} rounds", table)


def main() -> None:
    given = options(sys.argv[1:])
    if given.list:
        print("\n".join(chosen(CONTESTANTS, given.who)))
        return
    with private_ground() as ground:
        Bench(ground, given).run()


if __name__ == "__main__":
    main()
