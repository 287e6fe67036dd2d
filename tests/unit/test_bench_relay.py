"""What the relay's benchmark reckons from what it saw."""

from collections.abc import Sequence
from xml.etree import ElementTree as ET

import pytest
from bench.relay.plot import Picture, svg
from bench.relay.probe import Sample, window
from bench.relay.report import plain, throughput_table
from bench.relay.runs import Throughput
from bench.relay.scenarios import stages


def course(*seen: tuple[float, int]) -> Sequence[Sample]:
    return [Sample(at=at, records=n, cpu=at / 2, database=0.0, broker=0.0, memory=50.0) for at, n in seen]


def test_the_window_leaves_out_start_warm_up_and_rest() -> None:
    """Fails when the rate counts the time before the first tenth, or after the last record."""
    first, last = window(course((0, 0), (5, 0), (6, 20), (7, 60), (8, 100), (9, 100)), 0.1)
    assert (first.at, last.at) == (6, 8)


def test_a_burst_between_two_looks_has_a_window() -> None:
    first, last = window(course((0, 0), (1, 0), (2, 100), (3, 100)), 0.1)
    assert (first.at, last.at) == (1, 2)


def test_a_long_run_is_cut_where_each_part_ended() -> None:
    parts = stages(course((0, 0), (1, 0), (2, 100), (4, 200), (5, 200)), 100)
    assert [(part.rows, part.rate) for part in parts] == [(100, 100.0), (200, 50.0)]
    assert parts[1].cpu == pytest.approx(1 / 100 * 1e6)


def test_ratios_are_taken_round_by_round() -> None:
    """Fails when medians are divided instead: 2.0 and 0.5 have no common neighbour."""
    runs: dict[str, list[Throughput | None]] = {
        "us": [Throughput(rate=200.0, cpu=1.0), Throughput(rate=100.0, cpu=1.0)],
        "them": [Throughput(rate=100.0, cpu=1.0), Throughput(rate=200.0, cpu=1.0)],
        "failed": [None, None],
    }
    lines = throughput_table(runs, "us")
    assert "| 0.50 / 1.25 / 2.00 |" in lines[3]
    assert len(lines) == 4
    assert "them" in plain(lines)


@pytest.mark.parametrize("logarithmic", [False, True])
def test_a_picture_is_well_formed_and_longer_bars_mean_more(logarithmic: bool) -> None:
    picture = Picture(
        title="a < b", unit="rows", bars={"x": [5.0, 7.0], "y": [70.0]}, logarithmic=logarithmic
    )
    root = ET.fromstring(svg(picture))
    widths = [
        float(each.get("width", "0"))
        for each in root.iter("{http://www.w3.org/2000/svg}rect")
        if each.get("x")
    ]
    assert widths[0] < widths[1]
