"""Topics with several partitions, and a client like librdkafka: ordered, idempotent, and with late arrivals."""

from collections.abc import Callable, Sequence
from random import Random

from packhorse.relay.holds import Fault, scope_of
from packhorse.relay.model import AGGREGATEID, ID, SEQ, Row
from packhorse.relay.ports import Failed, Handed

PARTITIONS = 2


class Topic:
    """What the broker has stored: the only thing that the checker reads."""

    def __init__(self) -> None:
        self.log: list[tuple[str, str]] = []
        self.refused: set[str] = set()
        self.up = True


class SimBroker:
    """
    Be the port `Broker`; `step` is one delivery that the scheduler takes.

    A row is stored first and acknowledged in a later step, so an end in between loses the acknowledgement. After a refused row
    nothing behind it in its partition is stored by this client: the broker refuses what is out of sequence. What is under way when
    the client ends may still be stored, in order.
    """

    def __init__(self, topic: Topic, random: Random, *, pause: Callable[[], None]) -> None:
        self.topic = topic
        self.random = random
        self.pause = pause
        self.room = 6
        self.overtake = False
        self._new()
        self.late: list[list[Row]] = []

    def _new(self) -> None:
        self._queues: list[list[Row]] = [[] for _ in range(PARTITIONS)]
        self._stored: list[int] = [0] * PARTITIONS
        self._stuck = [False] * PARTITIONS
        self._handed: list[Row] = []
        self._failed: list[Row] = []
        self._halted = False

    # --- the port

    def send(self, rows: Sequence[Row]) -> Handed:
        for count, row in enumerate(rows):
            self.pause()
            if self._halted:
                return Handed(count)
            if sum(map(len, self._queues)) >= self.room:
                return Handed(count)
            self._queues[_partition(row)].append(row)
            self._handed.append(row)
        return Handed(len(rows))

    def confirmed(self, patience: float) -> bool:
        self.pause()
        if any(self._queues) or self._failed or self._halted:
            return False
        self._handed.clear()
        return True

    def failed(self) -> Failed | None:
        for row in self._handed:
            if row in self._failed:
                fault = Fault(scope=scope_of(row), code="refused", reason="refused", heals=False, topic="topic", seq=row[SEQ], id=row[ID])
                return Failed(fault, "refused")
        return Failed(None, "halted") if self._halted else None

    def halt(self) -> None:
        self._leave_under_way()
        self._halted = True

    def renew(self, patience: float) -> Failed | None:
        while patience > 0 and any(
            queue and not stuck for queue, stuck in zip(self._queues, self._stuck, strict=True)
        ):
            patience -= 1.0
            self.pause()
        failed = self.failed()
        self._leave_under_way()
        self._new()
        return failed

    def close(self) -> None:
        self._leave_under_way()

    def _leave_under_way(self) -> None:
        for queue, stored, stuck in zip(self._queues, self._stored, self._stuck, strict=True):
            under_way = [] if stuck else queue[stored : stored + self.random.randint(0, 2)]
            if under_way:
                self.late.append(under_way)
        self._queues = [[] for _ in range(PARTITIONS)]
        self._stored = [0] * PARTITIONS

    # --- what the scheduler does

    def busy(self) -> bool:
        return self.topic.up and any(self._queues)

    def step(self) -> None:
        """Store a row, or acknowledge one that is stored."""
        partition = self.random.choice([n for n, queue in enumerate(self._queues) if queue])
        queue, stored = self._queues[partition], self._stored[partition]
        if stored and (stored == len(queue) or self.random.random() < 0.5):
            queue.pop(0)
            self._stored[partition] -= 1
        elif not self._stuck[partition]:
            self._request(partition, queue[stored : stored + self.random.randint(1, 3)])

    def _request(self, partition: int, rows: list[Row]) -> None:
        """Store the rows of one request, or none of them when one is refused."""
        refused = [row for row in rows if row[ID] in self.topic.refused]
        if not refused:
            self.topic.log += [(row[AGGREGATEID], row[ID]) for row in rows]
            self._stored[partition] += len(rows)
        elif self.overtake:
            self._failed += refused
            self._queues[partition].remove(refused[0])
        else:
            self._failed += rows
            self._stuck[partition] = True

    def arrive_late(self) -> None:
        """Store one row that was under way when its client ended; from the first refused one on, none is."""
        rows = self.late[0]
        row = rows.pop(0)
        if row[ID] in self.topic.refused:
            rows.clear()
        else:
            self.topic.log.append((row[AGGREGATEID], row[ID]))
        if not rows:
            self.late.pop(0)


def _partition(row: Row) -> int:
    return ord(row[AGGREGATEID]) % PARTITIONS
