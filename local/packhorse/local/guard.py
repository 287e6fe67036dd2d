"""
Start processes for a parent, and end all of them when the parent goes away.

A program of its own, run by its path on the standard library alone: it never imports Packhorse. Because the guard is
the parent of every process of a stack, there is no moment at which the starting command can die (Ctrl-C, SIGKILL,
power of the terminal) and leave one behind: its end of the pipe closes, and the guard ends what it started.

One JSON object a line. Requests on standard input:

    {"op": "start", "id": 1, "argv": [...], "env": {...}, "cwd": "...", "log": "...", "stop": 15, "user": null, "group": null}
    {"op": "release", "id": 2}      exit and leave everything running
    end of input                    end everything, then exit

Answers and events on standard output:

    {"id": 1, "pid": 4711}    {"id": 1, "error": "..."}    {"exit": 4711, "code": 0}
"""

import json
import os
import selectors
import signal
import subprocess
import sys
import time
from types import FrameType
from typing import Any

GRACE = 20.0  # seconds between asking a process to stop and killing it
PAUSE = 0.02


class Guard:
    """Hold the children and talk to the parent."""

    def __init__(self) -> None:
        self.children: dict[int, tuple[subprocess.Popen[bytes], int]] = {}
        self.buffer = b""
        self.ending = False
        self.wakeup, writer = os.pipe()
        os.set_blocking(self.wakeup, False)
        os.set_blocking(writer, False)
        signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, _noted)
        signal.signal(signal.SIGHUP, _noted)
        signal.signal(signal.SIGINT, _noted)
        signal.signal(signal.SIGTERM, self._told_to_end)

    def run(self) -> None:
        """Serve until released, or until the input ends and no child is left."""
        with selectors.DefaultSelector() as selector:
            selector.register(0, selectors.EVENT_READ)
            selector.register(self.wakeup, selectors.EVENT_READ)
            while not self.ending:
                self._turn(selector)
        self._end_all()

    def _turn(self, selector: selectors.BaseSelector) -> None:
        for key, _ in selector.select():
            if key.fd == self.wakeup:
                os.read(self.wakeup, 4096)
                self._reap()
            else:
                self._read()

    def _read(self) -> None:
        received = os.read(0, 65536)
        if not received:
            self.ending = True
            return
        *lines, self.buffer = (self.buffer + received).split(b"\n")
        for line in lines:
            self._serve(json.loads(line))

    def _serve(self, request: dict[str, Any]) -> None:
        if request["op"] == "release":
            self._answer({"id": request["id"]})
            sys.exit(0)
        try:
            child = start(request)
        except (OSError, subprocess.SubprocessError, ValueError) as error:
            self._answer({"id": request["id"], "error": f"{type(error).__name__}: {error}"})
            return
        self.children[child.pid] = (child, request["stop"])
        self._answer({"id": request["id"], "pid": child.pid})

    def _reap(self) -> None:
        for pid, (child, _) in list(self.children.items()):
            if (code := child.poll()) is not None:
                del self.children[pid]
                self._answer({"exit": pid, "code": code})

    def _end_all(self) -> None:
        for pid, (_, stop) in self.children.items():
            _send(pid, stop)
            _send(pid, signal.SIGCONT)  # a stopped process would not see it
        for _ in range(round(GRACE / PAUSE)):
            self._reap()
            if not self.children:
                return
            time.sleep(PAUSE)
        for pid, (child, _) in self.children.items():
            _send(pid, signal.SIGKILL)
            child.wait()

    def _answer(self, answer: dict[str, Any]) -> None:
        try:
            os.write(1, json.dumps(answer).encode() + b"\n")
        except OSError:
            self.ending = True  # nobody reads any more: the parent is gone

    def _told_to_end(self, _signal: int, _frame: FrameType | None) -> None:
        self.ending = True


def start(request: dict[str, Any]) -> subprocess.Popen[bytes]:
    """Start one process in a session of its own, so that a Ctrl-C in the terminal does not reach it."""
    as_user: dict[str, Any] = {}
    if request["user"] is not None:
        as_user = {"user": request["user"], "group": request["group"], "extra_groups": []}
    with open(request["log"], "ab", buffering=0) as log:  # noqa: PTH123 - pathlib would be a third of the start
        return subprocess.Popen(
            request["argv"],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd=request["cwd"],
            env=request["env"],
            start_new_session=True,
            **as_user,
        )


def _send(pid: int, number: int) -> None:
    try:
        os.killpg(pid, number)
    except OSError:
        return


def _noted(_signal: int, _frame: FrameType | None) -> None:
    """Let the wake-up pipe tell."""


if __name__ == "__main__":
    Guard().run()
