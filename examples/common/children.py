"""The relay and the processor as a person would run them: commands, in processes of their own, with their logs."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from packhorse.core.errors import PackhorseError
from packhorse.local.launcher import Command, Launcher
from packhorse.local.places import tail

CHECKOUT = Path(__file__).parents[2]
_TAIL = 20


class ChildFailed(PackhorseError):
    """A command ended with an error, or ended at all where it should not; ends with the tail of its log."""


class Children:
    """
    Commands of Packhorse that run beside this process.

    They end with the block, and with this process however it ends: a guard watches it (see packhorse.local.guard).

    Args:
        folder: Where their logs go.
        environment: What they are told beside what this process is.
        app: What `packhorse processor run` runs.
    """

    def __init__(self, folder: Path, environment: Mapping[str, str], *, app: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        for log in folder.glob("*.log"):
            log.unlink()  # of an earlier run
        self._folder, self._app = folder, app
        self._environment = {**os.environ, **environment}
        self._launcher = Launcher(folder / "guard.log")
        self._pids: dict[str, int] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._launcher.end()

    def run(self, *arguments: str, within: float = 60.0) -> None:
        """
        Run `packhorse` with *arguments* to its end.

        Raises:
            ChildFailed: It ended with another status than 0.
        """
        name = "-".join(arguments[:2])
        status = self._launcher.run(self._command(name, arguments), within=within)
        if status != 0:
            raise self._failure(name, f"`packhorse {' '.join(arguments)}` ended with status {status}")

    def begin(self, *arguments: str) -> Callable[[], int | None]:
        """Start `packhorse` with *arguments* and return what tells its exit status, None while it runs; `check` minds nothing of it."""
        pid = self._launcher.start(self._command("-".join(arguments[:2]), arguments))
        return lambda: self._launcher.exit_code(pid)

    def answer(self, *arguments: str) -> str:
        """Run `packhorse` with *arguments* to its end and return what it printed, whatever its status."""
        command = self._command("answer", arguments)
        done = subprocess.run(
            command.argv, env=command.env, cwd=command.cwd, stdout=subprocess.PIPE, text=True, check=False
        )
        return done.stdout

    def start_relay(self) -> None:
        """Start the relay."""
        self.start("relay", "relay", "run")

    def start_processor(self) -> None:
        """Start the processor."""
        self.start("processor", "processor", "run", self._app)

    def start(self, name: str, *arguments: str, private: bool = False) -> Path:
        """
        Start `packhorse` with *arguments*, to go on until it is killed or the block ends, and return its log.

        *name* is that by which it is killed and told of; of a *private* one nobody else on the machine may read the log.
        """
        command = self._command(name, arguments)
        if private:
            command.log.touch(mode=0o600)
        self._pids[name] = self._launcher.start(command)
        return command.log

    def kill(self, name: str) -> None:
        """Kill the child *name* with SIGKILL: it has no moment to tidy up."""
        os.kill(self._pids.pop(name), signal.SIGKILL)

    def check(self) -> None:
        """
        Check that every child that was started and not killed still runs.

        Raises:
            ChildFailed: One has ended.
        """
        for name, pid in self._pids.items():
            if (status := self._launcher.exit_code(pid)) is not None:
                raise self._failure(name, f"the {name} ended with status {status}")

    def _command(self, name: str, arguments: Sequence[str]) -> Command:
        return Command(
            argv=(sys.executable, "-m", "packhorse.cli.main", *arguments),
            env=self._environment,
            cwd=CHECKOUT,
            log=self._folder / f"{name}.log",
        )

    def _failure(self, name: str, what: str) -> ChildFailed:
        path = self._folder / f"{name}.log"
        lines = "\n".join(f"  {line}" for line in tail(path, _TAIL))
        return ChildFailed(f"{what}. The end of {path}:\n{lines}")
