"""
The runner of one replay: it reads the range and hands it over in portions, looks at what comes of it, and halts or ends.

It runs no handler, joins no group, and commits no offset. All that it knows is in the tables, under its token: killed anywhere,
another goes on behind the last portion.
"""

from collections import Counter, deque
from dataclasses import dataclass, field

from packhorse.console.replaying.handing.deciding import EMPTY, LOOK, Facts, Hand, decide, filled
from packhorse.console.replaying.handing.learning import Lasts, Tail
from packhorse.console.replaying.handing.postgres import HandingTables, Portion
from packhorse.console.replaying.reading import MOST, OutOfRange, Ranges, Reader
from packhorse.console.replaying.records import matcher_of
from packhorse.console.replaying.run import Counted, Part, Run, failed_in, progress_line, progress_of
from packhorse.console.running.deciding import End, Halt, Wait
from packhorse.console.running.loop import Step
from packhorse.core.clock import SYSTEM_CLOCK, Clock
from packhorse.core.errors import NotReady
from packhorse.processor.record import Delivery, Record

PASSED = 10_000
"""Records that one portion passes at most, wanted or not."""
STANDING_EVERY = 1.0
"""Seconds between two looks at what waits behind others, which costs more."""
SHARE = 10
"""A look that takes a while is taken the more seldom: at most one part in so many of the time goes to looking."""


@dataclass(slots=True)
class _Reading:
    """One partition in hand."""

    part: Part
    lasts: Lasts
    learned: bool = False
    position: int = 0
    records: deque[Record] = field(default_factory=deque)
    ended: bool = False
    tail: Tail | None = None


