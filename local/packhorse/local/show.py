"""How the stack looks in a terminal."""

import json
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn
from rich.table import Table

from packhorse.local.asking import ServiceStatus, Standing
from packhorse.local.ports import LOOPBACK

_COLOURS = {
    Standing.RUNNING: "green",
    Standing.SILENT: "yellow",
    Standing.DEAD: "red",
    Standing.STOPPED: "dim",
}
_LARGE = 10_000_000  # bytes from which a download is worth a line where no bar can be drawn
_QUARTERS = 4


class TerminalProgress:
    """Tell people on standard error: lines, and bars where a terminal can draw them."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self._bars = Progress(
            TextColumn("  {task.description}"),
            BarColumn(bar_width=30),
            DownloadColumn(),
            TransferSpeedColumn(),
            console=console,
            transient=True,
        )

    def __enter__(self) -> "TerminalProgress":
        if self.console.is_terminal:
            self._bars.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bars.stop()

    def say(self, text: str) -> None:
        """Print one line."""
        self.console.print(f"· {text}", highlight=False, markup=False, soft_wrap=True)

    @contextmanager
    def download(self, name: str, size: int) -> Iterator[Callable[[int], None]]:
        """Draw a bar, or print a line at each quarter of a large file."""
        if not self.console.is_terminal:
            yield self._quarters(name, size)
            return
        task = self._bars.add_task(name, total=size)
        try:
            yield lambda count: self._bars.advance(task, count)
        finally:
            self._bars.remove_task(task)

    def _quarters(self, name: str, size: int) -> Callable[[int], None]:
        arrived = 0

        def count(piece: int) -> None:
            nonlocal arrived
            before, arrived = arrived, arrived + piece
            if size >= _LARGE and before * _QUARTERS // size < (quarter := arrived * _QUARTERS // size):
                self.say(f"{name}: {quarter * 100 // _QUARTERS} % of {size / 1e6:.0f} MB")

        return count


def export_lines(variables: Mapping[str, str]) -> str:
    """
    Write lines that a shell evaluates.

    >>> print(export_lines({"A": "b c"}), end="")
    export A='b c'
    """
    return "".join(f"export {name}={shlex.quote(value)}\n" for name, value in variables.items())


def status_table(statuses: Sequence[ServiceStatus]) -> Table:
    """Return the table of services."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("service", "state", "address", "pid"):
        table.add_column(heading, overflow="fold")
    for status in statuses:
        colour = _COLOURS[status.standing]
        table.add_row(
            status.name,
            f"[{colour}]{status.standing}[/{colour}]",
            f"{LOOPBACK}:{status.port}" if status.port else "–",
            str(status.pid or "–"),
        )
    return table


def status_json(statuses: Sequence[ServiceStatus]) -> str:
    """Return the services as JSON."""
    return json.dumps(
        [
            {
                "service": status.name,
                "state": status.standing,
                "host": LOOPBACK,
                "port": status.port,
                "pid": status.pid,
                "log": str(status.log),
            }
            for status in statuses
        ],
        indent=2,
    )
