"""Say which process is meant, whether it lives, and reach it with signals; a pid alone says none of that."""

import os
import signal
import subprocess
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from packhorse.core.clock import SYSTEM_CLOCK, Clock

_PROC = Path("/proc")
_PAUSE = 0.02


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """
    One process, told apart from a later one with the same pid.

    Attributes:
        pid: Process id.
        born: When it started, in the kernel's own words, with the boot it started in; opaque, only compared.
    """

    pid: int
    born: str

    def __post_init__(self) -> None:
        if self.pid <= 1 or not self.born:
            raise ValueError(f"pid {self.pid} born {self.born!r} names no process of ours")


def identity_of(pid: int) -> Identity | None:
    """Return the identity of the living process *pid*; None when there is none (a zombie is none)."""
    born = _born_by_proc(pid) if _PROC.joinpath("self/stat").exists() else _born_by_ps(pid)
    return None if born is None else Identity(pid=pid, born=born)


def is_alive(process: Identity) -> bool:
    """Tell whether exactly this process still runs."""
    return identity_of(process.pid) == process


def family_of(pid: int) -> list[int]:
    """Return *pid* and all that descend from it, parents first."""
    children: dict[int, list[int]] = {}
    for child, parent in _parents():
        children.setdefault(parent, []).append(child)
    family = [pid]
    for member in family:  # grows while it is walked
        family.extend(children.get(member, []))
    return family


def signal_process(process: Identity, number: signal.Signals) -> bool:
    """Send a signal to exactly this process; False when it no longer runs."""
    if not is_alive(process):
        return False
    return _send(process.pid, number)


def signal_family(process: Identity, number: signal.Signals) -> list[Identity]:
    """Send a signal to the process and its descendants, and return those that were there."""
    if not is_alive(process):
        return []
    family = [found for pid in family_of(process.pid) if (found := identity_of(pid))]
    for member in family:
        _send(member.pid, number)
    return family


def wait_until(
    fact: Callable[[], bool],
    *,
    within: float,
    every: float = _PAUSE,
    cancelled: threading.Event | None = None,
    clock: Clock = SYSTEM_CLOCK,
) -> bool:
    """Ask *fact* again and again for up to *within* seconds, *every* so many; False when it never came true or was cancelled."""
    pause = cancelled or threading.Event()
    deadline = clock.monotonic() + within
    while not fact():
        if clock.monotonic() >= deadline or pause.wait(every):
            return False
    return True


def end(process: Identity, number: signal.Signals, *, within: float) -> bool:
    """
    Ask the process to stop, and kill it and its descendants when it has not after *within* seconds.

    Returns:
        True when it stopped by itself (or was not there), False when it had to be killed.
    """
    if not signal_process(process, number):
        return True
    signal_process(process, signal.SIGCONT)  # a paused process would not see the request
    if wait_until(lambda: not is_alive(process), within=within):
        return True
    kill(process)
    return False


def kill(process: Identity) -> None:
    """Kill the process and its descendants with SIGKILL and wait until none is left."""
    family = signal_family(process, signal.SIGKILL)
    wait_until(lambda: not any(is_alive(member) for member in family), within=10.0)


def _send(pid: int, number: signal.Signals) -> bool:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return False
    return True


def _born_by_proc(pid: int) -> str | None:
    fields = _stat(pid)
    if fields is None or (fields[0] in {"Z", "X"} and not _has_threads(pid)):
        return None
    boot = _PROC.joinpath("sys/kernel/random/boot_id").read_text().strip()
    return f"{fields[19]}@{boot}"


def _stat(pid: int) -> list[str] | None:
    """Return the fields of /proc/PID/stat from the state on; the name before it may hold blanks and brackets."""
    try:
        text = _PROC.joinpath(str(pid), "stat").read_text()
    except OSError:
        return None
    return text.rpartition(")")[2].split()


def _has_threads(pid: int) -> bool:
    """Return whether other threads than the first still live: what is open, ports too, is closed by the last to go."""
    try:
        return any(entry.name != str(pid) for entry in _PROC.joinpath(str(pid), "task").iterdir())
    except OSError:
        return False


def _born_by_ps(pid: int) -> str | None:
    listed = _ps("-o", "stat=,lstart=", "-p", str(pid)).split(maxsplit=1)
    return None if len(listed) < 2 or listed[0].startswith("Z") else listed[1].strip()


def _parents() -> list[tuple[int, int]]:
    if _PROC.joinpath("self/stat").exists():
        pids = [int(entry.name) for entry in _PROC.iterdir() if entry.name.isdigit()]
        return [(pid, int(fields[1])) for pid in pids if (fields := _stat(pid))]
    lines = _ps("-A", "-o", "pid=,ppid=").splitlines()
    return [(int(pid), int(parent)) for pid, parent in (line.split() for line in lines)]


def _ps(*arguments: str) -> str:
    return subprocess.run(["ps", *arguments], capture_output=True, text=True, check=False).stdout
