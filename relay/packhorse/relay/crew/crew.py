"""One process's relays, one thread for each shard that it runs."""

import threading
from collections.abc import Callable
from functools import partial
from queue import Empty, SimpleQueue
from typing import Protocol

from packhorse.core import logs
from packhorse.core.errors import PackhorseError
from packhorse.relay.crew.duties import Roster, duties

_log = logs.logger("relay")
LONGEST = 32
"""Looks at the roster between two attempts at a shard whose relay could not begin, at most."""


class Hand(Protocol):
    """The relay of one shard."""

    @property
    def owned(self) -> bool:
        """Tell whether this process owns the shard; from any thread."""

    def run(self) -> None:
        """Run until `stop`."""

    def stop(self) -> None:
        """Ask for a clean stop; from any thread."""

    def close(self) -> None:
        """Let go of everything."""


class RosterPort(Protocol):
    """Who lives, and which shards there are."""

    def look(self) -> Roster:
        """Say that this process lives; return the roster."""

    def leave(self) -> None:
        """Say that it is gone; never raises."""


class _Work:
    """A thread that runs one shard's relay."""

    def __init__(self, shard: int, hand: Hand, over: Callable[[], None]) -> None:
        self.shard = shard
        self.hand = hand
        self.stopping = False
        self.error: BaseException | None = None
        self._over = over
        self.thread = threading.Thread(target=self._run, name=f"packhorse-relay-{shard}")
        self.thread.start()

    def _run(self) -> None:
        try:
            try:
                self.hand.run()
            finally:
                self.hand.close()
        except BaseException as error:  # noqa: BLE001 raised again in the main thread
            self.error = error
        finally:
            self._over()

    def stop(self) -> None:
        self.stopping = True
        self.hand.stop()


class Crew:
    """
    Run the shards that are this process's duty, until a stop is asked for.

    `run` belongs to the main thread, which sleeps between two looks at the roster; `stop` may be called from a signal handler.
    A shard that is given back is drained first: sent rows are confirmed and saved, then its lease is free. A shard that can't be begun
    with while others run (the database is away, a topic is missing) is tried again, and the others go on.
    """

    def __init__(self, roster: RosterPort, make: Callable[[int], Hand], *, pause: float) -> None:
        """*make* builds the relay of a shard; *pause* is in seconds."""
        self._roster = roster
        self._make = make
        self._pause = pause
        self._works: dict[int, _Work] = {}
        # no Event: a signal handler that sets one waits for ever where it interrupted the wait for it
        self._news: SimpleQueue[None] = SimpleQueue()
        self._stop = False
        self._failing = False
        self._begun = False
        self._failed: dict[int, tuple[int, int]] = {}

    def stop(self) -> None:
        """Ask for a clean stop of all shards."""
        self._stop = True
        self._news.put(None)

    def run(self) -> None:
        """
        Run until a stop is done.

        Raises:
            PackhorseError: A relay could not begin at the start, or ended by an error that nobody foresaw; the others are stopped
                cleanly.
        """
        try:
            self._change(self._roster.look())
            self._begun = True
            while not self._stop:
                self._await_news()
                self._reap()
                if not self._stop and (roster := self._looked()) is not None:
                    self._change(roster)
        finally:
            for work in list(self._works.values()):
                work.stop()
            for work in list(self._works.values()):
                work.thread.join()
            self._roster.leave()
        self._reap()

    def _await_news(self) -> None:
        """Sleep until the next look at the roster, or until a relay has ended or a stop is asked for."""
        try:
            self._news.get(timeout=self._pause)
            while True:
                self._news.get_nowait()
        except Empty:
            return

    def _looked(self) -> Roster | None:
        try:
            roster = self._roster.look()
        except PackhorseError as error:
            if not self._failing:
                _log.warning("the roster can't be read; each shard goes on as it is", reason=str(error))
            self._failing = True
            return None
        self._failing = False
        return roster

    def _change(self, roster: Roster) -> None:
        running = {shard for shard, work in self._works.items() if not work.stopping}
        owned = {shard for shard in running if self._works[shard].hand.owned}
        todo = duties(roster, running=running, owned=owned)
        for shard in todo.stop:
            _log.info("this process lets go of a shard", shard=shard)
            self._works[shard].stop()
        for shard in todo.start:
            if shard not in self._works and not self._stop:
                self._begin(shard)

    def _begin(self, shard: int) -> None:
        """Start the relay of *shard*; one that can't begin beside others is tried again after a growing count of looks."""
        failures, left = self._failed.get(shard, (0, 0))
        if left:
            self._failed[shard] = failures, left - 1
            return
        try:
            hand = self._make(shard)
        except PackhorseError as error:
            if not self._begun:
                raise
            _log.warning(
                "the relay of a shard can't begin; it is tried again", shard=shard, reason=str(error)
            )
            self._failed[shard] = failures + 1, min(2**failures, LONGEST)
            return
        self._failed.pop(shard, None)
        self._works[shard] = _Work(shard, hand, partial(self._news.put, None))

    def _reap(self) -> None:
        """Forget the relays that have ended; an error of one ends the process."""
        for shard, work in list(self._works.items()):
            if work.thread.is_alive():
                continue
            del self._works[shard]
            if work.error is not None:
                raise work.error
