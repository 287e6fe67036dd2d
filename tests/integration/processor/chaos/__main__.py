"""
Runs of chaos on servers of their own: `python -m tests.integration.processor.chaos --minutes 30 --seed 7`.

    --minutes N     one run with the long schedule; without it, one short run as in the tests
    --runs N        so many runs, with the seeds that follow --seed
    --page FILE     write what came of it as a page

What fails prints the seed, the schedule and the stories of the keys; the logs of the members stay in --folder.
"""

import argparse
import pickle
import sys
from contextlib import ExitStack
from pathlib import Path

from tests.integration.processor.chaos.app import KINDS
from tests.integration.processor.chaos.page import page
from tests.integration.processor.chaos.run import Plan, Result, run
from tests.integration.processor.chaos.schedule import long_schedule, short_schedule
from tests.support.databases import fresh_database, make_tables, unique_name
from tests.support.stack import private_broker, private_database_server, real_stack, temporary_folder

SHORT_SECONDS = 24.0
POSTGRES = {"fsync": "off"}
"""Processes are killed here, not machines: what was written to the kernel stays."""


def main() -> int:
    """Run, tell, and return 1 if anything was wrong."""
    options = _options()
    results: list[Result] = []
    with ExitStack() as block:
        registry_url = block.enter_context(real_stack()).registry_url
        broker = block.enter_context(private_broker())
        database = block.enter_context(private_database_server(postgres=POSTGRES))
        for seed in range(options.seed, options.seed + options.runs):
            plan = _plan(options, seed)
            folder = Path(options.folder or block.enter_context(temporary_folder())) / str(seed)
            folder.mkdir(parents=True)
            broker.heal()
            database.heal()
            database.database = "postgres"
            with fresh_database(database.direct_url) as url:
                make_tables(url)
                database.database = url.rpartition("/")[2]
                result = run(
                    plan, broker=broker, database=database, registry_url=registry_url, namespace=unique_name("t"),
                    folder=folder,
                )  # fmt: skip
                database.heal()
            results.append(result)
            _tell(result, folder)
    if options.page:
        Path(options.page).write_text(page(results))
    return int(any(result.wrong for result in results))


def _tell(result: Result, folder: Path) -> None:
    settled = "never" if result.settled_in is None else f"{result.settled_in:.1f} s"
    numbers = ", ".join(f"{name} {count:,}" for name, count in result.facts.items())
    print(
        f"seed {result.plan.seed} {result.plan.kind} {result.plan.protocol}: {len(result.wrong)} wrong, settled {settled}, "
        f"{result.starts} starts; {numbers}",
        flush=True,
    )
    (folder / "history").write_bytes(pickle.dumps(result.history))
    (folder / "done").write_text("\n".join(result.log))
    if result.wrong:
        (folder / "verdict").write_text("\n\n".join([result.told(), *result.wrong]))
        print(f"{result.told()}\n(all in {folder}/verdict)", flush=True)


def _plan(options: argparse.Namespace, seed: int) -> Plan:
    seconds = options.minutes * 60 or SHORT_SECONDS
    if options.minutes:
        schedule = long_schedule(seed, seconds, options.members, pace=options.pace)
    else:
        schedule = short_schedule(seed, seconds, options.members)
    return Plan(
        seed=seed, schedule=schedule, seconds=seconds, rate=options.rate, members=options.members,
        kind=options.kind, protocol=options.protocol, parks=options.parks == "park", settle=options.settle, keys=options.keys, trouble=options.trouble,
    )  # fmt: skip


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=0.0)
    parser.add_argument("--rate", type=float, default=150.0)
    parser.add_argument("--pace", type=float, default=1.0)
    parser.add_argument("--keys", type=int, default=1_000)
    parser.add_argument("--trouble", type=float, default=1.0)
    parser.add_argument("--members", type=int, default=4)
    parser.add_argument("--kind", choices=KINDS, default="def")
    parser.add_argument("--protocol", choices=("consumer", "classic"), default="consumer")
    parser.add_argument("--parks", choices=("park", "continue"), default="park")
    parser.add_argument("--settle", type=float, default=75.0)
    parser.add_argument("--folder", default="")
    parser.add_argument("--page", default="")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
