"""Beside the loop: renew the leases of parked keys that this process drains, and leave those that a lane could not leave."""

import threading
from collections.abc import Sequence

from packhorse.core.errors import PackhorseError
from packhorse.processor.plant import Plant
from packhorse.processor.running.work import Claim
from packhorse.processor.storing import postgres
from packhorse.processor.storing.store import HeldKey
from packhorse.processor.watching.watchdog import forever

EVERY = 5.0
"""Seconds between two renewals; a sixth of a lease."""


class Renewer:
    """
    Renew the leases of what the lanes have claimed, for as long as they drain.

    A thread of its own: whatever else waits for the broker, a lease must not run out meanwhile. It is connected only while
    there is something to renew or to leave. A process that is frozen renews nothing, and another drainer goes on.
    """

    def __init__(self, plant: Plant) -> None:
        self._plant = plant
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._serve, name="packhorse-renewer", daemon=True)
        self._connection: postgres.GuardedConnection | None = None
        self._last: HeldKey | None = None
        self._told = False

    def start(self) -> None:
        """Start renewing."""
        self._thread.start()

    def stop(self) -> None:
        """Renew no more; waits for the renewal in hand, up to two seconds."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(2.0)

    def renew(self) -> int:
        """
        Renew what is claimed, and return how many leases that were; then leave what was claimed on connections that were lost.

        In this order: whoever still has the row of a lost claim lets a leave wait for a lock, and no lease may run out meanwhile.

        Raises:
            DatabaseUnavailable: The leases run on, for now.
        """
        plant = self._plant
        held, lost = plant.claims.held(), plant.claims.lost()
        if not held and not lost:
            self._close()
            return 0
        if self._connection is None or self._connection.closed:
            self._connection = postgres.connect(plant.conninfo)
        renewed = len(postgres.run(self._connection, plant.store.renew(held)))
        self._leave(self._connection, lost)
        return renewed

    def _leave(self, connection: postgres.GuardedConnection, lost: Sequence[HeldKey]) -> None:
        """
        Leave what was lost, for EVERY seconds and one wait for a lock; the next look goes on behind where this one ended.

        What can't be left is told once and tried again at a later look. It is no error of the look: that would make the
        renewals more seldom.
        """
        plant, deadline, failed = self._plant, self._plant.clock.monotonic() + EVERY, False
        for one in sorted(lost, key=self._is_behind):
            self._last = one
            try:
                postgres.run(connection, plant.store.leave(one.topic, Claim(one.key, one.token)))
                plant.claims.left(one)
            except PackhorseError as error:
                failed = True
                if not self._told:
                    plant.log.warning("a lost claim can't be left yet", topic=one.topic, cause=str(error))
                self._told = True
            if connection.closed or plant.clock.monotonic() >= deadline:
                break
        self._told = self._told and failed

    def _is_behind(self, one: HeldKey) -> tuple[bool, HeldKey]:
        return self._last is not None and one <= self._last, one

    def _serve(self) -> None:
        def renew() -> float:
            self.renew()
            return EVERY

        forever(renew, self._stop, self._plant, every=EVERY, name="renewer")
        self._close()

    def _close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.end()
