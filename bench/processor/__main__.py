"""
Measure the processor beside loops by hand and other libraries, in turns, on a real broker and database of the benchmark's own.

  python -m bench.processor --write             everything, some twelve minutes, into docs/performance.md
  python -m bench.processor --list              who can be measured here, and why others can't
  python -m bench.processor --only backlog,slow these parts: backlog, bytes, latency, takeover, failing, slow, inbox, parked,
                                                processes
  python -m bench.processor --only backlog --who "packhorse,loop" --rounds 5
                                                those whose names begin so
Rates compare only within one run, and only on a quiet machine: judge by the ratios, and by how far min and max lie apart.
Each contestant is a process of its own with a fresh database and an unused consumer group, and reads the same topic. Rates
are told by the database: from the first result to the last by the time at which each row was put in, without the first
tenth. Processor time and memory are taken from outside.
"""

import argparse
import sys
import time
from collections.abc import Callable, Sequence

from bench.processor import page, report
from bench.processor.contestants import BATCH, CONTESTANTS, LOOP_INBOX, PIPELINED, PLAIN, Contestant
from bench.processor.ground import Ground, private_ground
from bench.processor.latency import latency
from bench.processor.runs import Throughput, throughput
from bench.processor.scenarios import SCENARIOS, Sizes
from bench.processor.takeover import takeover
from bench.relay.report import plain
from bench.turns import rounds

LATENCY = (PLAIN, PIPELINED, BATCH, LOOP_INBOX, report.LATE_ACK)
PARTS = ("backlog", "bytes", "latency", "takeover", *SCENARIOS)


def options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench.processor",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--only", default=",".join(PARTS), metavar="PARTS", help="parts, with commas between")
    add("--who", default="", metavar="NAMES", help="beginnings of contestants' names, with commas between")
    add("--rounds", type=int, default=3, help="how often everybody has a turn [%(default)s]")
    add("--records", type=int, default=150_000, help="of a backlog; slow contestants get fewer [%(default)s]")
    add("--scenario-records", type=int, default=60_000, help="of a scenario's [%(default)s]")
    add("--rate", type=int, default=200, help="messages a second for latency [%(default)s]")
    add("--seconds", type=float, default=6, help="of each run at that rate [%(default)s]")
    add("--kills", type=int, default=2, help="rounds of kill -9 [%(default)s]")
    add("--inbox-rows", type=int, default=10_000_000, help="[%(default)s]")
    add("--parked-keys", type=int, default=100_000, help="[%(default)s]")
    add("--write", action="store_true", help="write tables and pictures to docs/performance.md")
    add("--list", action="store_true", help="say who can be measured, and end")
    given = parser.parse_args(arguments)
    if unknown := set(given.only.split(",")) - set(PARTS):
        parser.error(f"--only {','.join(sorted(unknown))}: the parts are {', '.join(PARTS)}")
    return given


def chosen(who: str) -> list[Contestant]:
    """Return the contestants that were asked for and can run; say why others can't."""
    starts = [start.strip() for start in who.split(",") if start.strip()]
    found = []
    for contestant in CONTESTANTS:
        if starts and not any(contestant.name.startswith(start) for start in starts):
            continue
        if (why := contestant.missing()) is None:
            found.append(contestant)
        else:
            print(f"skipped: {contestant.name}: {why}", flush=True)
    return found


def show(result: Throughput) -> str:
    return (
        f"{result.rate:>9,.0f} results/s  {result.cpu:6.1f} + {result.database:5.1f} µs"
        + f"  {result.twice} twice" * bool(result.twice)
    )


