"""Decide what retention does next, and what somebody should look at. Pure: no I/O, no clock."""

from collections.abc import Iterator, Sequence
from datetime import timedelta

from packhorse.relay.retention.model import (
    Blocker,
    Code,
    Drop,
    Empty,
    Facts,
    Make,
    Outcome,
    Overdue,
    Rules,
    Step,
)
from packhorse.relay.retention.tell import told

LONG = 3600
"""Seconds after which an open transaction that is in the way is for a person to look at."""
LEFT_OVER = 7
"""Empty partitions that may wait to be dropped before somebody should look."""
LATE = (Code.UNPUBLISHED, Code.HELD, Code.NO_HORIZON, Code.FAILED)
UNTRIED = (Code.LARGE, Code.BUSY, Code.FAILED)


def next_step(facts: Facts, rules: Rules, done: Sequence[Outcome]) -> Step | None:
    """
    Return what to do after *done*, the outcomes of this run so far; None at its end.

    First the days to come, so that no row falls into the default partition; then the due ones, the oldest first; then the
    default partition; last the empty ones are dropped. A drop that had to give way ends the drops of this run: each
    makes writers wait for a moment, and the next would meet the same transaction.
    """
    if any(outcome.code is Code.ELSEWHERE for outcome in done):
        return None
    tried = {(type(outcome.step), outcome.step.name) for outcome in done}
    first: tuple[Step, ...] = (*_makes(facts, rules), *_empties(facts, rules))
    for step in first:
        if (type(step), step.name) not in tried:
            return step
    if any(isinstance(outcome.step, Drop) and outcome.code is Code.BUSY for outcome in done):
        return None
    drops = (step for step in _drops(facts, rules, done) if (Drop, step.name) not in tried)
    return next(drops, None)


def _makes(facts: Facts, rules: Rules) -> Iterator[Make]:
    made = {partition.name for partition in facts.partitions}
    for n in range(rules.ahead + 1):
        step = Make(day=facts.today + timedelta(days=n))
        if step.name not in made:
            yield step


def _empties(facts: Facts, rules: Rules) -> Iterator[Empty]:
    keep = facts.keep(rules)
    if keep is None:
        return
    days = [partition for partition in facts.partitions if partition.day is not None and partition.day < keep]
    nets = [partition for partition in facts.partitions if partition.day is None]
    for partition in [*sorted(days, key=lambda each: each.name), *nets]:
        if partition.size:
            yield Empty(name=partition.name, keep=keep)


def _drops(facts: Facts, rules: Rules, done: Sequence[Outcome]) -> Iterator[Drop]:
    keep = facts.keep(rules)
    emptied = {outcome.step.name for outcome in done if outcome.code in {Code.EMPTIED, Code.DUE}}
    for partition in sorted(facts.partitions, key=lambda each: each.name):
        due = keep is not None and partition.day is not None and partition.day < keep
        if keep is not None and due and (not partition.size or partition.name in emptied):
            yield Drop(name=partition.name, keep=keep)


def overdue(facts: Facts, rules: Rules, done: Sequence[Outcome]) -> Iterator[Overdue]:
    """
    Yield what somebody should look at after a run.

    A partition that stays for a row is one at once: the row waits since the days that are kept. One whose lock another
    transaction had is not, unless that transaction wrote to it, is prepared, or is open for an hour.
    """
    for outcome in done:
        match outcome.step:
            case Make(day=day):
                late = outcome.code in UNTRIED and day <= facts.today + timedelta(days=1)
            case Empty():
                late = outcome.code in LATE or (outcome.code is Code.BUSY and _lasts(outcome.blocker))
            case Drop():
                late = outcome.code is Code.DEPENDED or (
                    outcome.code in {Code.BUSY, Code.FAILED} and _left_over(facts, rules, done) > LEFT_OVER
                )
        if late:
            row = outcome.row
            yield Overdue(
                name=outcome.step.name,
                cause=outcome.code.value,
                told=told(outcome),
                message_id=row.id if row else None,
                aggregatetype=row.aggregatetype if row else None,
                hold=row.hold if row else None,
            )


def _lasts(blocker: Blocker | None) -> bool:
    if blocker is None:
        return False
    return blocker.wrote or blocker.pid is None or (blocker.seconds or 0) >= LONG


def _left_over(facts: Facts, rules: Rules, done: Sequence[Outcome]) -> int:
    dropped = sum(outcome.code is Code.DROPPED for outcome in done)
    return len(list(_drops(facts, rules, done))) - dropped
