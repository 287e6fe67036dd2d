"""Renew the lease in a thread of its own, so that neither a long send nor a slow fetch loses it."""

import threading
from collections.abc import Callable
from typing import Protocol
from uuid import UUID

from packhorse.core import logs
from packhorse.core.clock import Clock
from packhorse.core.errors import PackhorseError

_log = logs.logger("relay")


class LeaseTable(Protocol):
    """The lease's row, through a connection of its own."""

    def renew(self, token: UUID, lease: float) -> int | None:
        """
        Make the lease end *lease* seconds from now, by the database's clock; None when the token is not there.

        Return how many orders of people stand in the table.
        """

    def close(self) -> None:
        """Drop the connection."""


class LeaseKeeper:
    """
    Be the port `Keeper`: renew every third of the lease, and halt the broker when it ends unrenewed.

    The deadline is counted from before the renewal was asked for, on this machine's monotonic clock, so it lies before the
    one that the database counts. A thread that dies halts the broker and lets the relay end with an error. `halt` is called from this thread at the deadline, when the relay's own loop may be stuck.
    """

    def __init__(self, table: LeaseTable, *, lease: float, clock: Clock, halt: Callable[[], None]) -> None:
        self._table = table
        self._lease = lease
        self._clock = clock
        self._halt = halt
        self._changed = threading.Condition()
        self._token: UUID | None = None
        self._deadline: float | None = None
        self._orders = 0
        self._ended = False
        self._failing = False
        self._broken: str | None = None
        self._thread = threading.Thread(target=self._run, name="packhorse-relay-lease", daemon=True)
        self._thread.start()

    def keep(self, token: UUID, deadline: float) -> None:
        with self._changed:
            self._check()
            self._token, self._deadline, self._orders = token, deadline, 0
            self._changed.notify()

    def deadline(self) -> float | None:
        with self._changed:
            self._check()
            return self._deadline

    def orders(self) -> int:
        with self._changed:
            return self._orders

    def _check(self) -> None:
        if self._broken is not None:
            raise PackhorseError(
                f"the lease's thread met an error that nobody foresaw: {self._broken}; start the relay again"
            )

    def drop(self) -> None:
        with self._changed:
            self._token = None
            self._changed.notify()

    def close(self) -> None:
        """End the thread; blocks for at most one answer of the database."""
        with self._changed:
            self._ended, self._token = True, None
            self._changed.notify()
        self._thread.join(timeout=self._lease)
        self._table.close()

    def _run(self) -> None:
        try:
            while (token := self._next()) is not None:
                self._renew(token)
        except Exception as error:  # noqa: BLE001 a thread that died must not go unseen
            with self._changed:
                self._broken = type(error).__name__
            self._halt()

    def _next(self) -> UUID | None:
        """Wait until a renewal is due and return whose; None at the end."""
        with self._changed:
            while not self._ended:
                if self._token is None or self._deadline is None:
                    self._changed.wait()
                    continue
                due = self._deadline - self._lease * 2 / 3
                if (left := due - self._clock.monotonic()) <= 0:
                    return self._token
                self._changed.wait(left)
        return None

    def _renew(self, token: UUID) -> None:
        asked = self._clock.monotonic()
        try:
            orders = self._table.renew(token, self._lease)
        except PackhorseError as error:
            if not self._failing:
                _log.warning("the lease was not renewed; trying on until it ends", reason=str(error))
            self._failing = True
            self._after_failure(token)
            return
        self._failing, renewed = False, orders is not None
        with self._changed:
            ours = self._token == token
            if ours:
                self._orders = orders or 0
                self._deadline = asked + self._lease if renewed else None
                self._token = token if renewed else None
        if ours and not renewed:
            self._halt()

    def _after_failure(self, token: UUID) -> None:
        with self._changed:
            ended = (
                self._token == token
                and self._deadline is not None
                and self._clock.monotonic() >= self._deadline
            )
            if ended:
                self._token = None
            else:
                self._changed.wait(min(0.2, self._lease / 10))
        if ended:
            self._halt()
