"""
Measure the relay beside other carriers of an outbox, interleaved, on one real broker and database of the benchmark's own.

  python -m bench.relay                                   everything, some minutes a round
  python -m bench.relay --list                            who can be measured here, and why others can't
  python -m bench.relay --only packhorse,loop --rounds 1  those whose names begin so
  python -m bench.relay --scenarios                       an old snapshot, an open writer, a bloated table
  python -m bench.relay --backlog 10000000                one long backlog: rate and memory for each million, cost from 10⁴ rows on
  python -m bench.relay --write                           put the result into docs/performance.md too
  python -m bench.relay --seconds 0                       backlogs only;  --rows 0: latencies only
  python -m bench.relay --set PACKHORSE_RELAY_BATCH_ROWS=10000    one more contestant: Packhorse with other settings

Rates compare only within one run, and only on a quiet machine: judge by the ratios, and by how far min and max lie apart.
Each carrier is a process of its own and works on a fresh database and topic. It is watched from outside: how many records
the topic has, and what processor time and memory its processes took; start and warm-up (a tenth of the rows) are not
counted. All Kafka clients ask for acks=all and idempotence.
"""

import argparse
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from bench import turns
from bench.relay import page, report, scenarios
from bench.relay.carriers import CARRIERS, POLLING, Carrier
from bench.relay.ground import Ground, private_ground
from bench.relay.runs import Latency, Throughput, latency, throughput

Result = TypeVar("Result", Throughput, Latency)


def options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench.relay",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--only", default="", metavar="NAMES", help="beginnings of names, with commas between"
    )
    parser.add_argument(
        "--rows", type=int, default=500_000, help="rows of a backlog; slow carriers get fewer [%(default)s]"
    )
    parser.add_argument("--rounds", type=int, default=3, help="how often everybody has a turn [%(default)s]")
    parser.add_argument("--seconds", type=float, default=15, help="of each run at a fixed rate [%(default)s]")
    parser.add_argument("--rate", type=int, default=500, help="commits a second in it [%(default)s]")
    parser.add_argument(
        "--set", action="append", default=[], metavar="NAME=VALUE", help="see above; may be repeated"
    )
    parser.add_argument(
        "--scenarios", action="store_true", help="the conditions instead of the other carriers"
    )
    parser.add_argument(
        "--backlog", type=int, default=0, metavar="ROWS", help="one long backlog instead of all else"
    )
    parser.add_argument(
        "--write", action="store_true", help="write tables and pictures to docs/performance.md"
    )
    parser.add_argument("--list", action="store_true", help="say who can be measured, and end")
    return parser.parse_args(arguments)


def chosen(only: str, settings: Sequence[str]) -> list[Carrier]:
    """Return the carriers that were asked for and can run; say why others can't."""
    carriers = list(CARRIERS)
    if settings:
        polling = next(carrier for carrier in CARRIERS if carrier.name == POLLING)
        given = dict(each.split("=", 1) for each in settings)
        carriers.insert(1, _renamed(polling, f"{POLLING} set", given))
    starts = [start.strip() for start in only.split(",") if start.strip()]
    wanted = [
        carrier
        for carrier in carriers
        if not starts or any(carrier.name.startswith(start) for start in starts)
    ]
    found = []
    for carrier in wanted:
        if (why := carrier.missing()) is None:
            found.append(carrier)
        else:
            print(f"skipped: {carrier.name}: {why}", flush=True)
    return found


def _renamed(carrier: Carrier, name: str, settings: Mapping[str, str]) -> Carrier:
    return Carrier(name=name, command=carrier.command, settings=settings)


def rounds(
    carriers: Sequence[Carrier], count: int, run: Callable[[Carrier], Result], show: Callable[[Result], str]
) -> dict[str, list[Result | None]]:
    """Give everybody *count* turns."""
    by_name = {carrier.name: carrier for carrier in carriers}
    return turns.rounds(list(by_name), count, lambda name: run(by_name[name]), show)


def backlogs(ground: Ground, carriers: Sequence[Carrier], given: argparse.Namespace) -> report.Throughputs:
    found = rounds(
        carriers, given.rounds, lambda carrier: throughput(ground, carrier, carrier.rows(given.rows)),
        lambda result: f"{result.rate:>9,.0f} rows/s  {result.cpu:5.1f} CPU s/M",
    )  # fmt: skip
    print("\n" + report.plain(report.throughput_table(found, POLLING)) + "\n", flush=True)
    return found


def latencies(ground: Ground, carriers: Sequence[Carrier], given: argparse.Namespace) -> report.Latencies:
    found = rounds(
        [carrier for carrier in carriers if carrier.latency], given.rounds,
        lambda carrier: latency(ground, carrier, given.rate, given.seconds),
        lambda result: f"p50 {result.p50:.1f}  p99 {result.p99:.1f}  p99.9 {result.p999:.1f} ms  {result.core:.3f} of a core",
    )  # fmt: skip
    print("\n" + report.plain(report.latency_table(found)) + "\n", flush=True)
    return found


def told(given: argparse.Namespace) -> str:
    """Return the line above a table: when, on what, how much."""
    return (
        f"*{time.strftime('%Y-%m-%d %H:%M')}; {page.machine()}; {given.rounds} rounds; {given.rows:,} rows of 300 bytes "
        f"(slow carriers fewer); {given.rate} commits/s for {given.seconds:g} s.*"
    )


def warm_up(ground: Ground) -> None:
    """Let the broker compile its own code first, so that nobody pays for it in the first round: some three million records."""
    names = {carrier.name: carrier for carrier in CARRIERS}
    for name in ("producing alone", "producing alone", POLLING, "producing alone", POLLING):
        carrier = names[name]
        throughput(ground, carrier, carrier.rows(200_000))


def run_all(ground: Ground, given: argparse.Namespace) -> None:
    warm_up(ground)
    if given.backlog:
        parts, costs = scenarios.long_backlog(ground, given.backlog)
        if given.write:
            page.put_long(parts, costs, f"*{time.strftime('%Y-%m-%d %H:%M')}; {page.machine()}.*")
        return
    carriers = scenarios.conditions() if given.scenarios else chosen(given.only, given.set)
    names = ("conditions", "conditions-latency") if given.scenarios else ("backlogs", "latencies")
    if given.rows:
        found = backlogs(ground, carriers, given)
        if given.write:
            page.put_backlogs(names[0], found, POLLING, told(given))
    if given.seconds:
        times = latencies(ground, carriers, given)
        if given.write:
            page.put_latencies(names[1], times, told(given))


def main() -> None:
    given = options(sys.argv[1:])
    if given.list:
        print("\n".join(carrier.name for carrier in chosen(given.only, given.set)))
        return
    with private_ground() as ground:
        run_all(ground, given)


if __name__ == "__main__":
    main()
