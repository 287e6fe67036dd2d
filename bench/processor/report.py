"""What was measured, as ratios of one run: Markdown tables for the page and the terminal."""

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from bench.processor.contestants import BATCH, CONTESTANTS, LOOP, LOOP_INBOX, ONE_BY_ONE, PIPELINED, PLAIN
from bench.processor.latency import Latency
from bench.processor.runs import Throughput
from bench.processor.scenarios import Line
from bench.processor.takeover import Takeover
from bench.relay.report import spread

Throughputs = Mapping[str, Sequence[Throughput | None]]
Result = TypeVar("Result")
LATE_ACK = "faststream, late ack"
PEER_BATCHES = ("arroyo, batch", "quixstreams sink", "faststream, batch")


def ratios(found: Throughputs, over: str, under: str) -> list[float]:
    """Return the rate of *over* divided by that of *under*, round by round."""
    pairs = zip(found.get(over, ()), found.get(under, ()), strict=False)
    return [ours.rate / theirs.rate for ours, theirs in pairs if ours and theirs]


def there(runs: Sequence[Result | None]) -> list[Result]:
    """Return the runs that succeeded."""
    return [run for run in runs if run is not None]


def three(values: Sequence[float], form: str = "{:.2f}") -> str:
    """Return lowest, median and highest as text."""
    return " / ".join(form.format(value) for value in spread(values)) if values else "–"


def _rates(runs: Sequence[Throughput]) -> str:
    values = [run.rate / 1000 for run in runs]
    return three(values, "{:.1f}" if statistics.median(values) >= 10 else "{:.2f}")


def _medians(runs: Sequence[Any], numbers: Sequence[tuple[Callable[[Any], float], str]]) -> list[str]:
    return [form.format(statistics.median(value(run) for run in runs)) for value, form in numbers]


_COSTS: list[tuple[Callable[[Throughput], float], str]] = [
    (lambda run: run.cpu, "{:.1f}"), (lambda run: run.database, "{:.1f}"), (lambda run: run.broker, "{:.1f}"),
    (lambda run: run.memory, "{:.0f}"), (lambda run: run.statements, "{:.1f}"), (lambda run: run.wal, "{:.0f}"),
]  # fmt: skip


