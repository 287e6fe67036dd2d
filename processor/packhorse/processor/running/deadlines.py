"""
Time-outs of handlers: one thread for all lanes watches them, has the query cancelled, and tells of a handler that stays.

    deadline = deadlines.slot(cancel=connection.cancel, stuck=report)
    deadline.start(handler.timeout)
    try:
        handler.function(message, context)
    finally:
        if deadline.stop():
            ...  # the run has failed with `timeout`, whatever it returned or raised

A slot belongs to one lane. Starting and stopping it moves no heap and wakes nobody: the thread sleeps until the earliest time
that it knows of, and looks then at what each slot says now.
"""

import math
import threading
from collections.abc import Callable
from contextlib import suppress

from packhorse.core.clock import Clock

GRACE = 2.0
"""Seconds from the first cancelling until a handler that has not returned is told of as stuck."""
AGAIN = 0.25
"""Seconds between cancellings: a handler may have been between two queries, or gone on with another one."""
CANCEL_WAIT = 5.0
"""Longest wait for a cancelling on its way, in seconds, so that it can't hit what the lane does next."""


class Deadlines:
    """Watches the slots of all lanes; its thread starts with the first time-out. For any thread."""

    def __init__(self, clock: Clock, *, grace: float = GRACE) -> None:
        self.grace = grace
        self.clock = clock
        self.changed = threading.Condition()
        self._slots: list[Deadline] = []
        self._thread: threading.Thread | None = None
        self._wakes_at = math.inf
        self._is_closed = False

    def slot(
        self, cancel: Callable[[], None], stuck: Callable[[], None], *, again: float | None = AGAIN
    ) -> "Deadline":
        """
        Return the deadline of one lane.

        Args:
            cancel: Ends the query that runs, from any thread, within `CANCEL_WAIT`; called until the handler has returned or is stuck.
                Its errors are ignored: it is called again.
            stuck: Called once, when the handler has not returned in the grace; must return at once.
            again: Seconds between calls of *cancel*; None: it is called once.
        """
        made = Deadline(self, cancel, stuck, again)
        with self.changed:
            self._slots.append(made)
        return made

    def forget(self, slot: "Deadline") -> None:
        """Watch *slot* no longer: its lane is gone."""
        with self.changed:
            if slot in self._slots:
                self._slots.remove(slot)

    def close(self) -> None:
        """End the thread; nothing is cancelled any more."""
        with self.changed:
            self._is_closed = True
            self.changed.notify_all()

    def expect(self, due: float) -> None:
        """Wake at *due* at the latest; called with `changed` held."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._watch, name="packhorse-deadlines", daemon=True)
            self._thread.start()
        if due < self._wakes_at:
            self._wakes_at = due
            self.changed.notify_all()

    def _watch(self) -> None:
        with self.changed:
            while not self._is_closed:
                now = self.clock.monotonic()
                for slot in list(self._slots):
                    self._look(slot, now)
                self._wakes_at = min((slot.due for slot in self._slots), default=math.inf)
                wait = None if self._wakes_at == math.inf else max(0.0, self._wakes_at - now)
                self.changed.wait(wait)

    def _look(self, slot: "Deadline", now: float) -> None:
        """Do what is due in *slot*; when no thread can be had for it now, a little later: this one must go on for the others."""
        try:
            slot.look(now)
        except RuntimeError:
            slot.due = now + AGAIN


class Deadline:
    """
    The time-out of one lane's run in hand; `start` and `stop` are for the lane's own thread or task.

    Attributes:
        due: When there is something to do next, by the monotonic clock; infinite when nothing is.
    """

    def __init__(
        self,
        deadlines: Deadlines,
        cancel: Callable[[], None],
        stuck: Callable[[], None],
        again: float | None,
    ) -> None:
        self._deadlines = deadlines
        self._cancel = cancel
        self._stuck = stuck
        self._again = again
        self.due = math.inf
        self._fired_at: float | None = None
        self._cancelling = 0

    @property
    def fired(self) -> bool:
        """Return whether the run in hand has outlasted its time-out."""
        return self._fired_at is not None

    def start(self, seconds: float | None) -> None:
        """Begin a run that may take *seconds*; None: no limit."""
        if seconds is None:
            return
        deadlines = self._deadlines
        due = deadlines.clock.monotonic() + seconds
        with deadlines.changed:
            self._fired_at = None
            self.due = due
            deadlines.expect(due)

    def stop(self) -> bool:
        """
        End the run; return whether it has outlasted its time-out. After that no query is cancelled any more.

        It waits for a cancelling that is on its way, `CANCEL_WAIT` at most.
        """
        if self.due == math.inf and self._fired_at is None:
            return False
        with self._deadlines.changed:
            fired = self._close()
            self._deadlines.changed.wait_for(lambda: self._cancelling == 0, CANCEL_WAIT)
        return fired

    def stop_soon(self) -> bool:
        """End the run as `stop` does, without waiting: for an event loop."""
        with self._deadlines.changed:
            return self._close()

    def look(self, now: float) -> None:
        """Do what is due at *now*; called with the lock held, by the one thread."""
        if now < self.due:
            return
        if self._fired_at is None:
            self._fired_at = now
            self._begin_cancelling()
        elif self._again is not None:
            self._begin_cancelling()
        ends = self._fired_at + self._deadlines.grace
        if now < ends:
            self.due = ends if self._again is None else min(ends, now + self._again)
        else:
            self.due = math.inf
            with suppress(Exception):  # else no handler would be watched any more
                self._stuck()

    def _close(self) -> bool:
        fired = self._fired_at is not None
        self.due, self._fired_at = math.inf, None
        return fired

    def _begin_cancelling(self) -> None:
        """Cancel in a thread of its own, which a dead network may hold for a while; one at a time."""
        if self._cancelling:
            return
        thread = threading.Thread(target=self._do_cancel, name="packhorse-cancel", daemon=True)
        self._cancelling += 1
        try:
            thread.start()
        except RuntimeError:
            self._cancelling -= 1
            raise

    def _do_cancel(self) -> None:
        with suppress(Exception):  # it is tried again, and a handler that stays is told of as stuck
            if self._fired_at is not None:
                self._cancel()
        with self._deadlines.changed:
            self._cancelling -= 1
            self._deadlines.changed.notify_all()
