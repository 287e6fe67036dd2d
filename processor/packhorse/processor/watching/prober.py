"""Beside the loop: ask the broker where partitions end that have stood still for a while, and so whether they have work."""

import threading
from collections.abc import Mapping
from typing import Protocol

from packhorse.processor.plant import Plant
from packhorse.processor.running.faults import describe
from packhorse.processor.watching.stall import PartitionSample, Place

MOST = 200
"""Partitions that one question is about."""


class Probes(Protocol):
    """Ask a broker; may block for seconds."""

    def ends(self, places: Mapping[Place, int]) -> dict[Place, int | str]:
        """Return where each of *places*, to be read from its position, ends; or why that is not known."""


class Prober:
    """One thread; each partition without known work is asked about a few times within *after* seconds."""

    def __init__(self, plant: Plant, probe: Probes, *, after: float) -> None:
        self._plant = plant
        self._probe = probe
        self._every = after / 3
        self._asked: dict[Place, tuple[int, float]] = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="packhorse-prober", daemon=True)

    def start(self) -> None:
        """Start asking."""
        self._thread.start()
        self._plant.board.vitals.expect(self._thread)

    def stop(self) -> None:
        """Ask no more; a question in hand is left to itself."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(1.0)

    def look(self) -> None:
        """Ask about those that are due."""
        now = self._plant.clock.monotonic()
        due = self._due(now)
        if not due:
            return
        found = self._probe.ends(due)
        for place, position in due.items():
            self._asked[place] = position, now
        self._plant.board.ends(found)

    def _due(self, now: float) -> dict[Place, int]:
        """Return the partitions to ask about, those first that have waited longest; one that moved counts as asked just now."""
        waiting: list[tuple[float, Place, int]] = []
        there = set()
        for sample in self._plant.board.samples:
            if not _idle(sample) or sample.position is None:
                continue
            place = sample.topic, sample.partition
            there.add(place)
            position, at = self._asked.setdefault(place, (sample.position, now))
            if position != sample.position:
                self._asked[place] = sample.position, now
            elif now - at >= self._every:
                waiting.append((at, place, sample.position))
        for place in self._asked.keys() - there:
            del self._asked[place]
        return {place: position for _, place, position in sorted(waiting)[:MOST]}

    def _watch(self) -> None:
        while not self._stop.wait(min(1.0, self._every)):
            try:
                self.look()
            except Exception as error:  # noqa: BLE001 a prober that died must not go unseen
                self._plant.broke(f"the prober met an error that nobody foresaw: {describe(error)}")
                break


def _idle(sample: PartitionSample) -> bool:
    """Return whether the partition says of itself that there is nothing to do."""
    return sample.phase == "reading" and not (
        sample.pending or sample.running or sample.held or sample.trouble
    )
