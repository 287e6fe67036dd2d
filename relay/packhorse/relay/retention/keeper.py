"""Run retention from time to time in a thread of its own, beside the relay's loop and never in its way."""

import threading
from collections.abc import Callable

from packhorse.core import logs
from packhorse.core.errors import PackhorseError
from packhorse.core.telemetry import NO_TELEMETRY, Metric, Telemetry
from packhorse.relay.retention.model import Code, Outcome, Overdue, Report, Rules
from packhorse.relay.retention.ports import Partitions
from packhorse.relay.retention.shell import run_once
from packhorse.relay.retention.tell import told

FIRST = 5.0
"""Seconds between looks at whether this process owns the shard, and until the first turn."""
_LOUD = frozenset({Code.MADE, Code.EMPTIED, Code.DROPPED})
_log = logs.logger("retention")


class RetentionKeeper:
    """
    Run retention every *every* seconds while *owns* says that this process owns shard 0.

    Whatever goes wrong is a warning and a metric, and is tried again at the next turn. An alarm is an error in the log when
    what is overdue changes, the gauge RETENTION_OVERDUE, and the table retention, which `packhorse doctor` reads.
    """

    def __init__(
        self,
        partitions: Partitions,
        rules: Rules,
        *,
        every: float,
        by: str,
        owns: Callable[[], bool],
        telemetry: Telemetry = NO_TELEMETRY,
    ) -> None:
        self._partitions = partitions
        self._rules = rules
        self._every = every
        self._by = by
        self._owns = owns
        self._telemetry = telemetry
        self._ended = threading.Event()
        self._overdue: tuple[Overdue, ...] = ()
        self._failing: str | None = None
        self._thread = threading.Thread(target=self._work, name="packhorse-retention", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def close(self) -> None:
        """End the thread and cancel what runs; blocks for three seconds at most."""
        self._ended.set()
        self._partitions.cancel()
        if self._thread.is_alive():
            self._thread.join(timeout=2)

    def _work(self) -> None:
        pause = min(self._every, FIRST)
        while not self._ended.wait(pause):
            if self._owns_now():
                self.turn()
                pause = self._every
            else:
                pause = min(self._every, FIRST)

    def _owns_now(self) -> bool:
        try:
            return self._owns()
        except PackhorseError:
            return False  # the relay ends by the same error

    def turn(self) -> None:
        """Run once; never raises."""
        try:
            report = run_once(
                self._partitions, self._rules, by=self._by, tell=self._tell, ended=self._ended.is_set
            )
        except PackhorseError as error:
            self._failed(type(error).__name__, str(error))
        except Exception as error:  # noqa: BLE001 retention must not end, and nobody waits for this thread's error
            self._failed(type(error).__name__, "an error that nobody foresaw; please report it")
        else:
            self._done(report)
        finally:
            self._partitions.close()

    def _tell(self, outcome: Outcome) -> None:
        write = _log.info if outcome.code in _LOUD else _log.debug
        write("retention", partition=outcome.step.name, outcome=told(outcome))

    def _done(self, report: Report) -> None:
        if self._ended.is_set():
            return
        if report.count(Code.ELSEWHERE):
            self._telemetry.record(Metric.RETENTION_RUNS, 1, {"outcome": "elsewhere"})
            return
        if self._failing is not None:
            _log.info("retention runs again")
            self._failing = None
        self._telemetry.record(Metric.RETENTION_RUNS, 1, {"outcome": "done"})
        self._telemetry.record(Metric.RETENTION_EMPTIED, report.count(Code.EMPTIED))
        self._telemetry.record(Metric.RETENTION_OVERDUE, len(report.overdue))
        for each in report.overdue:
            if _same(each) not in {_same(one) for one in self._overdue}:
                _log.error("a partition is overdue", partition=each.name, cause=each.cause, reason=each.told)
        if self._overdue and not report.overdue:
            _log.info("no partition is overdue any more")
        self._overdue = report.overdue

    def _failed(self, kind: str, reason: str) -> None:
        if self._ended.is_set():
            return
        self._telemetry.record(Metric.RETENTION_RUNS, 1, {"outcome": "failed"})
        if self._failing != kind:
            _log.warning("retention did not run; it is tried again", error=kind, reason=reason)
        self._failing = kind


def _same(overdue: Overdue) -> tuple[str, str, str | None]:
    return overdue.name, overdue.cause, overdue.message_id
