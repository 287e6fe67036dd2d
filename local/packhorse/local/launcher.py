"""Start processes through a guard that ends them when this process goes away, until they are released."""

import json
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from packhorse.local import guard
from packhorse.local.errors import StackFailed
from packhorse.local.processes import wait_until

_ANSWER_WITHIN = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """
    One process to start.

    Attributes:
        argv: Program and arguments; never a shell.
        env: Its whole environment.
        cwd: Its working folder.
        log: File that gets its output, appended.
        stop: Signal that asks it to stop cleanly.
        user: Numeric user and group to run as; None keeps ours.
    """

    argv: tuple[str, ...]
    env: Mapping[str, str]
    cwd: Path
    log: Path
    stop: signal.Signals = signal.SIGTERM
    user: int | None = None
    group: int | None = None


@dataclass(slots=True)
class _Heard:
    """What the guard has said so far."""

    answers: dict[int, dict[str, Any]] = field(default_factory=dict)
    exits: dict[int, int] = field(default_factory=dict)
    gone: bool = False


class Launcher:
    """
    The processes that this one has started and not yet released.

    When this process ends before `release`, in whatever way, the guard stops them all: it asks each with its own
    signal, and kills what still runs after 20 s. Safe to use from several threads.
    """

    def __init__(self, log: Path) -> None:
        """Start the guard; *log* gets what it has to say."""
        with log.open("ab") as output:
            self._guard = subprocess.Popen(
                [sys.executable, "-I", "-S", str(Path(guard.__file__).resolve())],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=output,
                start_new_session=True,  # a Ctrl-C in the terminal is for us alone
            )
        self._heard = _Heard()
        self._changed = threading.Condition()
        self._numbers = 0
        self._reader = threading.Thread(target=self._read, name="packhorse-guard", daemon=True)
        self._reader.start()

    def start(self, command: Command) -> int:
        """
        Start one process and return its pid.

        Raises:
            StackFailed: The system refused; the text names the program and why.
        """
        request = {
            "op": "start",
            **{
                name: str(value) if isinstance(value, Path) else value
                for name, value in asdict(command).items()
            },
        }
        answer = self._ask(request)
        if "error" in answer:
            raise StackFailed(f"could not start {command.argv[0]}: {answer['error']}")
        return int(answer["pid"])

    def exit_code(self, pid: int) -> int | None:
        """Return the exit status of a process started here; None while it runs. Negative: the signal that ended it."""
        with self._changed:
            return self._heard.exits.get(pid)

    def run(self, command: Command, *, within: float, cancelled: threading.Event | None = None) -> int:
        """
        Start one process, wait for its end and return its exit status.

        Raises:
            StackFailed: It did not end within *within* seconds, or the start was cancelled.
        """
        pid = self.start(command)
        if not wait_until(lambda: self.exit_code(pid) is not None, within=within, cancelled=cancelled):
            raise StackFailed(
                f"{command.argv[0]} did not end within {within:g} s; its output is in {command.log}"
            )
        return self.exit_code(pid) or 0

    def release(self) -> None:
        """Leave all processes running for good, also when this process ends."""
        self._ask({"op": "release"})
        self._close()

    def end(self) -> None:
        """Stop all processes started here and not released, and wait for that (at most about 25 s)."""
        self._close()

    def _close(self) -> None:
        assert self._guard.stdin is not None
        self._guard.stdin.close()
        self._guard.wait()
        self._reader.join()
        if self._guard.stdout is not None:
            self._guard.stdout.close()

    def _ask(self, request: dict[str, Any]) -> dict[str, Any]:
        with self._changed:
            self._numbers += 1
            number = self._numbers
            self._send({**request, "id": number})
            heard = self._heard
            self._changed.wait_for(lambda: number in heard.answers or heard.gone, timeout=_ANSWER_WITHIN)
            if number not in heard.answers:
                raise StackFailed("the guard of the local stack does not answer; look into logs/guard.log")
            return heard.answers.pop(number)

    def _send(self, request: dict[str, Any]) -> None:
        assert self._guard.stdin is not None
        try:
            self._guard.stdin.write(json.dumps(request).encode() + b"\n")
            self._guard.stdin.flush()
        except (OSError, ValueError) as error:
            raise StackFailed("the guard of the local stack is gone; look into logs/guard.log") from error

    def _read(self) -> None:
        assert self._guard.stdout is not None
        for line in self._guard.stdout:
            answer = json.loads(line)
            with self._changed:
                if "exit" in answer:
                    self._heard.exits[answer["exit"]] = answer["code"]
                else:
                    self._heard.answers[answer["id"]] = answer
                self._changed.notify_all()
        with self._changed:
            self._heard.gone = True
            self._changed.notify_all()
