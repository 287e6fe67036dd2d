"""Which keys this process has claimed to drain, so that their leases are renewed."""

import threading

from packhorse.processor.running.work import Claim
from packhorse.processor.storing.store import HeldKey


class Claims:
    """
    The claims of all lanes of a process; safe to share between threads.

    A lane enters what it claims and is forgotten when it has ended its work, however that ended: a lease that nobody renews
    runs out, and another drainer goes on. What a lane could not leave, because its connection was lost, is left by the renewer.

    Args:
        drainer: Who claims, for people that look at the table.
    """

    def __init__(self, drainer: str = "packhorse") -> None:
        self.drainer = drainer
        self._held: dict[int, HeldKey] = {}
        self._lost: set[HeldKey] = set()
        self._lock = threading.Lock()

    def enter(self, lane: object, source: str, claim: Claim) -> None:
        """Remember the claim of *lane*, in place of what it had: it drains one key at a time."""
        with self._lock:
            self._held[id(lane)] = HeldKey(source, claim.key, claim.token)

    def forget(self, lane: object) -> HeldKey | None:
        """Forget what *lane* has claimed, and return what that was."""
        with self._lock:
            return self._held.pop(id(lane), None)

    def lose(self, lane: object) -> None:
        """Take that *lane* has no connection any more on which it could leave what it has claimed."""
        with self._lock:
            if (held := self._held.pop(id(lane), None)) is not None:
                self._lost.add(held)

    def lost(self) -> list[HeldKey]:
        """Return what is to be left, sorted."""
        with self._lock:
            return sorted(self._lost)

    def left(self, one: HeldKey) -> None:
        """Take that *one* was left."""
        with self._lock:
            self._lost.discard(one)

    def held(self) -> list[HeldKey]:
        """Return what is claimed now, sorted."""
        with self._lock:
            return sorted(self._held.values())
