"""What a chunk tells the brakes: how the first attempts of its members, and of followers behind them, have ended."""

from collections import Counter
from collections.abc import Mapping, Sequence

from packhorse.processor.app import Processor
from packhorse.processor.breaking.brake import Seen, seen
from packhorse.processor.handlers import Handler
from packhorse.processor.outcomes import Outcome
from packhorse.processor.record import replay_handler_of
from packhorse.processor.running.work import Member, Result

MOST_FAILED = 30
"""Members of one transaction, or followers of one chunk, that may fail when they are most: the brake must hear of them first."""
_DONE = Outcome.DONE


class Followed:
    """
    What a chunk has committed of followers, whatever became of it afterwards; counted once, since there may be very many.

    Attributes:
        results: All of them.
    """

    __slots__ = ("_failed", "results")

    def __init__(self) -> None:
        self.results: list[Result] = []
        self._failed = 0

    def add(self, results: Sequence[Result]) -> None:
        """Take what a transaction has committed."""
        self.results.extend(results)
        self._failed += sum(map(has_failed, results))

    @property
    def too_many(self) -> bool:
        """Return whether so many have failed that the brakes are to hear of it before more are run."""
        return self._failed >= MOST_FAILED and 2 * self._failed > len(self.results)


def tallies(members: list[Member], results: list[Result]) -> dict[str, Seen]:
    """Return, by handler, how the first attempts among *results* ended; one that was put off has not failed."""
    if all(r.outcome is _DONE and r.row is None for r in results):
        by = {id(m.handler): m.handler for m in members[: len(results)]}
        counts = Counter([id(m.handler) for m in members[: len(results)]] if len(by) > 1 else ())
        return {h.name: Seen(counts[at] or len(results)) for at, h in by.items() if h is not None}
    found: dict[int, tuple[Handler, list[bool]]] = {}
    for member, result in zip(members, results, strict=False):
        handler = member.handler
        if member.row is None and handler is not None and result.outcome is not Outcome.PARKED:
            found.setdefault(id(handler), (handler, []))[1].append(has_failed(result))
    return {handler.name: seen(failures) for handler, failures in found.values()}


def tallies_of_followers(results: Sequence[Result], app: Processor) -> dict[str, Seen]:
    """Return, by handler, how the first attempts of followers ended."""
    found: dict[str, list[bool]] = {}
    for result in results:
        delivery, row = result.delivery, result.row
        handler = app.handler_of(
            delivery.type, tombstone=delivery.record.value is None, replay=replay_handler_of(delivery)
        )
        if handler is not None and row is not None and row.attempt <= 1:
            found.setdefault(handler.name, []).append(has_failed(result))
    return {name: seen(failures) for name, failures in found.items()}


def summed(first: Mapping[str, Seen], then: Mapping[str, Seen]) -> dict[str, Seen]:
    """Return both, in this order."""
    found = dict(first)
    for name, more in then.items():
        of = found.get(name, Seen(0))
        found[name] = Seen(of.attempts + more.attempts, of.failed << more.attempts | more.failed)
    return found


def has_failed(result: Result) -> bool:
    """Return whether an attempt failed, or the message was stopped without one."""
    return result.failed_as is not None or result.outcome is Outcome.QUARANTINE
