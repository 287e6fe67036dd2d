"""Follow what an order brought, until it is known or the time is up. Looks only; the relay's owner acts."""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from packhorse.core.clock import SYSTEM_CLOCK, Clock
from packhorse.relay.orders.model import HoldView

OK, FAILED_AGAIN, UNPROVED, INTERRUPTED = 0, 1, 7, 130
_POLL_SECONDS = 0.2
Heard = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """
    How one order stands.

    Attributes:
        over: It ended, or failed again.
        failed: It failed again.
        said: In words; the same words as long as nothing changed.
    """

    over: bool
    failed: bool
    said: str


def progress_of(ordered: HoldView, now: HoldView) -> Progress:
    """Return how the release stands that was ordered when the hold stood as *ordered*."""
    name = f"hold {now.id}"
    if now.state == "ended":
        return Progress(over=True, failed=False, said=f"{name}: ended; what waited is published")
    if now.state == "releasing":
        return Progress(over=False, failed=False, said=f"{name}: releasing, {now.hold.sent:,} rows published")
    if now.hold.asked:
        return Progress(over=False, failed=False, said=f"{name}: ordered; {now.next}")
    fault = now.hold.fault
    failed = now.hold.tries > ordered.hold.tries
    said = f"{name}: held again, {fault.code}: {fault.reason}" if failed else f"{name}: held; {now.next}"
    return Progress(over=failed, failed=failed, said=said)


def follow(
    ordered: Sequence[HoldView], look: Callable[[Sequence[int]], Sequence[HoldView]], *, seconds: float, heard: Heard,
    clock: Clock = SYSTEM_CLOCK,
) -> int:  # fmt: skip
    """
    Tell each change of what was *ordered* until all is over or *seconds* have passed; return the exit code.

    Ctrl-C ends the looking alone: the orders stand.
    """
    deadline, pause = clock.monotonic() + seconds, threading.Event()
    before = {view.id: view for view in ordered}
    told: dict[int, str] = {}
    try:
        while True:
            found = {view.id: progress_of(before[view.id], view) for view in look(list(before))}
            for id_, progress in found.items():
                if told.get(id_) != progress.said:
                    told[id_] = progress.said
                    heard(progress.said)
            if all(progress.over for progress in found.values()):
                return FAILED_AGAIN if any(progress.failed for progress in found.values()) else OK
            if clock.monotonic() >= deadline:
                return UNPROVED
            pause.wait(_POLL_SECONDS)
    except KeyboardInterrupt:
        heard("no longer following; the orders stand, `packhorse relay holds` tells how they went")
        return INTERRUPTED