class ReplayShell:
    """Be the shell of a replay that was taken."""

    def __init__(
        self, tables: HandingTables, ranges: Ranges, run: Run, *, clock: Clock = SYSTEM_CLOCK
    ) -> None:
        self._clock = clock
        self._tables = tables
        self._ranges = ranges
        self._run = run
        self._wanted = run.wanted
        self._matcher = matcher_of(run.wanted, run.topic_id)
        self._reader: Reader | None = None
        self._behind: Reader | None = None
        self._left: deque[Part] | None = None
        self._now: _Reading | None = None
        self._parts: tuple[Part, ...] = run.parts
        self._unproved = dict(run.unproved)
        self._waiting: Counter[str] = Counter()
        self._look_at = self._standing_at = float("-inf")
        self._bucket = EMPTY
        self._rate, self._most_failures = run.wanted.rate, run.wanted.most_failures
        self._failed = 0

    def step(self, now: float) -> Step:
        """Look at outcomes, decide, and do that; raises LeaseLost, InfrastructureError."""
        if self._left is None and not self._begin():
            return Step(over=True)
        self._look(now)
        self._bucket = filled(self._bucket, self._rate, now=now)
        match decide(self._facts(), self._bucket.tokens):
            case Hand(most=most):
                return self._hand(most)
            case Wait(seconds=seconds):
                return Step(wait=seconds)
            case Halt(said=said):
                self._tables.close("halted", said, final=False)
                return Step(over=True)
            case End(said=said):
                self._tables.close("ended", said, final=True)
                return Step(over=True)

    def progress(self) -> str:
        """Return how far the run is, in one line."""
        return progress_line(progress_of(self._parts, self._unproved))

    def close(self) -> None:
        """Let go of the clients; never raises."""
        for reader in (self._reader, self._behind):
            if reader is not None:
                reader.close()
        self._reader = self._behind = None

    def _begin(self) -> bool:
        """Find where to go on, if the topic is the one that was planned for; return whether it is."""
        if self._partitions() is None:
            return False
        self._parts, self._unproved = self._tables.standing()
        self._failed = failed_in(self._parts)
        self._left = deque(part for part in self._parts if part.position < part.past)
        return True

    def _partitions(self) -> int | None:
        """Return how many partitions the topic has; None: it is not the one that was planned for, and the run is halted now."""
        try:
            topic_id, count = self._ranges.topic(self._wanted.topic)
            if topic_id == self._run.topic_id:
                return count
            said = f"topic {self._wanted.topic} was made anew since the plan: its id is {topic_id}"
        except NotReady as error:
            said = str(error)
        self._tables.close("halted", said, final=False)
        return None

    def _look(self, now: float) -> None:
        """Look at outcomes, some times a second; at what waits behind others once a second, and each time where that decides."""
        if now < self._look_at:
            return
        begun = self._clock.monotonic()
        proved = self._tables.proved()
        self._failed += proved.bad
        self._waiting, self._rate, self._most_failures = proved.waiting, proved.rate, proved.most_failures
        took = self._clock.monotonic() - begun
        if now >= self._standing_at or not self._more:
            self._parts, self._unproved = self._tables.standing()
            self._failed = failed_in(self._parts)  # also what an unanswered commit has counted off
            both = self._clock.monotonic() - begun
            self._standing_at = now + max(STANDING_EVERY, 2 * SHARE * both)
            took = took if self._more else both
        self._look_at = now + max(LOOK, SHARE * took)

    @property
    def _more(self) -> bool:
        return bool(self._left) or self._now is not None

    def _facts(self) -> Facts:
        retrying = self._waiting["retry"]
        behind = self._unproved.get("parked", Counted(0, 0)).behind
        parked = self._waiting["parked"]
        resting = retrying + min(behind, parked)
        return Facts(
            left=self._more,
            unproved=parked + retrying - resting,
            resting=resting,
            failed=self._failed,
            retrying=retrying,
            most_failures=self._most_failures,
            rate=self._rate,
        )

    def _hand(self, most: int) -> Step:
        """Do the next piece of reading: learn the keys of a partition, catch up behind the range, or hand a portion over."""
        reading = self._now or self._next()
        if reading is None:
            return Step()
        try:
            if not reading.learned:
                self._learn(reading)
            elif reading.tail is not None and self._catches_up(reading, reading.tail):
                pass
            else:
                return self._portion(reading, most)
        except OutOfRange:
            return self._over_the_gap(reading)
        return Step()

    def _next(self) -> _Reading | None:
        """Take the next partition in hand."""
        assert self._left is not None
        if not self._left:
            return None
        part = self._left[0]
        if self._reader is None:
            self._reader = self._ranges.reader(self._wanted.topic)
        reading = _Reading(part, Lasts(self._matcher, part.past), position=part.position)
        if self._wanted.again and not self._wanted.beyond:
            reading.tail = Tail(part.past, self._tables.keys(), read=part.past)
            if self._behind is None:
                self._behind = self._ranges.reader(self._wanted.topic)
            self._behind.begin(part.partition, part.past)
        self._reader.begin(part.partition, part.position)
        self._left.popleft()
        self._now = reading
        return reading

    def _learn(self, reading: _Reading) -> None:
        """Read on to where each key stands last, and begin anew for handing over once that is known."""
        records, ended = self._read(reading)
        reading.lasts.learn(records)
        if ended:
            assert self._reader is not None
            self._reader.begin(reading.part.partition, reading.part.position)
            reading.learned = True

    def _read(self, reading: _Reading) -> tuple[list[Record], bool]:
        """Return the next records of the range, and whether it ends with them."""
        assert self._reader is not None
        past = reading.part.past
        batch = self._reader.batch(MOST, LOOK)
        records = [record for record in batch.records if record.offset < past]
        ended = len(records) < len(batch.records) or (bool(records) and records[-1].offset + 1 >= past)
        return records, ended or (batch.end is not None and batch.end >= past)

    def _catches_up(self, reading: _Reading, tail: Tail) -> bool:
        """Read behind the range as far as the live group may be; return whether that is still to be done."""
        assert self._behind is not None
        below = tail.advance(self._tables.watermark(reading.part.partition))
        if tail.far and below:
            return False
        met = below and tail.whole
        batch = self._behind.batch(MOST, 0.0 if met else LOOK)
        tail.take(batch.records, batch.end)
        return not met or len(batch.records) == MOST

    def _staying(self, tail: Tail, deliveries: list[Delivery]) -> list[Delivery]:
        """Return those of *deliveries* whose key the live group has not moved on with, at its watermark or above it."""
        if unsure := tail.unsure(deliveries):
            tail.mark(self._tables.begun(unsure))
        return tail.stay(deliveries)

    def _refill(self, reading: _Reading) -> bool:
        """
        Read the next records, and ask then whether they are of the topic that was planned for; return whether they are.

        A record does not say what topic it is of: what was read before the answer is of that, or of an earlier one of its name.
        """
        try:
            records, reading.ended = self._read(reading)
            ours = not records or self._partitions() is not None
        except BaseException:
            self._rewind()
            raise
        reading.records.extend(records)
        return ours

    def _portion(self, reading: _Reading, most: int) -> Step:
        part = reading.part
        if not reading.records and not reading.ended:
            if not self._refill(reading):
                return Step(over=True)
            if not reading.records and not reading.ended:
                return Step()
        deliveries: list[Delivery] = []
        to = part.position
        passed = 0
        while reading.records and len(deliveries) < most and passed < PASSED:
            record = reading.records.popleft()
            passed, to = passed + 1, record.offset + 1
            deliveries += self._matcher([record])
        if reading.ended and not reading.records:
            to = part.past
        stay = deliveries if reading.tail is None else self._staying(reading.tail, deliveries)
        more, through = reading.lasts.split(deliveries, to)
        portion = Portion(
            part=part,
            to=to,
            deliveries=stay,
            more=more,
            through=through,
            moved=len(deliveries) - len(stay),
        )
        try:
            counts = self._tables.hand(portion)
        except BaseException:
            self._rewind()
            raise
        self._passed(reading, to, counts)
        return Step()

    def _passed(self, reading: _Reading, to: int, counts: Counter[str]) -> None:
        part = reading.part = reading.part._replace(position=to)
        self._parts = tuple(
            one._replace(position=to, counts=Counter(one.counts) + counts)
            if one.partition == part.partition
            else one
            for one in self._parts
        )
        self._bucket = self._bucket.taken(counts["handed"])
        self._waiting["parked"] += counts["handed"]
        if to >= part.past:
            self._now = None
            self._tables.through(part.partition)

    def _rewind(self) -> None:
        """Find anew where to go on: whether the portion was passed is not known, and the position says it."""
        self._left, self._now = None, None

    def _over_the_gap(self, reading: _Reading) -> Step:
        """Go on at the log's beginning: what was to come before it is gone."""
        part = reading.part
        self._rewind()
        if (count := self._partitions()) is None:
            return Step(over=True)
        low = next(
            one.low
            for one in self._ranges.bounds(self._wanted.topic, count, None, None)
            if one.partition == part.partition
        )
        to = min(max(low, part.position), part.past)
        nothing: frozenset[str] = frozenset()
        portion = Portion(
            part=part, to=to, deliveries=(), more=nothing, through=nothing, gone=to - part.position
        )
        self._tables.hand(portion)
        return Step()