class Bench:
    """One run of everything that was asked for; each part is printed, and written down if that was asked for."""

    def __init__(self, ground: Ground, given: argparse.Namespace) -> None:
        self.ground, self.given = ground, given
        self.who = chosen(given.who)
        self.goals: list[report.Goal] = []

    def _put(self, name: str, table: list[str], told: str) -> None:
        print("\n" + plain(table) + "\n", flush=True)
        if self.given.write:
            page.put_table(name, told, table)

    def warm_up(self) -> None:
        """Let the broker compile its own code first, so that nobody pays for it in the first round."""
        filled = self.ground.filled("avro", self.given.records)
        hands = [contestant for contestant in CONTESTANTS if contestant.name.startswith("loop, batch")]
        for contestant in hands * 3:
            throughput(self.ground, contestant, filled)

    def _of(self, fits: Callable[[Contestant], bool]) -> dict[str, Contestant]:
        """Return those that fit, so that all of it ends in good time; who was asked for by name always does."""
        return {each.name: each for each in self.who if self.given.who or fits(each)}

    def backlog(self, form: str = "avro", name: str = "backlog") -> None:
        # Who commits each message takes hundreds of microseconds for it: what decoding costs is not seen there.
        by_name = self._of(lambda each: form == "avro" or each.share > 0.1)
        filled = self.ground.filled(form, self.given.records)
        found = rounds(
            list(by_name), self.given.rounds, lambda who: throughput(self.ground, by_name[who], filled), show
        )
        kind = "Avro of seven fields" if form == "avro" else "nothing to decode"
        told = f"{self.given.rounds} rounds; {self.given.records:,} records of some 300 bytes, {kind}"
        self._put(name, report.throughput_table(found), told)
        if form == "avro":
            self.goals += report.goals_of_backlogs(found)
        if self.given.write:
            page.put_backlog_picture(name, found, kind)

    def bytes(self) -> None:
        self.backlog("bytes", "bytes")

    def latency(self) -> None:
        by_name = self._of(lambda each: each.name in LATENCY)
        found = rounds(
            list(by_name), self.given.rounds,
            lambda who: latency(self.ground, by_name[who], self.given.rate, self.given.seconds),
            lambda one: f"p50 {one.p50:.1f}  p99 {one.p99:.1f} ms  {one.core:.3f} of a core  {one.unseen} without a result",
        )  # fmt: skip
        told = f"{self.given.rounds} rounds; {self.given.rate} messages/s for {self.given.seconds:g} s"
        self._put("latency", report.latency_table(found), told)
        self.goals += report.goals_of_latency(found, self.given.rate)
        if self.given.write:
            page.put_latency_pictures(found)

    def takeover(self) -> None:
        filled = self.ground.filled("avro", self.given.records)
        wanted = [each for each in self.who if each.name in (PLAIN, PIPELINED)][:1]
        by_name = {each.name: each for each in wanted}
        found = rounds(
            list(by_name), self.given.kills if by_name else 0,
            lambda who: takeover(self.ground, by_name[who], filled),
            lambda one: f"first {one.first:.1f} s  full rate {one.full:.1f} s  {one.twice} twice",
        )  # fmt: skip
        self._put("takeover", report.takeover_table(found), f"{self.given.kills} kills in a backlog")
        self.goals += report.goals_of_takeover(found)

    def scenario(self, name: str) -> None:
        sizes = Sizes(
            records=self.given.scenario_records,
            inbox_rows=self.given.inbox_rows,
            parked_keys=self.given.parked_keys,
        )
        with SCENARIOS[name](self.ground, sizes) as lines:
            by_name = {line.name: line for line in lines}
            found = rounds(list(by_name), self.given.rounds, lambda line: by_name[line].run(), show)
        self._put(
            name,
            report.scenario_table(lines, found),
            f"{self.given.rounds} rounds; {sizes.records:,} records",
        )
        self.goals += report.goals_of_scenario(lines, found)

    def run(self) -> None:
        """Do the parts in their order; a part that fails leaves the others theirs."""
        wanted = self.given.only.split(",")
        ways: dict[str, Callable[[], None]] = {
            "backlog": self.backlog, "bytes": self.bytes, "latency": self.latency, "takeover": self.takeover,
        }  # fmt: skip
        self.warm_up()
        for part in (part for part in PARTS if part in wanted):
            print(f"{time.strftime('%H:%M:%S')}  {part}", flush=True)
            try:
                ways[part]() if part in ways else self.scenario(part)
            except Exception as error:
                print(f"{part} failed: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
        table = report.goal_table(self.goals)
        print("\n" + plain(table) + "\n", flush=True)
        if self.given.write and set(wanted) == set(PARTS) and not self.given.who:
            page.put_table("goals", f"{self.given.rounds} rounds", table)


def main() -> None:
    given = options(sys.argv[1:])
    if given.list:
        print("\n".join(contestant.name for contestant in chosen(given.who)))
        return
    with private_ground() as ground:
        Bench(ground, given).run()


if __name__ == "__main__":
    main()
