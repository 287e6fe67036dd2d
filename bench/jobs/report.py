"""What was measured, as ratios of one run: Markdown tables for the page and the terminal."""

import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from bench.jobs.contestants import CELERY, CONTESTANTS, DBOS, DEFAULT, HAND, PROCRASTINATE, QUICK, SOLO
from bench.jobs.history import EMPTY, Aged
from bench.jobs.recovery import Recovered
from bench.jobs.runs import Drained, Submitted
from bench.jobs.starting import Started
from bench.processor.report import Goal, there, three

Numbers = Sequence[tuple[Callable[[Any], float], str]]
Runs = Mapping[str, Sequence[Any]]


def ratios(
    found: Runs, over: str, under: str, value: Callable[[Any], float] = lambda run: run.rate
) -> list[float]:
    """Return what *value* gives of *over* divided by that of *under*, round by round."""
    pairs = zip(found.get(over, ()), found.get(under, ()), strict=False)
    return [value(ours) / value(theirs) for ours, theirs in pairs if ours and theirs]


def _rates(runs: Sequence[Any]) -> str:
    return three([run.rate for run in runs], "{:,.0f}")


def _medians(runs: Sequence[Any], numbers: Numbers) -> list[str]:
    return [form.format(statistics.median(value(run) for run in runs)) for value, form in numbers]


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    return [
        "| " + " | ".join(head) + " |",
        "|" + "---|" * len(head),
        *("| " + " | ".join(row) + " |" for row in rows),
    ]


def _filled(found: Runs) -> list[tuple[str, list[Any]]]:
    return [(name, runs) for name, each in found.items() if (runs := there(each))]


_COSTS: Numbers = [(lambda run: run.cpu, "{:,.0f}"), (lambda run: run.database, "{:,.0f}")]


def submit_table(found: Mapping[str, Runs]) -> list[str]:
    """Return the table of submitting; *found* has the runs of each way, by who did it."""
    head = ("who", "jobs/s: min / median / max", f"time ÷ {HAND}", "CPU µs/job: own", "database")
    rows = [
        [
            f"{name}, {way}",
            _rates(runs),
            "–" if name == HAND else three(ratios(each, HAND, name)),
            *_medians(runs, _COSTS),
        ]
        for way, each in found.items()
        for name, runs in _filled(each)
    ]
    return _table(head, rows)


def drain_table(found: Runs) -> list[str]:
    """Return the table of backlogs worked off."""
    keeps = {contestant.name: contestant.keeps for contestant in CONTESTANTS}
    head = (
        "who", "jobs/s: min / median / max", f"{QUICK} ÷ this", f"{DEFAULT} ÷ this", "CPU µs/job: own", "database", "Kafka",
        "RSS MiB", "what it keeps",
    )  # fmt: skip
    costs: Numbers = [*_COSTS, (lambda run: run.broker, "{:,.0f}"), (lambda run: run.memory, "{:.0f}")]
    rows = []
    for name, runs in _filled(found):
        who, _, workers = name.partition(", ")
        bases = [f"{base}, {workers}" for base in (QUICK, DEFAULT)]
        compared = ["–" if base == name else three(ratios(found, base, name)) for base in bases]
        rows.append([name, _rates(runs), *compared, *_medians(runs, costs), keeps[who]])
    return _table(head, rows)


def start_table(found: Runs) -> list[str]:
    """Return the table of how soon bodies begin."""
    head = ("who", "p50 ms: min / median / max", "p99 ms", "of a core: own", "database", "did not begin")
    costs: Numbers = [(lambda run: run.core, "{:.3f}"), (lambda run: run.database, "{:.3f}")]
    rows = [
        [
            name,
            three([run.p50 for run in runs], "{:.1f}"),
            three([run.p99 for run in runs], "{:.1f}"),
            *_medians(runs, costs),
            str(sum(run.unseen for run in runs)),
        ]
        for name, runs in _filled(found)
    ]
    return _table(head, rows)


def history_table(found: Runs, lines: Sequence[Aged], full: str) -> list[str]:
    """Return the table of what a history costs; *full* ends the names of the runs on full tables."""
    head = ("what", f"{EMPTY}: min / median / max", full, "full ÷ empty", "goal")
    rows = []
    for line in lines:
        each = [
            [line.value(run) for run in there(found.get(f"{line.name}, {end}", ()))] for end in (EMPTY, full)
        ]
        if all(each):
            compared = ratios(found, f"{line.name}, {full}", f"{line.name}, {EMPTY}", line.value)
            rows.append(
                [
                    f"{line.name}, {line.unit}",
                    *(three(values, line.form) for values in each),
                    three(compared),
                    "≤ 1.1",
                ]
            )
    return _table(head, rows)


def recovery_table(found: Sequence[Recovered | None]) -> list[str]:
    """Return the table of kills."""
    runs = there(found)
    if not runs:
        return _table(("lease s",), [])
    row = [f"{runs[0].lease:g}", f"{runs[0].session:g}", three([run.after for run in runs], "{:.1f}")]
    return _table(("lease, s", "session time-out, s", "s to the next beginning: min / median / max"), [row])


def goals_of_submitting(found: Mapping[str, Mapping[str, Sequence[Submitted | None]]]) -> list[Goal]:
    """Return the goals of submitting."""
    return _some(
        Goal(
            text=f"submit, {way}: time ≤ 1.3 × {HAND}",
            values=ratios(each, HAND, DEFAULT),
            bound=1.3,
            most=True,
        )
        for way, each in found.items()
    )


def goals_of_draining(found: Mapping[str, Sequence[Drained | None]]) -> list[Goal]:
    """Return the goals of working off a backlog."""
    wanted = [(PROCRASTINATE, 5.0), (DBOS, 5.0), (CELERY, 1.0), (SOLO, 1.0)]
    return _some(
        Goal(text=f"{ours}, {workers} ≥ {bound:g} × {name}", values=ratios(found, *names), bound=bound)
        for workers in ("1 worker", "2 workers")
        for ours in (QUICK, DEFAULT)
        for name, bound in wanted
        for names in [(f"{ours}, {workers}", f"{name}, {workers}")]
    )


def goals_of_starting(found: Mapping[str, Sequence[Started | None]]) -> list[Goal]:
    """Return the goals of the first moment."""
    return _some(
        Goal(
            text=f"{name}: p50 ≤ 20 ms",
            values=[run.p50 for run in there(found.get(name, ()))],
            bound=20,
            most=True,
        )
        for name in (QUICK, DEFAULT)
    )


def goals_of_history(found: Runs, lines: Sequence[Aged], full: str) -> list[Goal]:
    """Return the goals of a full history."""
    return _some(
        Goal(
            text=f"{line.name}: ≤ 1.1 × on empty tables",
            values=ratios(found, f"{line.name}, {full}", f"{line.name}, {EMPTY}", line.value), bound=1.1, most=True,
        )
        for line in lines
    )  # fmt: skip


def goals_of_recovery(found: Sequence[Recovered | None]) -> list[Goal]:
    """Return the goal after a kill."""
    runs = there(found)
    bound = runs[0].lease + runs[0].session if runs else 0.0
    text = f"from a kill to the next beginning ≤ lease + session time-out, {bound:g} s"
    return _some([Goal(text=text, values=[run.after for run in runs], bound=bound, most=True)])


def _some(goals: Iterable[Goal]) -> list[Goal]:
    return [goal for goal in goals if goal.values]
