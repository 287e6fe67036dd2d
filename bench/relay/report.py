"""What was measured, as ratios of one run: a text for the terminal and Markdown tables for the page."""

import statistics
from collections.abc import Callable, Mapping, Sequence

from bench.relay.runs import Latency, Throughput

Throughputs = Mapping[str, Sequence[Throughput | None]]
Latencies = Mapping[str, Sequence[Latency | None]]


def spread(values: Sequence[float]) -> tuple[float, float, float]:
    """Return lowest, median and highest."""
    return min(values), statistics.median(values), max(values)


def ratios(base: Sequence[Throughput | None], other: Sequence[Throughput | None]) -> list[float]:
    """Return the rate of *base* divided by that of *other*, round by round."""
    return [ours.rate / theirs.rate for ours, theirs in zip(base, other, strict=False) if ours and theirs]


def _median(values: Sequence[float | None], form: str) -> str:
    known = [value for value in values if value is not None]
    return form.format(statistics.median(known)) if known else "–"


def _thousands(values: Sequence[float]) -> str:
    low, middle, high = spread(values)
    digits = 1 if middle < 10_000 else 0
    return " / ".join(f"{value / 1000:.{digits}f}" for value in (low, middle, high))


def throughput_table(found: Throughputs, base: str) -> list[str]:
    """Return the Markdown table of the backlog runs."""
    head = (
        f"| carrier | 1,000 rows/s: min / median / max | {base} ÷ this: min / median / max | CPU s/M rows: own "
        "| Postgres | Kafka | RSS MiB | statements/1,000 rows | WAL bytes/row |"
    )
    lines = [head, "|---|---|---|---|---|---|---|---|---|"]
    for name, runs in found.items():
        each = [run for run in runs if run]
        if not each:
            continue
        compared = ratios(found[base], runs) if base in found else []
        shown = " / ".join(f"{value:.2f}" for value in spread(compared)) if compared and name != base else "–"
        numbers: list[tuple[Callable[[Throughput], float | None], str]] = [
            (lambda run: run.cpu, "{:.1f}"), (lambda run: run.database, "{:.1f}"), (lambda run: run.broker, "{:.1f}"),
            (lambda run: run.memory, "{:.0f}"), (lambda run: run.statements, "{:.2f}"), (lambda run: run.wal, "{:.0f}"),
        ]  # fmt: skip
        cells = [_median([value(run) for run in each], form) for value, form in numbers]
        lines.append("| " + " | ".join([name, _thousands([run.rate for run in each]), shown, *cells]) + " |")
    return lines


def latency_table(found: Latencies) -> list[str]:
    """Return the Markdown table of the runs at a fixed rate."""
    lines = [
        "| carrier | p50 ms: min / median / max | p99 ms | p99.9 ms | of a core: own | Postgres | RSS MiB | commits/s | unseen |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for name, runs in found.items():
        each = [run for run in runs if run]
        if not each:
            continue
        columns = [[run.p50 for run in each], [run.p99 for run in each], [run.p999 for run in each]]
        cells = [" / ".join(f"{value:.1f}" for value in spread(values)) for values in columns]
        cells += [
            _median([run.core for run in each], "{:.3f}"), _median([run.database for run in each], "{:.2f}"),
            _median([run.memory for run in each], "{:.0f}"), _median([run.rate for run in each], "{:.0f}"),
            str(sum(run.unseen for run in each)),
        ]  # fmt: skip
        lines.append("| " + " | ".join([name, *cells]) + " |")
    return lines


def plain(lines: Sequence[str]) -> str:
    """Return a Markdown table with its columns aligned, for the terminal."""
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in lines if not line.startswith("|---")
    ]
    widths = [max(len(row[n]) for row in rows) for n in range(len(rows[0]))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows
    )
