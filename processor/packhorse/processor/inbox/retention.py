"""
Keep the inbox small, one bounded step after another, one process at a time.

Every step is a transaction of its own and safe by itself: after a crash between two of them the next turn goes on.
"""

from collections.abc import Callable, Iterator
from datetime import date, timedelta

from packhorse.core import logs
from packhorse.core.errors import PackhorseError
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

FIRST = 60.0
"""Seconds before the first turn: a process that is only just up has better things to do."""
PAUSE = 0.05
"""Seconds between two steps."""
RENEW = 20.0
"""Seconds between two signs of life."""
SWEEP = 6 * 3600.0
"""Seconds between two looks at the same rows; what is due comes by the day."""
_log = logs.logger("inbox")


class InboxRetention:
    """
    Do at each call of `step` what is due: make partitions, drop old ones, clean those that must stay by rows.

    For one thread. *by* must be this process's and this object's own: who has the turn is told by it.
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
        self._tables = tables
        self._rules = rules
        self._every = every
        self._by = by
        self._telemetry = telemetry
        self._first = first
        self._next: float | None = None
        self._steps: Iterator[None] | None = None
        self._now = 0.0
        self._renewed = 0.0
        self._swept: dict[str, float] = {}
        self._overdue: dict[str, str] = {}
        self._failing: str | None = None
        self.turn: Turn | None = None
        """What the last turn that was over did; None before."""

    def step(self, now: float) -> float:
        """
        Do one bounded step if one is due at *now* (monotonic seconds); return how many seconds to wait before the next call.

        Never raises: whatever goes wrong is a warning, and is tried again at the next turn.
        """
        self._now = now
        if self._next is None:
            self._next = now + self._first
        if self._steps is None:
            if now < self._next:
                return self._next - now
            self._steps = self._work(Turn(), self._every * 0.9)
        try:
            next(self._steps)
        except StopIteration:
            self._failing = None
            return self._rest(now)
        except PackhorseError as error:
            self._failed(type(error).__name__, str(error))
            return self._rest(now)
        except Exception as error:  # noqa: BLE001 retention must not end, and nobody waits for this thread's error
            self._failed(type(error).__name__, "an error that nobody foresaw; please report it")
            return self._rest(now)
        return PAUSE

    def run(
        self, wait: Callable[[float], object], now: Callable[[], float], *, act: bool = True
    ) -> Turn | None:
        """
        Do a whole turn now, waiting between steps; None: another process works on it just now.

        Without *act* nothing is changed; what would be dropped is due.

        Raises:
            NotReady, DatabaseUnavailable: The database lacks something, or does not answer.
        """
        turn = Turn()
        self.turn = None
        self._swept.clear()
        self._overdue.clear()
        self._now = now()
        try:
            for _ in self._work(turn, 0.0) if act else self._look(turn):
                wait(PAUSE)
                self._now = now()
        finally:
            self._tables.close()
        return self.turn

    def close(self) -> None:
        """Let the connection go."""
        self._steps = None
        self._tables.close()

    def _rest(self, now: float) -> float:
        self._steps = None
        self._tables.close()
        self._next = now + self._every
        return self._every

    def _failed(self, kind: str, reason: str) -> None:
        if self._failing != kind:
            _log.warning("retention of the inbox did not run; it is tried again", error=kind, reason=reason)
        self._failing = kind

    def _look(self, turn: Turn) -> Iterator[None]:
        for part in self._tables.facts().old():
            self._judge(turn, part.name, self._tables.drop(part.name, act=False))
            yield
        turn.overdue = dict(self._overdue)
        self.turn = turn

    def _work(self, turn: Turn, every: float) -> Iterator[None]:
        if not self._tables.claim(self._by, every):
            return
        self._renewed = self._now
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
            if self._now - self._renewed > RENEW:
                self._renewed = self._now
                if not self._tables.renew(self._by):
                    return
        self._swept[what] = self._now

    def _tell(self, turn: Turn) -> None:
        self._telemetry.record(Metric.INBOX_REMOVED, turn.removed)
        self._telemetry.record(Metric.INBOX_DROPPED, len(turn.dropped))
        if turn.made or turn.dropped or turn.removed:
            _log.info(
                "inbox kept small",
                made=len(turn.made),
                dropped=", ".join(turn.dropped),
                removed=turn.removed,
                stays=len(turn.overdue),
            )
