"""
Look each second at what moves and what does not, say it, and let health know; it asks neither database nor broker, so
neither can stop it.
"""

import threading
from collections.abc import Sequence

from packhorse.core.telemetry import Metric
from packhorse.processor.plant import Plant
from packhorse.processor.running.faults import describe
from packhorse.processor.watching.alarms import Alarms, Ended, Standing, speak
from packhorse.processor.watching.stacks import stack_of
from packhorse.processor.watching.stall import Cause, Stall, Tracks, look

EVERY = 1.0
"""Seconds between two looks."""
NAMED = 5
"""Partitions that one line names; it says the number of all."""


class Observer:
    """
    One thread that looks.

    A thread of the process that has died ends the process with an error: it can't mend itself, and whoever started it can.

    Attributes:
        stalls: What did not move at the last look.
    """

    def __init__(self, plant: Plant, *, lanes: int, after: float) -> None:
        self._plant = plant
        self._lanes = lanes
        self._after = after
        self._tracks = Tracks()
        self._alarms = Alarms()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="packhorse-observer", daemon=True)
        self.stalls: tuple[Stall, ...] = ()

    def start(self) -> None:
        """Start looking."""
        self._thread.start()
        self._plant.board.vitals.expect(self._thread)

    def stop(self) -> None:
        """Look no more."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(2.0)

    def look(self) -> None:
        """Look once."""
        plant, board = self._plant, self._plant.board
        now = plant.clock.monotonic()
        self._tracks, self.stalls = look(
            self._tracks,
            board.samples,
            board.hands.held(),
            lanes=self._lanes,
            now=now,
            after=self._after,
        )
        board.vitals.stalled([f"{one.where}: {one.text}" for one in self.stalls if one.unexplained])
        self._alarms, spoken = speak(self._alarms, self.stalls, now=now, after=self._after)
        for one in spoken:
            self._say(one, now)
        self._measure(self.stalls)
        for name, why in board.vitals.dead().items():
            plant.broke(f"{name} has ended: {why or 'nobody asked it to'}")

    def _say(self, one: Standing | Ended, now: float) -> None:
        log, group = self._plant.log, self._plant.app.group
        if isinstance(one, Ended):
            after = round(one.seconds, 1)
            log.info("moves again", group=group, after=after, **_places([each[1:] for each in one.subjects]))
            return
        first = one.stalls[0]
        say = log.error if first.unexplained else log.warning
        say(
            "does not move",
            group=group,
            **_places([(stall.topic, stall.partition, stall.offset) for stall in one.stalls]),
            type=first.type,
            cause=first.cause.value,
            seconds=round(now - first.since, 1),
            text=first.text,
            stack=" ← ".join(reversed(stack_of(first.hand))) if first.hand is not None else None,
        )

    def _measure(self, stalls: Sequence[Stall]) -> None:
        group = self._plant.app.group
        for cause in Cause:
            count = sum(1 for stall in stalls if stall.cause is cause)
            self._plant.telemetry.record(
                Metric.PROCESSOR_STALLED, count, {"group": group, "reason": cause.value}
            )

    def _watch(self) -> None:
        while not self._stop.wait(min(EVERY, self._after / 2)):
            try:
                self.look()
            except Exception as error:  # noqa: BLE001 an observer that died must not go unseen
                self._plant.broke(f"the observer met an error that nobody foresaw: {describe(error)}")
                break


def _places(found: Sequence[tuple[str, int, int | None]]) -> dict[str, str | int | None]:
    """Return where it is, for the log: one place by its parts, of many their number and some names."""
    if len(found) == 1:
        topic, partition, offset = found[0]
        return {"topic": topic, "partition": partition, "offset": offset}
    named = ", ".join(f"{topic}[{partition}]" for topic, partition, _ in found[:NAMED])
    return {"partitions": len(found), "among_them": named}
