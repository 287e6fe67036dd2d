"""Two topics with several partitions, and a client like librdkafka: ordered, idempotent, and with late arrivals."""

from collections.abc import Callable, Sequence
from random import Random

from packhorse.core.errors import BrokerUnavailable
from packhorse.core.partitions import partition_of
from packhorse.relay.holds import Fault, Kind, Scope, scope_of
from packhorse.relay.model import AGGREGATEID, AGGREGATETYPE, ID, SEQ, Row
from packhorse.relay.ports import Failed, Handed

PARTITIONS = 2
TOPICS = ("topic", "lines")
Place = tuple[str, int]
PLACES: tuple[Place, ...] = tuple((topic, n) for topic in TOPICS for n in range(PARTITIONS))


class Topic:
    """
    What the broker has stored: the only thing that the checker reads; and what is wrong with it.

    Attributes:
        refused: Rows that it does not take.
        too_large: Rows that the client refuses before it hands them over.
        missing: Topics that are not there.
        leaderless: Partitions that nobody answers for.
        mute: Partitions that confirm nothing though the broker says that all is well.
        bad_share: Part of the rows that is refused in one way or the other.
    """

    def __init__(self) -> None:
        self.log: list[tuple[str, str]] = []
        self.refused: set[str] = set()
        self.too_large: set[str] = set()
        self.missing: set[str] = set()
        self.leaderless: set[Place] = set()
        self.mute: set[Place] = set()
        self.up = True
        self.bad_share = 0.06


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
        self._queues: dict[Place, list[Row]] = {place: [] for place in PLACES}
        self._stored: dict[Place, int] = dict.fromkeys(PLACES, 0)
        self._stuck: dict[Place, bool] = dict.fromkeys(PLACES, False)
        self._handed: list[Row] = []
        self._failed: list[Row] = []
        self._told: dict[Place, bool] = dict.fromkeys(PLACES, False)
        self._halted = False

    # --- the port

    def send(self, rows: Sequence[Row]) -> Handed:
        for count, row in enumerate(rows):
            self.pause()
            if self._halted:
                return Handed(count)
            if (fault := self._looked_at(row)) is not None:
                return Handed(count, fault)
            if sum(map(len, self._queues.values())) >= self.room:
                return Handed(count)
            self._queues[_place(row)].append(row)
            self._handed.append(row)
        return Handed(len(rows))

    def _looked_at(self, row: Row) -> Fault | None:
        if row[AGGREGATETYPE] in self.topic.missing:
            return _missing(row)
        if row[ID] in self.topic.too_large:
            return _fault(row, "too_large")
        return None

    def unreachable(self) -> Sequence[Fault]:
        if not self.topic.up:
            raise BrokerUnavailable("the broker is away")
        found = [place for place in PLACES if self._queues[place] and place in self.topic.leaderless]
        return [_unled(place) for place in found]

    def probe(self, scope: Scope) -> str | None:
        if not self.topic.up:
            raise BrokerUnavailable("the broker is away")
        if scope.aggregatetype in self.topic.missing:
            return "missing"
        if scope.kind is Kind.PARTITION and (scope.aggregatetype, scope.partition) in self.topic.leaderless:
            return "no leader"
        return None

    def confirmed(self, patience: float) -> bool:
        self.pause()
        if any(self._queues.values()) or self._failed or self._halted:
            return False
        self._handed.clear()
        return True

    def failed(self) -> Failed | None:
        for row in self._handed:
            if row in self._failed:
                return Failed(_fault(row, "refused"), "refused")
        return Failed(None, "halted") if self._halted else None

    def halt(self) -> None:
        self._leave_under_way()
        self._halted = True

    def renew(self, patience: float) -> Failed | None:
        while patience > 0 and any(self._queues[place] and not self._stuck[place] for place in PLACES):
            patience -= 1.0
            self.pause()
        failed = self._with_silent(self.failed())
        self._leave_under_way()
        self._new()
        return failed

    def close(self) -> None:
        self._leave_under_way()

    def _with_silent(self, failed: Failed | None) -> Failed | None:
        """Name the partitions that confirmed nothing, when others did."""
        handed = {_place(row) for row in self._handed}
        mute = [
            place
            for place in PLACES
            if self._queues[place] and place in handed and not self._stuck[place] and not self._told[place]
        ]
        if not mute or not any(self._told[place] for place in handed):
            return failed
        silent = [_unled(place, "silent") for place in mute]
        if failed is None:
            return Failed(None, "dropped", silent)
        return Failed(failed.fault, failed.reason, silent)

    def _leave_under_way(self) -> None:
        for place in PLACES:
            queue, stored = self._queues[place], self._stored[place]
            dead = self._stuck[place] or place in self.topic.leaderless
            under_way = [] if dead else queue[stored : stored + self.random.randint(0, 2)]
            if under_way:
                self.late.append(under_way)
        self._queues = {place: [] for place in PLACES}
        self._stored = dict.fromkeys(PLACES, 0)

    # --- what the scheduler does

    def _ready(self) -> list[Place]:
        leaderless, mute = self.topic.leaderless, self.topic.mute
        return [
            place
            for place, queue in self._queues.items()
            if queue and place not in leaderless and place not in mute
        ]

    def busy(self) -> bool:
        return self.topic.up and bool(self._ready())

    def step(self) -> None:
        """Store a row, or acknowledge one that is stored."""
        place = self.random.choice(self._ready())
        queue, stored = self._queues[place], self._stored[place]
        if stored and (stored == len(queue) or self.random.random() < 0.5):
            queue.pop(0)
            self._stored[place] -= 1
            self._told[place] = True
        elif not self._stuck[place]:
            self._request(place, queue[stored : stored + self.random.randint(1, 3)])

    def _request(self, place: Place, rows: list[Row]) -> None:
        """Store the rows of one request, or none of them when one is refused."""
        refused = [row for row in rows if row[ID] in self.topic.refused]
        if not refused:
            self.topic.log += [(row[AGGREGATEID], row[ID]) for row in rows]
            self._stored[place] += len(rows)
        elif self.overtake:
            self._failed += refused
            self._queues[place].remove(refused[0])
        else:
            self._failed += rows
            self._stuck[place] = True

    def arrive_late(self) -> None:
        """Store one row that was under way when its client ended; from the first refused one on, none is."""
        rows = self.late[0]
        row = rows.pop(0)
        if row[ID] in self.topic.refused or row[AGGREGATETYPE] in self.topic.missing:
            rows.clear()
        else:
            self.topic.log.append((row[AGGREGATEID], row[ID]))
        if not rows:
            self.late.pop(0)


def _place(row: Row) -> Place:
    return row[AGGREGATETYPE], partition_of(row[AGGREGATEID].encode(), PARTITIONS)


def _fault(row: Row, code: str) -> Fault:
    return Fault(
        scope=scope_of(row), code=code, reason=code, heals=False, topic="topic", seq=row[SEQ], id=row[ID]
    )


def _missing(row: Row) -> Fault:
    scope = Scope(kind=Kind.TOPIC, aggregatetype=row[AGGREGATETYPE])
    return Fault(scope=scope, code="missing", reason="missing", heals=True, topic=row[AGGREGATETYPE])


def _unled(place: Place, code: str = "no_leader") -> Fault:
    scope = Scope(kind=Kind.PARTITION, aggregatetype=place[0], partition=place[1], partitions=PARTITIONS)
    return Fault(scope=scope, code=code, reason=code, heals=True, topic=place[0])
