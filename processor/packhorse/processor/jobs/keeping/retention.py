"""
Remove jobs whose time is over, and what they hold before that, one bounded step after another, one process at a time.

Every step is a transaction of its own and counts what it removed in it: after a crash between two of them the next turn goes on,
and the record has everything.
"""

from collections.abc import Callable, Iterator
from uuid import UUID

from packhorse.core.telemetry import NO_TELEMETRY, Metric, Telemetry
from packhorse.processor.jobs.keeping.model import Facts, JobRules, Left, Step, Turn, is_whole, windows
from packhorse.processor.jobs.keeping.postgres import JobTables
from packhorse.processor.keeping.turns import FIRST, Turns


class JobRetention(Turns[JobTables, Turn]):
    """
    Do at each call of `step` what is due among jobs that have ended; a job that has not ended never goes.

    What `run` does goes over all ids, whatever was looked at lately.
    """

    def __init__(
        self,
        tables: JobTables,
        rules: JobRules,
        *,
        every: float,
        by: str,
        telemetry: Telemetry = NO_TELEMETRY,
        first: float = FIRST,
    ) -> None:
        super().__init__(tables, every=every, by=by, first=first, what="jobs")
        self._rules = rules
        self._telemetry = telemetry
        self._whole = False
        self._warned: Left | None = None

    def _begin(self) -> Turn:
        return Turn()

    def _forget(self) -> None:
        self._whole = True

    def _look(self, turn: Turn) -> Iterator[None]:
        facts = self._tables.facts(self._rules)
        yield from self._walk(turn, facts, lambda after, until: self._tables.look(self._rules, after, until))
        self.turn = turn

    def _work(self, turn: Turn, every: float) -> Iterator[None]:
        if not self._claimed(every):
            return
        facts = self._tables.facts(self._rules)
        yield
        yield from self._walk(turn, facts, self._step)
        if not self._tables.renew(self._by):
            return
        self._tables.record(self._by, turn, facts.now)
        self._tell(turn)
        self._warn(self._tables.left())
        self.turn = turn

    def _walk(self, turn: Turn, facts: Facts, do: Callable[[UUID, UUID], Step]) -> Iterator[None]:
        made = windows(facts, whole=self._whole)
        turn.whole = is_whole(made)
        for window in made:
            after: UUID | None = window.after
            while after is not None:
                done = do(after, window.until)
                if not done.ours:
                    return
                turn.add(done)
                after = done.after if done.seen == self._rules.step else None
                yield

    def _step(self, after: UUID, until: UUID) -> Step:
        self._has_turn()  # a sign of life; the step itself asks whose turn it is
        return self._tables.step(self._by, self._rules, after, until)

    def _tell(self, turn: Turn) -> None:
        jobs, results = sum(turn.jobs.values()), sum(turn.results.values())
        self._telemetry.record(Metric.JOBS_REMOVED, jobs)
        self._telemetry.record(Metric.JOB_RESULTS_REMOVED, results)
        if jobs or results:
            self._log.info("jobs kept small", removed=jobs, results=results, whole=turn.whole)

    def _warn(self, left: Left) -> None:
        """Name what nobody sees to, once for each time that it changes."""
        if any(left) and left != self._warned:
            self._log.warning(
                "jobs are left: packhorse reconcile says which, and what each means", **left._asdict()
            )
        self._warned = left
