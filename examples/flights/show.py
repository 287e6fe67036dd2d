"""What a person sees: live bars on a terminal, plain lines elsewhere, and a table at the end."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Self

from rich.console import Console, Group
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn
from rich.table import Table
from rich.text import Text

from examples.flights.standing import Standing
from examples.flights.verify import Check
from packhorse.core.clock import SYSTEM_CLOCK, Clock

_PLAIN_EVERY = 2.0  # seconds between two plain lines about how far it is
_GOING_EVERY = 60.0
_WORTH_A_LINE = 5_000_000  # bytes of a download
_SHOWN = 10  # differences of one check, at most


class Screen:
    """
    Tell a person what happens; safe to use from several threads.

    On a terminal three bars stay at the bottom and lines run above them; elsewhere how far it is becomes a line now
    and then. It is also the `Progress` that a local stack reports its start to.
    """

    def __init__(self, console: Console | None = None, clock: Clock = SYSTEM_CLOCK) -> None:
        self._console = console or _console()
        self._clock = clock
        self._began = clock.monotonic()
        self._told_at = float("-inf")
        self._bars = Progress(
            TextColumn("{task.description:>10}"),
            BarColumn(40),
            MofNCompleteColumn(),
            TextColumn("{task.fields[note]}"),
        )
        self._happened = ""
        self._tasks: dict[str, TaskID] = {}
        self._live = Live(self._bars, console=self._console, refresh_per_second=8, transient=True)

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.stop()

    @property
    def seconds(self) -> float:
        """Return how long it has been running."""
        return self._clock.monotonic() - self._began

    def say(self, text: str) -> None:
        """Say what happens now."""
        self._console.print(f"[dim]{self.seconds:6.1f} s[/dim]  {text}", soft_wrap=True)

    @contextmanager
    def download(self, name: str, size: int) -> Iterator[Callable[[int], None]]:
        """Show how much of *name*, *size* bytes, has come; the function given back is told of each piece."""
        if size >= _WORTH_A_LINE:
            self.say(f"downloading {name}, {size / 1e6:.0f} MB, once for this user")
        task = self._bars.add_task(name[:30], total=size, note="bytes")
        try:
            yield lambda count: self._bars.advance(task, count)
        finally:
            self._bars.remove_task(task)

    def show(self, total: int, written: int, standing: Standing) -> None:
        """Show how far *total* messages are."""
        open_ones = (
            f"{standing.waiting} in tiers, {standing.behind} behind them, {standing.quarantined} in quarantine, "
            f"{standing.duplicates} duplicates dropped"
        )
        notes = {"finished": open_ones}
        counts = {"written": written, "published": standing.published, "finished": standing.finished}
        for name, count in counts.items():
            if name not in self._tasks:
                self._tasks[name] = self._bars.add_task(name, total=total, note="")
            self._bars.update(
                self._tasks[name], completed=min(count, total), total=total, note=notes.get(name, "")
            )
        if not self._console.is_terminal and self.seconds - self._told_at >= _PLAIN_EVERY:
            self._told_at = self.seconds
            told = ", ".join(f"{name} {count:,}" for name, count in counts.items())
            self.say(f"of {total:,} messages {told}; {open_ones}")

    def going(self, standing: str, trouble: Sequence[str]) -> None:
        """Show how it stands while it goes on, and what goes wrong now: in lines that stay, or one a minute elsewhere."""
        if not self._console.is_terminal:
            if self.seconds - self._told_at >= _GOING_EVERY:
                self._told_at = self.seconds
                self.say(standing)
            return
        now = f"now: {', '.join(trouble)}" if trouble else "now: all is well"
        if self._live.auto_refresh:  # eight times a second is for bars that run
            self._live.stop()
            self._live = Live(console=self._console, auto_refresh=False, transient=True)
            self._live.start()
        lines = [standing, now, *([f"last: {self._happened}"] if self._happened else [])]
        self._live.update(Group(*(Text(line, "dim") for line in lines)), refresh=True)

    def happened(self, text: str) -> None:
        """Say what happened while it goes on: on a terminal the last of it stands with `going`, and nothing scrolls."""
        if self._console.is_terminal:
            self._happened = text
        else:
            self.say(text)

    def gone(self) -> None:
        """Take away what `going` shows."""
        self._live.update(Text(""), refresh=True)

    def table(self, checks: Sequence[Check]) -> None:
        """Show what was checked, and the first differences of what is not as it must be."""
        table = Table(show_edge=False, pad_edge=False)
        table.add_column("checked")
        table.add_column("found")
        table.add_column("")
        for check in checks:
            table.add_row(
                check.what, check.found, "[green]equal[/green]" if check.good else "[red]DIFFERS[/red]"
            )
        self._console.print()
        self._console.print(table)
        for check in checks:
            for difference in check.differences[:_SHOWN]:
                self._console.print(f"[red]{check.what}[/red]: {difference}", soft_wrap=True)
            if (more := len(check.differences) - _SHOWN) > 0:
                self._console.print(f"[red]{check.what}[/red]: and {more:,} more")

    def lines(self, *lines: str) -> None:
        """Show *lines* as they are."""
        self._console.print()
        for line in lines:
            self._console.print(line, markup=False, soft_wrap=True)

    def rows(self, rows: Sequence[tuple[str, str]]) -> None:
        """Show names and values, one pair a line."""
        table = Table(show_header=False, show_edge=False, pad_edge=False, box=None)
        for name, value in rows:
            table.add_row(f"[dim]{name}[/dim]", value)
        self._console.print()
        self._console.print(table)


def _console() -> Console:
    console = Console(highlight=False)
    # A pipe has no width: the lines stay whole there, for whoever reads them.
    return console if console.is_terminal else Console(highlight=False, width=160)
