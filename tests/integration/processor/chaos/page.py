"""Write what came of runs of chaos as a page for people."""

from collections import Counter
from collections.abc import Sequence

from tests.integration.processor.chaos.run import Result
from tests.integration.processor.chaos.schedule import Kind

FACTS = ("messages", "effects", "runs", "quarantined", "redrives", "discards", "looks")


def page(results: Sequence[Result]) -> str:
    """Return the runs as tables in Markdown: what was done to the group, what came of it, what was wrong."""
    head = ["seed", "handlers", "protocol", "minutes", "faults", "starts", *FACTS, "settled after", "wrong"]
    rows = [head, ["---"] * len(head), *(_row(result) for result in results)]
    done = Counter(fault.kind for result in results for fault in result.plan.schedule)
    kinds = [
        ["times", "what was done"],
        ["---:", "---"],
        *([str(done[kind]), kind.value] for kind in Kind if done[kind]),
    ]
    wrong = [
        f"* seed {result.plan.seed}: {text.splitlines()[0]}" for result in results for text in result.wrong
    ]
    return "\n".join([*_table(rows), "", *_table(kinds), "", *(wrong or ["No promise was broken."]), ""])


def _row(result: Result) -> list[str]:
    plan = result.plan
    settled = "never" if result.settled_in is None else f"{result.settled_in:.1f} s"
    facts = [f"{result.facts[name]:,}" for name in FACTS]
    return [
        str(plan.seed), plan.kind, plan.protocol, f"{plan.seconds / 60:.1f}", str(len(plan.schedule)), str(result.starts),
        *facts, settled, str(len(result.wrong)),
    ]  # fmt: skip


def _table(rows: Sequence[Sequence[str]]) -> list[str]:
    return [f"| {' | '.join(row)} |" for row in rows]
