"""
Several processes of one command, each a member of the group, and the parent that keeps them running.

The parent reads no message. It hands signals on, starts again what has ended, and its own end ends them all: each child
watches a pipe whose other end the parent holds, so a parent that was killed leaves none behind.
"""

import os
import signal as signals
import sys
import threading
from collections.abc import Mapping
from subprocess import Popen
from types import FrameType

from packhorse.core import logs
from packhorse.core.clock import SYSTEM_CHANCE, SYSTEM_CLOCK, Chance, Clock
from packhorse.processor.app import Processor
from packhorse.processor.settings import ProcessorSettings
from packhorse.processor.supervising import Child, began, ended, without_flag

FLAG = "--processes"
PARENT = "_PACKHORSE_PARENT"
"""Names, in a child's environment, the descriptor that ends with its parent."""
LOOK_EVERY = 0.2
"""Seconds between two looks at the children."""
LEAVE_WAIT = 20.0
"""Seconds on top of the drain time that a child may take to leave, before it is killed."""

log = logs.logger("processor")


class Supervisor:
    """
    Run *count* processes of *command* until SIGTERM or SIGINT.

    One that ends is started again, after a second at first and up to half a minute when it ends again and again; that it does is
    said, and the others work on.
    """

    def __init__(
        self,
        command: list[str],
        settings: ProcessorSettings,
        *,
        environ: Mapping[str, str],
        clock: Clock = SYSTEM_CLOCK,
        chance: Chance = SYSTEM_CHANCE,
    ) -> None:
        self._command = command
        self._settings = settings
        self._environ = environ
        self._clock = clock
        self._chance = chance
        self._children = [Child(number=number) for number in range(settings.processes)]
        self._processes: dict[int, Popen[bytes]] = {}
        self._stop = threading.Event()
        self._lifeline, self._held = os.pipe()

    def run(self) -> int:
        """Run the children, and return the status to exit with: 1 when one failed to leave cleanly."""
        for each in (signals.SIGTERM, signals.SIGINT):
            signals.signal(each, self._ask_to_stop)
        log.info("starting processes", processes=len(self._children))
        while not self._stop.is_set():
            self._look()
            self._stop.wait(LOOK_EVERY)
        return self._leave()

    def _look(self) -> None:
        """Start what is to be started, and note what has ended."""
        now = self._clock.monotonic()
        for at, child in enumerate(self._children):
            process = self._processes.get(child.number)
            if child.start_at is not None and now >= child.start_at:
                self._processes[child.number] = self._started(child)
                self._children[at] = began(child, now=now)
            elif child.start_at is None and process is not None and process.poll() is not None:
                self._children[at], wait = ended(child, now=now, jitter=self._chance.fraction())
                self._tell(self._children[at], process, wait)

    def _started(self, child: Child) -> "Popen[bytes]":
        port = self._settings.health_port
        own = {
            PARENT: str(self._lifeline),
            ProcessorSettings.variable("processes"): "1",
            ProcessorSettings.variable("health_port"): str(port and port + child.number),
        }
        # A group of its own: Ctrl-C on a terminal reaches the parent alone, which hands it on once.
        return Popen(self._command, env={**self._environ, **own}, pass_fds=(self._lifeline,), process_group=0)

    def _tell(self, child: Child, process: "Popen[bytes]", wait: float) -> None:
        event = "a process ends again and again" if child.hopeless else "a process has ended"
        log.error(
            event,
            process=child.number,
            pid=process.pid,
            status=process.returncode,
            ends=child.ends,
            again_in=f"{wait:.1f} s",
        )

    def _ask_to_stop(self, number: int, _: FrameType | None) -> None:
        if self._stop.is_set():
            self._signal(signals.SIGTERM)
            os._exit(128 + number)
        log.info("stopping", signal=signals.Signals(number).name)
        self._stop.set()

    def _signal(self, number: int) -> None:
        for process in self._processes.values():
            if process.poll() is None:
                process.send_signal(number)

    def _leave(self) -> int:
        """Wait until the children have left; kill those that do not in time."""
        self._signal(signals.SIGTERM)
        deadline = self._clock.monotonic() + self._settings.drain_timeout + LEAVE_WAIT
        pause = threading.Event()
        while self._running() and self._clock.monotonic() < deadline:
            pause.wait(LOOK_EVERY)
        killed = self._running()
        for process in killed:
            log.error("a process did not leave in time and is killed", pid=process.pid)
            process.kill()
            process.wait()
        failed = [process.pid for process in self._processes.values() if process.returncode != 0]
        log.info("stopped", processes=len(self._processes), killed=len(killed), failed=len(failed))
        return 1 if failed else 0

    def _running(self) -> "list[Popen[bytes]]":
        return [process for process in self._processes.values() if process.poll() is None]


def run_processes(app: Processor, settings: ProcessorSettings) -> int:
    """
    Run this command in as many processes as the settings say, and return the status to exit with.

    Raises:
        UsageError: *app* has no handler.
    """
    app.check()
    logs.set_up(secrets=settings.secrets())
    return Supervisor(command_again(), settings, environ=os.environ).run()


def command_again() -> list[str]:
    """Return the command that this process was started with, without the count of processes."""
    return [sys.executable, *without_flag(sys.orig_argv[1:], FLAG)]


def end_with_parent(environ: Mapping[str, str]) -> None:
    """Ask this process to stop, as SIGTERM does, when the parent that has started it ends; without one do nothing."""
    named = environ.get(PARENT)
    if named is None:
        return

    def watch() -> None:
        os.read(int(named), 1)  # nothing is ever written: it returns when the other end is closed
        os.kill(os.getpid(), signals.SIGTERM)

    threading.Thread(target=watch, name="packhorse-parent", daemon=True).start()
