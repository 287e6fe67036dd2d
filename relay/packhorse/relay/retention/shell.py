"""One run of retention: take the steps that are decided on, one after another."""

from collections.abc import Callable

from packhorse.relay.errors import StatementFailed
from packhorse.relay.retention.decide import next_step, overdue
from packhorse.relay.retention.model import Code, Outcome, Report, Rules
from packhorse.relay.retention.ports import Partitions


def run_once(
    partitions: Partitions,
    rules: Rules,
    *,
    by: str,
    act: bool = True,
    tell: Callable[[Outcome], object] = id,
    ended: Callable[[], bool] = bool,
) -> Report:
    """
    Do what is due, and write down what is overdue; *tell* hears each outcome as it comes, and no step follows *ended*.

    Each step is safe by itself: after a crash between two of them the next run goes on. A statement that fails ends its
    own step alone. With *act* false nothing is changed, and nothing written down.

    Raises:
        NotReady: A function, table or right is missing.
        DatabaseUnavailable: The database does not answer.
    """
    facts = partitions.facts()
    done: list[Outcome] = []
    while not ended() and (step := next_step(facts, rules, done)) is not None:
        try:
            outcome = partitions.take(step) if act else partitions.look(step)
        except StatementFailed as error:
            outcome = Outcome(step=step, code=Code.FAILED, text=str(error))
        done.append(outcome)
        tell(outcome)
    report = Report(outcomes=tuple(done), overdue=tuple(overdue(facts, rules, done)))
    if act and not ended() and not report.count(Code.ELSEWHERE):
        partitions.record(report, by=by, keep_days=rules.keep_days)
    return report
