"""The thread that moves watermarks: those of all partitions that are due, in one durable statement."""

import threading
from collections.abc import Sequence
from queue import Empty, SimpleQueue

from packhorse.core.errors import PackhorseError
from packhorse.processor.member.jobs import Move, Report
from packhorse.processor.partition.events import Event, LaneBroke, Marked, MarkFailed, MarkRefused
from packhorse.processor.plant import Plant
from packhorse.processor.running.faults import describe
from packhorse.processor.running.link import Link
from packhorse.processor.signals import Point
from packhorse.processor.storing import postgres
from packhorse.processor.storing.store import Move as StoredMove


class Marker:
    """
    One thread with a connection of its own.

    Results are durable before a watermark passes them: its commit waits for the log to be flushed, and so for that of every
    commit before it. A crash before it: what is above the watermark is delivered again and found in the inbox.
    """

    def __init__(self, plant: Plant, reports: SimpleQueue[Report]) -> None:
        self._plant = plant
        self._reports = reports
        self._link = Link(plant)
        self._moves: SimpleQueue[Move | None] = SimpleQueue()
        self.thread = threading.Thread(target=self._serve, name="packhorse-marker", daemon=True)

    def prepare(self) -> None:
        """
        Connect for the first time; for the opener's thread, before a partition is opened, when nothing can be queued yet.

        A server that crashes may lose results whose commit was not flushed, and ends all connections: so whoever was connected
        before they were made finds out. A connection made for the first watermark would be younger than what is below it.

        Raises:
            DatabaseUnavailable: It can't be had now.
        """
        if self._link.is_new:
            self._link.connection()

    def submit(self, move: Move | None) -> None:
        """Queue *move*; None ends the thread behind what is queued."""
        self._moves.put(move)

    def _serve(self) -> None:
        ends = False
        while not ends:
            first = self._moves.get()
            moves, ends = ([], True) if first is None else self._all(first)
            if moves:
                self._report(moves)
        self._link.close()

    def _all(self, first: Move) -> tuple[list[Move], bool]:
        """Return what else is queued, of each partition once, and whether the end is."""
        moves = [first]
        try:
            while True:
                move = self._moves.get_nowait()
                if move is None:
                    return moves, True
                moves.append(move)
        except Empty:
            return moves, False

    def _report(self, moves: Sequence[Move]) -> None:
        try:
            events = self._moved(moves)
        except PackhorseError as error:
            self._link.close()
            events = [MarkFailed(text=str(error)) for _ in moves]
        except Exception as error:  # noqa: BLE001 reported to the loop, which ends the process with it
            told = f"moving watermarks met an error that nobody foresaw: {describe(error)}"
            events = [LaneBroke(error=told) for _ in moves]
        for move, event in zip(moves, events, strict=True):
            self._reports.put(Report(place=move.place, generation=move.generation, event=event))

    def _moved(self, moves: Sequence[Move]) -> list[Event]:
        """Move watermarks; those of an earlier ownership of the same partition, if there are any, first."""
        newest = {move.place: move for move in moves}
        wanted = [
            StoredMove(move.stream.topic_id, move.place[1], move.old, move.new, move.leader_epoch)
            for move in newest.values()
        ]
        if self._link.is_fresh():
            return [MarkRefused() for _ in moves]
        moved = postgres.run(self._link.connection(), self._plant.store.move_watermarks(wanted))
        self._plant.signal(Point.AFTER_WATERMARK)
        found: list[Event] = []
        for move in moves:
            ok = newest[move.place] is move and (move.stream.topic_id, move.place[1]) in moved
            found.append(Marked(position=move.new, leader_epoch=move.leader_epoch) if ok else MarkRefused())
        return found
