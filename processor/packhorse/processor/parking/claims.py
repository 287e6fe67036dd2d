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
        self._held: dict[int, dict[str, HeldKey]] = {}
        self._lost: set[HeldKey] = set()
        self._lock = threading.Lock()

    def enter(self, lane: object, source: str, *claims: Claim) -> None:
        """Remember *claims* of *lane*, each in place of an earlier one of its key."""
        with self._lock:
            held = self._held.setdefault(id(lane), {})
            held.update({claim.key: HeldKey(source, claim.key, claim.token) for claim in claims})

    def forget(self, lane: object) -> list[HeldKey]:
        """Forget what *lane* has claimed, and return what that was, sorted."""
        with self._lock:
            return sorted(self._held.pop(id(lane), {}).values())

    def lose(self, lane: object) -> None:
        """Take that *lane* has no connection any more on which it could leave what it has claimed."""
        with self._lock:
            self._lost.update(self._held.pop(id(lane), {}).values())

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
            return sorted(one for held in self._held.values() for one in held.values())
