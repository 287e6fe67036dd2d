"""Bars with their spread as SVG, written with the standard library alone: no library here is worth a dependency for two pictures."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

from bench.relay.report import spread

WIDTH, LEFT, RIGHT, TOP, ROW = 860, 170, 90, 58, 26
OURS, OTHERS, INK, GRID = "#1f6f5c", "#8a98a5", "#222", "#ddd"


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """
    One picture.

    Attributes:
        title, unit: Texts.
        bars: For each name the values of all rounds; the bar is the median, the line goes from lowest to highest.
        logarithmic: For values that lie far apart.
    """

    title: str
    unit: str
    bars: Mapping[str, Sequence[float]]
    logarithmic: bool = False


def _ticks(highest: float, logarithmic: bool) -> list[float]:
    if logarithmic:
        return [10.0**power for power in range(-1, 8) if 10.0**power <= highest * 1.5]
    step = 10.0 ** (len(str(int(highest))) - 1)
    step = next((step * part for part in (0.2, 0.5, 1, 2) if highest / (step * part) <= 6), step)
    return [step * n for n in range(int(highest / step) + 2)]


class _Scale:
    def __init__(self, picture: Picture) -> None:
        from math import log10

        highest = max(value for values in picture.bars.values() for value in values)
        self.ticks = _ticks(highest, picture.logarithmic)
        low = min(value for values in picture.bars.values() for value in values)
        self._log = log10 if picture.logarithmic else float
        floor = 10.0 ** int(log10(low) - 1 + (low >= 1)) if picture.logarithmic else 0.0
        self._from = self._log(floor) if picture.logarithmic else 0.0
        self._to = self._log(
            max(highest * 1.05, self.ticks[-1] if not picture.logarithmic else highest * 1.3)
        )

    def x(self, value: float) -> float:
        part = (self._log(value) - self._from) / (self._to - self._from)
        return LEFT + max(part, 0.0) * (WIDTH - LEFT - RIGHT)


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}"


def svg(picture: Picture) -> str:
    """Return the picture."""
    scale, height = _Scale(picture), TOP + ROW * len(picture.bars) + 30
    bottom = height - 24
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" font-size="13">',
        f'<rect width="{WIDTH}" height="{height}" fill="white"/>',
        f'<text x="12" y="24" font-size="16" fill="{INK}">{escape(picture.title)}</text>',
        f'<text x="12" y="42" fill="{OTHERS}">{escape(picture.unit)}; bar: median, line: lowest to highest round</text>',
    ]
    for tick in scale.ticks:
        x = scale.x(tick)
        if LEFT <= x <= WIDTH - RIGHT + 40:
            parts.append(f'<line x1="{x:.1f}" y1="{TOP - 6}" x2="{x:.1f}" y2="{bottom}" stroke="{GRID}"/>')
            parts.append(
                f'<text x="{x:.1f}" y="{bottom + 16}" text-anchor="middle" fill="{OTHERS}">{tick:,g}</text>'
            )
    for number, (name, values) in enumerate(picture.bars.items()):
        parts += _bar(scale, name, values, TOP + ROW * number)
    return "\n".join([*parts, "</svg>", ""])


def _bar(scale: _Scale, name: str, values: Sequence[float], y: float) -> list[str]:
    low, middle, high = spread(values)
    color, end, centre = OURS if name.startswith("packhorse") else OTHERS, scale.x(middle), y + ROW / 2 - 3
    label = max(end, scale.x(high)) + 8
    return [
        f'<text x="{LEFT - 8}" y="{y + 15}" text-anchor="end" fill="{INK}">{escape(name)}</text>',
        f'<rect x="{LEFT}" y="{y}" width="{max(end - LEFT, 1):.1f}" height="{ROW - 6}" fill="{color}"/>',
        f'<line x1="{scale.x(low):.1f}" y1="{centre}" x2="{scale.x(high):.1f}" y2="{centre}" stroke="{INK}" stroke-width="2"/>',
        f'<text x="{label:.1f}" y="{y + 15}" fill="{INK}">{_number(middle)}</text>',
    ]
