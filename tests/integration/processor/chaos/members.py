"""The members of the group: real processes, restarted when they end, as a supervisor does."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.support.proxy import Proxy
from tests.support.wait import eventually

from packhorse.core.clock import SYSTEM_CLOCK

TARGET = "tests.integration.processor.chaos.app:app"
AWAY = 4
"""How a process ends that finds no database or broker at its start."""
OURS = frozenset({0, -signal.SIGKILL, -signal.SIGTERM, 128 + signal.SIGTERM})
"""How a process ends that was asked to: by itself, killed, before it could listen, or at the second signal."""
BACK = 0.5
"""Seconds after which a process that ended by itself is started again."""
TAIL = 12
"""Lines of the log that are told of a process that died."""


@dataclass
class Member:
    """
    One place in the group, and the process that is in it.

    Attributes:
        name: m0, m1, …
        environ: Of its processes.
        database: The proxy before its database.
        deaths: How its processes ended that nobody had ended.
    """

    name: str
    environ: Mapping[str, str]
    database: Proxy
    folder: Path
    process: "subprocess.Popen[bytes] | None" = None
    due: float = 0.0
    asked: bool = False
    started: int = 0
    held: bool = False
    deaths: list[str] = field(default_factory=list)

    @property
    def log(self) -> Path:
        """Where its process writes."""
        return self.folder / f"{self.name}-{self.started}.log"

    def start(self) -> None:
        """Start a process."""
        self.started += 1
        self.asked = False
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "packhorse.cli.main", "processor", "run", TARGET],
                env={**os.environ, **self.environ}, stdout=log, stderr=subprocess.STDOUT,
            )  # fmt: skip

    def signal(self, number: int, *, back: float | None = None) -> None:
        """Send a signal to what runs; with *back* its end is ours, and another starts so many seconds later."""
        if back is not None:
            self.asked, self.due = True, SYSTEM_CLOCK.monotonic() + back
        if self.process is not None and self.process.poll() is None:
            os.kill(self.process.pid, number)

    def watch(self) -> None:
        """Start a process where there is none and it is time."""
        if self.process is not None and (code := self.process.poll()) is not None:
            if not self.asked:
                self._died(code)
                self.due = SYSTEM_CLOCK.monotonic() + BACK
            elif code not in OURS:
                self.deaths.append(f"{self.log.name}: status {code} after SIGTERM\n{self._tail()}")
            self.process = None
        if self.process is None and not self.held and SYSTEM_CLOCK.monotonic() >= self.due:
            self.start()

    def _died(self, code: int) -> None:
        """Note a death, unless the process did not get so far as to join because something was away."""
        if code != AWAY or "processor: partitions assigned" in self.log.read_text(errors="replace"):
            self.deaths.append(f"{self.log.name}: status {code}\n{self._tail()}")

    def _tail(self) -> str:
        lines = self.log.read_text(errors="replace").splitlines()[-TAIL:]
        return "\n".join(f"    {line}" for line in lines)


class Crew:
    """All members, and the thread that starts them again."""

    def __init__(self, members: Sequence[Member]) -> None:
        self.members = members
        self._over = threading.Event()
        self._turn = threading.Lock()
        self._thread = threading.Thread(target=self._watch, name="crew", daemon=True)

    def start(self) -> None:
        """Start all."""
        for member in self.members:
            member.start()
        self._thread.start()

    def hold(self) -> None:
        """Stop all, and start none until `release`."""
        with self._turn:
            for member in self.members:
                member.held = True
                member.signal(signal.SIGCONT)
                member.signal(signal.SIGTERM, back=0)
        running = [member.process for member in self.members if member.process is not None]
        try:
            eventually(lambda: all(one.poll() is not None for one in running), what="all stop", timeout=20)
        except AssertionError:
            for member in self.members:
                member.signal(signal.SIGKILL, back=0)

    def release(self) -> None:
        """Start all again."""
        for member in self.members:
            member.held = False

    def end(self) -> None:
        """Stop all for good."""
        self.hold()
        self._over.set()
        self._thread.join()
        for member in self.members:
            member.watch()

    def kill(self) -> None:
        """Leave nothing behind, whatever happened."""
        self._over.set()
        for member in self.members:
            if member.process is not None and member.process.poll() is None:
                member.process.kill()
                member.process.wait()

    def deaths(self) -> list[str]:
        """Return how processes ended that nobody had ended."""
        return [death for member in self.members for death in member.deaths]

    def _watch(self) -> None:
        while not self._over.wait(0.05):
            with self._turn:
                for member in self.members:
                    member.watch()
