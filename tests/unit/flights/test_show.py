"""What a person sees while the demo goes on: lines that stay on a terminal, few lines elsewhere."""

from datetime import UTC, datetime
from io import StringIO

from rich.console import Console

from examples.flights.show import Screen


class Seconds:
    """A clock that is set."""

    def __init__(self) -> None:
        self.at = 0.0

    def now(self) -> datetime:
        return datetime.fromtimestamp(self.at, UTC)

    def monotonic(self) -> float:
        return self.at


def shown(*, terminal: bool, minutes: int) -> str:
    text, clock = StringIO(), Seconds()
    console = Console(file=text, force_terminal=terminal, width=120, color_system=None)
    with Screen(console, clock) as screen:
        for second in range(0, minutes * 60, 2):
            clock.at = float(second)
            screen.happened(f"poison {second}")
            screen.going(f"{second} messages", ["outage of N1"])
        screen.gone()
    return text.getvalue()


def test_on_a_terminal_nothing_scrolls() -> None:
    """Fails when a day of trouble pushes the link out of sight."""
    text = shown(terminal=True, minutes=10)
    assert "now: outage of N1" in text
    assert "last: poison 598" in text
    lines = text.count("\n") - text.count(
        "\x1b[1A"
    )  # each line that is written, less each that is taken back
    assert lines <= 3


def test_elsewhere_it_is_a_line_a_minute_beside_what_happens() -> None:
    text = shown(terminal=False, minutes=10)
    assert len([line for line in text.splitlines() if line.endswith("messages")]) == 10
    assert len([line for line in text.splitlines() if "poison" in line]) == 300
