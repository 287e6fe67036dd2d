"""Run checks side by side, each within a time of its own; one that fails or hangs hides none of the others."""

import queue
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from packhorse.console.doctor.findings import Finding, failed
from packhorse.core.clock import SYSTEM_CLOCK, Clock
from packhorse.core.errors import PackhorseError


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """
    One check, or several that share a connection.

    Attributes:
        name: What is said to have failed if `run` raises or is late.
        run: Looks and returns what it found.
        cause: What it most likely means if it raises.
        next_step: What to do if it raises or is late.
    """

    name: str
    run: Callable[[], Sequence[Finding]]
    cause: str
    next_step: str


def run_checks(checks: Sequence[Check], *, seconds: float, clock: Clock = SYSTEM_CLOCK) -> list[Finding]:
    """
    Return the findings of *checks* in their order, after at most *seconds* altogether.

    A check that is late is left behind on a daemon thread: a name server that never answers can't be interrupted.
    """
    results: queue.SimpleQueue[tuple[int, Sequence[Finding]]] = queue.SimpleQueue()
    for number, check in enumerate(checks):
        threading.Thread(target=_run, args=(number, check, results), name=check.name, daemon=True).start()
    found: dict[int, Sequence[Finding]] = {}
    deadline = clock.monotonic() + seconds
    while len(found) < len(checks) and (left := deadline - clock.monotonic()) > 0:
        try:
            number, findings = results.get(timeout=left)
        except queue.Empty:
            break
        found[number] = findings
    return [
        finding
        for number, check in enumerate(checks)
        for finding in found.get(number, [_late(check, seconds)])
    ]


def _run(number: int, check: Check, results: "queue.SimpleQueue[tuple[int, Sequence[Finding]]]") -> None:
    try:
        results.put((number, check.run()))
    except PackhorseError as error:
        results.put((number, [failed(check.name, str(error), cause=check.cause, next_step=check.next_step)]))
    except Exception as error:  # noqa: BLE001 one broken check must not hide the others
        text = f"{type(error).__name__}: {error}"
        results.put((number, [failed(check.name, text, cause="not expected", next_step=check.next_step)]))


def _late(check: Check, seconds: float) -> Finding:
    return failed(
        check.name,
        f"no answer within {seconds:g} s",
        cause="a firewall that drops, a name that does not resolve, or a server that is overloaded",
        next_step=check.next_step,
    )
