"""
Keep the inbox small, one bounded step after another, one process at a time.

Every step is a transaction of its own and safe by itself: after a crash between two of them the next turn goes on.
"""

from collections.abc import Callable, Iterator
from datetime import date, timedelta

from packhorse.core.telemetry import NO_TELEMETRY, Metric, Telemetry
from packhorse.processor.inbox.model import (
    START,
    Cleaned,
    Code,
    Dropped,
    InboxRules,
    Place,
    Turn,
)
from packhorse.processor.inbox.postgres import InboxTables
from packhorse.processor.keeping.turns import FIRST, Turns

SWEEP = 6 * 3600.0
"""Seconds between two looks at the same rows; what is due comes by the day."""


class InboxRetention(Turns[InboxTables, Turn]):
    """
    Do at each call of `step` what is due: make partitions, drop old ones, clean those that must stay by rows.

    Without *act*, what `run` would drop is due.
    """

    def __init__(
        self,
        tables: InboxTables,
        rules: InboxRules,
        *,
        every: float,
        by: str,
        telemetry: Telemetry = NO_TELEMETRY,
        first: float = FIRST,
    ) -> None:
        super().__init__(tables, every=every, by=by, first=first, what="inbox")
        self._rules = rules
        self._telemetry = telemetry
        self._swept: dict[str, float] = {}
        self._overdue: dict[str, str] = {}

    def _begin(self) -> Turn:
        return Turn()

    def _forget(self) -> None:
        self._swept.clear()
        self._overdue.clear()

    def _look(self, turn: Turn) -> Iterator[None]:
        for part in self._tables.facts().old():
            self._judge(turn, part.name, self._tables.drop(part.name, act=False))
            yield
        turn.overdue = dict(self._overdue)
        self.turn = turn

    def _work(self, turn: Turn, every: float) -> Iterator[None]:
        if not self._claimed(every):
            return
        yield
        yield from self._make(turn)
        if self._rules.keep_days is not None:
            self._tables.move_clocks(self._rules)
            yield
            yield from self._drop(turn)
            facts = self._tables.facts()
            if (net := facts.net()) is not None and facts.kept_from is not None:
                yield from self._sweep(turn, net.name, self._clean(net.name))
            yield from self._sweep(turn, "failed_attempt", self._tables.clean_attempts)
            yield from self._sweep(turn, "quarantined_message", self._tables.clean_quarantined)
            self._tables.clean_rest()
        turn.overdue = dict(self._overdue)
        self._tables.record(self._by, turn)
        self._tell(turn)
        self.turn = turn

    def _make(self, turn: Turn) -> Iterator[None]:
        self._tables.fence("lower")  # a crash may have left it
        facts = self._tables.facts()
        for day in facts.missing(self._rules.ahead):
            code = self._made(day, facts.today)
            if code is Code.MADE:
                turn.made.append(f"inbox_{day:%Y%m%d}")
            yield
            if code in {Code.BUSY, Code.ELSEWHERE}:
                return

    def _made(self, day: date, today: date) -> Code:
        """Make a day's partition; beside a large default partition behind a proof, which locks nobody out."""
        code = self._tables.make(day)
        if code is not Code.LARGE or day < today + timedelta(days=2):
            return code
        if (raised := self._tables.fence("raise", day)) is not Code.DONE:
            return raised
        try:
            proven = self._tables.fence("prove")
            return self._tables.make(day) if proven is Code.DONE else proven
        finally:
            self._tables.fence("lower")

    def _drop(self, turn: Turn) -> Iterator[None]:
        busy = False
        for part in self._tables.facts().old():
            if self._fresh(part.name):
                continue
            dropped = self._tables.drop(part.name, act=not busy)
            self._judge(turn, part.name, dropped)
            busy = busy or dropped.code is Code.BUSY
            yield
            if dropped.code is Code.KEPT:
                yield from self._sweep(turn, part.name, self._clean(part.name))

    def _judge(self, turn: Turn, name: str, dropped: Dropped) -> None:
        self._overdue.pop(name, None)
        match dropped.code:
            case Code.DROPPED:
                turn.dropped.append(name)
            case Code.DUE:
                turn.due.append(name)
            case Code.KEPT if dropped.row is not None:
                row = dropped.row
                self._overdue[name] = f"message {row.id} of group {row.group} on {row.topic} is {row.outcome}"
            case Code.DEPENDED:
                self._overdue[name] = dropped.text or "an object needs it"
            case _:
                pass

    def _clean(self, name: str) -> Callable[[Place, int], Cleaned]:
        return lambda place, step: self._tables.clean(name, place, step)

    def _fresh(self, what: str) -> bool:
        swept = self._swept.get(what)
        return swept is not None and self._now - swept < SWEEP

    def _sweep(self, turn: Turn, what: str, clean: Callable[[Place, int], Cleaned]) -> Iterator[None]:
        """Go over all rows of *what* in steps, unless that was done lately."""
        if self._fresh(what):
            return
        place: Place | None = START
        while place is not None:
            done = clean(place, self._rules.step)
            if done.given_way:
                return
            turn.removed += done.removed
            place = done.after
            yield
            if not self._has_turn():
                return
        self._swept[what] = self._now

    def _tell(self, turn: Turn) -> None:
        self._telemetry.record(Metric.INBOX_REMOVED, turn.removed)
        self._telemetry.record(Metric.INBOX_DROPPED, len(turn.dropped))
        if turn.made or turn.dropped or turn.removed:
            self._log.info(
                "inbox kept small",
                made=len(turn.made),
                dropped=", ".join(turn.dropped),
                removed=turn.removed,
                stays=len(turn.overdue),
            )
