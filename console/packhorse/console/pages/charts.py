"""Small charts as SVG: lines and bars from numbers, with words for whoever can't see them. Pure: no I/O, no clock."""

from collections.abc import Sequence
from dataclasses import dataclass

Point = tuple[float, float | None]
"""Where on the way from 0 (left) to 1 (right), and how much; None: not known then."""
_PARTS = (1 / 6, 1 / 3)  # of half an hour: five and ten minutes


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """
    One line of a chart.

    Attributes:
        name: What it shows.
        path: In the coordinates of the chart.
        last: The newest value that is known.
    """

    name: str
    path: str
    last: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """
    Lines in one frame.

    Attributes:
        top: The value at its upper edge.
        part: Which part of the way it shows, up to its end: a short past would be a dot at the edge of a long one.
    """

    lines: tuple[Line, ...]
    top: float
    part: float
    width: int
    height: int

    @property
    def is_empty(self) -> bool:
        """Return whether there is nothing to draw yet."""
        return not any(line.path for line in self.lines)


def chart_of(series: Sequence[tuple[str, Sequence[Point]]], *, width: int = 600, height: int = 96) -> Chart:
    """
    Return the chart of *series*, all by one scale that begins at 0.

    >>> chart_of([("written", [(0.0, 0.0), (0.5, None), (1.0, 10.0)])], width=100, height=50).lines[0].path
    'M0,50 M100,0'
    >>> (late := chart_of([("written", [(0.9, 0.0), (1.0, 10.0)])], width=100, height=50)).lines[0].path, 1 / late.part
    ('M40,50 L100,0', 6.0)
    """
    begins = min((at for _, points in series for at, _ in points), default=0.0)
    part = next((part for part in _PARTS if begins >= 1 - part), 1.0)
    top = _round_up(max((value or 0.0 for _, points in series for _, value in points), default=0.0))
    lines = tuple(
        Line(
            name=name,
            path=_path([(1 - (1 - at) / part, value) for at, value in points], top, width, height),
            last=next((value for _, value in reversed(points) if value is not None), None),
        )
        for name, points in series
    )
    return Chart(lines=lines, top=top, part=part, width=width, height=height)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """One bar: its place and size in the chart, and what it stands for."""

    name: str
    value: float
    x: float
    y: float
    width: float
    height: float


def bars_of(values: Sequence[tuple[str, float]], *, width: int = 600, height: int = 96) -> tuple[Bar, ...]:
    """
    Return a bar for each of *values*, side by side; one that is not 0 can be seen.

    >>> [(bar.y, bar.height) for bar in bars_of([("Mon", 0), ("Tue", 50), ("Wed", 100)], width=300, height=50)]
    [(50.0, 0.0), (25.0, 25.0), (0.0, 50.0)]
    """
    most = max((value for _, value in values), default=0.0)
    step = width / max(len(values), 1)
    made = []
    for at, (name, value) in enumerate(values):
        tall = max(value / most * height, 2.0) if value else 0.0
        made.append(
            Bar(
                name=name,
                value=value,
                x=round(at * step + step * 0.1, 1),
                y=round(height - tall, 1),
                width=round(step * 0.8, 1),
                height=round(tall, 1),
            )
        )
    return tuple(made)


def _path(points: Sequence[Point], top: float, width: int, height: int) -> str:
    parts, pen_is_up = [], True
    for at, value in points:
        if value is None:
            pen_is_up = True
            continue
        down = height - (value / top * height if top else 0.0)
        parts.append(f"{'M' if pen_is_up else 'L'}{at * width:.0f},{down:.0f}")
        pen_is_up = False
    return " ".join(parts)


def _round_up(value: float) -> float:
    """
    Return the next number that begins with 1, 2 or 5, so that the scale stands still while values move.

    >>> [_round_up(value) for value in (0, 0.3, 7, 120)]
    [1.0, 1.0, 10.0, 200.0]
    """
    scale = 1.0
    while True:
        for step in (1.0, 2.0, 5.0):
            if value <= step * scale:
                return step * scale
        scale *= 10
