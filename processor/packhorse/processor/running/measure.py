"""What is measured and logged of a batch that was committed; names from the closed list, attributes few and bounded."""

from collections import Counter
from collections.abc import Callable

from packhorse.core.clock import Clock
from packhorse.core.logs import Log, logger
from packhorse.core.telemetry import Metric, Telemetry
from packhorse.processor.metadata import MessageLog
from packhorse.processor.outcomes import Outcome
from packhorse.processor.running.work import Result, Work

_DONE = Outcome.DONE


class Measure:
    """Record the metrics of batches, and log what failed; safe to share between threads as far as the telemetry is."""

    def __init__(self, telemetry: Telemetry, clock: Clock, group: str, *, log: Log | None = None) -> None:
        self._log = log or logger("processor")
        self._telemetry = telemetry
        self._clock = clock
        self._group = group

    def batch(self, work: Work) -> Callable[[list[Result], int], None]:
        """Return what a batch reports to; the time runs from now."""
        began = self._clock.monotonic()

        def report(results: list[Result], duplicates: int) -> None:
            odd = [result for result in results if result.outcome is not _DONE]
            self._record(work, results, odd, duplicates, took=self._clock.monotonic() - began)
            for result in odd:
                self._tell(result)

        return report

    def _record(
        self, work: Work, results: list[Result], odd: list[Result], duplicates: int, *, took: float
    ) -> None:
        """Record a chunk, of whose *results* most are done and the rest is *odd*."""
        record = self._telemetry.record
        where = {"topic": work.stream.source, "group": self._group}
        if results:
            record(Metric.PROCESSOR_BATCH, len(results), where)
            record(Metric.PROCESSOR_DURATION, took, where)
            age = self._clock.now().timestamp() - results[0].delivery.record.timestamp_ms / 1000
            record(Metric.PROCESSOR_AGE, max(age, 0.0), where)
        if well := len(results) - len(odd):
            done = {**where, "outcome": _DONE.value}
            record(Metric.PROCESSOR_DELIVERIES, well, done)
            record(Metric.PROCESSOR_ATTEMPTS, well, done)
        for outcome, count in Counter(result.outcome for result in odd).items():
            record(Metric.PROCESSOR_DELIVERIES, count, {**where, "outcome": outcome.value})
        if duplicates:
            record(Metric.PROCESSOR_DELIVERIES, duplicates, {**where, "outcome": "duplicate"})
        failed = Counter(result.failed_as for result in odd if result.failed_as)
        for reason, count in failed.items():
            record(Metric.PROCESSOR_ATTEMPTS, count, {**where, "outcome": "failed", "reason": reason})
        stopped = Counter(r.reason for r in odd if r.outcome is Outcome.QUARANTINE)
        for why, count in stopped.items():
            record(Metric.PROCESSOR_QUARANTINED, count, {**where, "reason": why or ""})

    def _tell(self, result: Result) -> None:
        """Log a failed attempt or a quarantined message, so that whoever only watches the process sees it."""
        log = MessageLog(self._log, result.delivery)
        if result.outcome is Outcome.QUARANTINE:
            log.warning(
                "message in quarantine",
                group=self._group,
                attempt=result.attempt,
                reason=result.reason,
                error=result.error,
                next=f"packhorse quarantine show {result.delivery.id}",
            )
        elif result.outcome is Outcome.RETRY:
            log.warning(
                "attempt failed",
                group=self._group,
                attempt=result.attempt,
                error=result.error,
                again_in=f"{result.delay:.1f} s",
            )
