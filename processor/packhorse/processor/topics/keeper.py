"""Look after the topics that are read, in a thread of its own: trim tiers, and notice topics that were made anew."""

import threading
from collections.abc import Callable, Mapping

from packhorse.core.clock import Clock
from packhorse.core.logs import Log
from packhorse.processor.running.faults import describe
from packhorse.processor.tiers.trimming import Place, Trimmer
from packhorse.processor.topics.watching import TopicWatch

EVERY = 1.0
"""Seconds between two looks; the watch and the trimmer ask the broker far less often."""


class TopicKeeper:
    """
    One thread beside the loop; each question to the broker is bounded, and none of them holds the loop or the watchdog up.

    Args:
        watch: Notices.
        trimmer: Trims.
        done: Returns up to where partitions are done, durable and committed; asked at each look.
        anew: Is told that a topic was made anew: its partitions are to be opened again.
        clock: The time.
        log: Is told of an error that nobody foresaw; the thread goes on.
    """

    def __init__(
        self,
        watch: TopicWatch,
        trimmer: Trimmer,
        *,
        done: Callable[[], Mapping[Place, int]],
        anew: Callable[[], None],
        clock: Clock,
        log: Log,
    ) -> None:
        self._watch, self._trimmer = watch, trimmer
        self._done, self._anew = done, anew
        self._clock = clock
        self._log = log
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._work, name="packhorse-topics", daemon=True)

    def start(self) -> None:
        """Look once, so that what changes from here on is noticed, and begin."""
        self._watch.look(self._clock.monotonic())
        self._thread.start()

    def stop(self) -> None:
        """End the thread; blocks for two seconds at most."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(2.0)

    def look(self) -> None:
        """Look once."""
        now = self._clock.monotonic()
        if self._watch.look(now):
            self._anew()
        self._trimmer.trim(self._done(), now)

    def _work(self) -> None:
        while not self._stop.wait(EVERY):
            try:
                self.look()
            except Exception as error:  # noqa: BLE001 neither trimming nor watching is worth the process
                self._log.error("looking after the topics failed", cause=describe(error))