def throughput_table(found: Throughputs) -> list[str]:
    """Return the table of the backlog runs, with what each keeps."""
    promises = {contestant.name: contestant.promise for contestant in CONTESTANTS}
    lines = [
        (
            f"| who | 1,000 results/s: min / median / max | ÷ {LOOP_INBOX} | ÷ {ONE_BY_ONE} | CPU µs/result: own | Postgres "
            "| Kafka | RSS MiB | statements/1,000 | WAL bytes/result | what it keeps |"
        ),
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for name, each in found.items():
        if not (runs := there(each)):
            continue
        cells = [name, _rates(runs)]
        cells += [
            three(ratios(found, name, base)) if base != name else "–" for base in (LOOP_INBOX, ONE_BY_ONE)
        ]
        lines.append("| " + " | ".join([*cells, *_medians(runs, _COSTS), promises[name]]) + " |")
    return lines


def scenario_table(lines: Sequence[Line], found: Throughputs) -> list[str]:
    """Return the table of one scenario."""
    rows = [
        "| run | 1,000 results/s: min / median / max | ÷ the run without | goal | CPU µs/result: own | Postgres | Kafka | twice |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for line in lines:
        if not (runs := there(found.get(line.name, ()))):
            continue
        compared = three(ratios(found, line.name, line.base)) if line.base else "–"
        goal = f"≥ {line.goal:g}" if line.goal else "–"
        cells = [
            line.name,
            _rates(runs),
            compared,
            goal,
            *_medians(runs, _COSTS[:3]),
            str(sum(run.twice for run in runs)),
        ]
        rows.append("| " + " | ".join(cells) + " |")
    return rows


def latency_table(found: Mapping[str, Sequence[Latency | None]]) -> list[str]:
    """Return the table of the runs at a fixed rate."""
    rows = [
        "| who | p50 ms: min / median / max | p99 ms | p99.9 ms | of a core: own | Postgres | without a result |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, each in found.items():
        if not (runs := there(each)):
            continue
        cells = [three([getattr(run, part) for run in runs], "{:.1f}") for part in ("p50", "p99", "p999")]
        cells += _medians(runs, [(lambda run: run.core, "{:.3f}"), (lambda run: run.database, "{:.3f}")])
        rows.append("| " + " | ".join([name, *cells, str(sum(run.unseen for run in runs))]) + " |")
    return rows


def takeover_table(found: Mapping[str, Sequence[Takeover | None]]) -> list[str]:
    """Return the table of kills."""
    rows = [
        "| who | s to the first result: min / median / max | s to the full rate | results/s before | twice |",
        "|---|---|---|---|---|",
    ]
    for name, each in found.items():
        if not (runs := there(each)):
            continue
        cells = [three([run.first for run in runs], "{:.1f}"), three([run.full for run in runs], "{:.1f}")]
        cells += _medians(runs, [(lambda run: run.before, "{:,.0f}")])
        rows.append("| " + " | ".join([name, *cells, str(sum(run.twice for run in runs))]) + " |")
    return rows


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """
    One goal and what was reached.

    Attributes:
        values: Of all rounds.
        bound: The median must be at least this, or, with `most`, at most.
    """

    text: str
    values: Sequence[float]
    bound: float
    most: bool = False

    @property
    def reached(self) -> bool:
        """Return whether the median keeps to the bound."""
        middle = statistics.median(self.values)
        return middle <= self.bound if self.most else middle >= self.bound


def goals_of_backlogs(found: Throughputs) -> list[Goal]:
    """Return the goals that compare rates over a backlog."""
    best = max(
        PEER_BATCHES,
        key=lambda name: statistics.median([run.rate for run in there(found.get(name, ()))] or [0]),
    )
    wanted = [
        (f"batch handler ≥ 0.9 × {LOOP_INBOX}", BATCH, LOOP_INBOX, 0.9),
        (f"batch handler ≥ 0.9 × {LOOP}, which keeps no inbox", BATCH, LOOP, 0.9),
        (f"batch handler ahead of every peer's batch (the fastest: {best})", BATCH, best, 1.0),
        (f"pipelined handler ≥ 8 × {ONE_BY_ONE}", PIPELINED, ONE_BY_ONE, 8.0),
        (f"plain handler ≥ 3 × {ONE_BY_ONE}", PLAIN, ONE_BY_ONE, 3.0),
        (f"pipelined handler ≥ 30 × {LATE_ACK}", PIPELINED, LATE_ACK, 30.0),
    ]
    goals = [
        Goal(text=text, values=ratios(found, over, under), bound=bound) for text, over, under, bound in wanted
    ]
    return [goal for goal in goals if goal.values]


def goals_of_scenario(lines: Sequence[Line], found: Throughputs) -> list[Goal]:
    """Return the goals of a scenario."""
    goals = [
        Goal(text=f"{line.name}: ≥ {line.goal:g} × {line.base}", values=ratios(found, line.name, line.base), bound=line.goal)
        for line in lines
        if line.goal
    ]  # fmt: skip
    return [goal for goal in goals if goal.values]


def goals_of_latency(found: Mapping[str, Sequence[Latency | None]], rate: int) -> list[Goal]:
    """Return the goals at a fixed rate."""
    goals = []
    for name in (PLAIN, PIPELINED, BATCH):
        runs = there(found.get(name, ()))
        for part, bound in (("p50", 15), ("p99", 60)):
            if values := [float(getattr(run, part)) for run in runs]:
                text = f"{name} at {rate} messages/s: {part} ≤ {bound} ms"
                goals.append(Goal(text=text, values=values, bound=bound, most=True))
    return goals


def goals_of_takeover(found: Mapping[str, Sequence[Takeover | None]]) -> list[Goal]:
    """Return the goals after a kill."""
    return [
        Goal(
            text=f"{name}: ≤ 10 s from a kill to the full rate",
            values=[run.full for run in runs],
            bound=10,
            most=True,
        )
        for name, each in found.items()
        if (runs := there(each))
    ]


def goal_table(goals: Sequence[Goal]) -> list[str]:
    """Return the table of goals."""
    rows = ["| goal | reached: min / median / max | |", "|---|---|---|"]
    return rows + [
        f"| {goal.text} | {three(goal.values)} | {'yes' if goal.reached else '**no**'} |" for goal in goals
    ]
