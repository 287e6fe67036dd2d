"""The ranges of a replay: fixed at the plan, by what the log and the group's watermark say then. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from packhorse.console.replaying.wanted import Wanted
from packhorse.core.errors import NotReady, UsageError


@dataclass(frozen=True, slots=True, kw_only=True)
class Log:
    """
    One partition of the topic, and how far the group is in it.

    Attributes:
        low, high: The first offset that is there, and the next one to come.
        watermark: Below it the group has dealt with everything; None: it has never read the partition.
        since, until: The first offsets at or after the wanted times; None where no time is wanted.
    """

    partition: int
    low: int
    high: int
    watermark: int | None
    since: int | None = None
    until: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    """
    What is read of one partition.

    Attributes:
        first, past: From here on, and before there.
        gone: Offsets that were asked for and are no longer in the log.
        ahead: Offsets that were asked for and that the live group has not dealt with yet: it does them itself.
    """

    partition: int
    first: int
    past: int
    gone: int = 0
    ahead: int = 0

    @property
    def size(self) -> int:
        """Return how many offsets that are."""
        return max(0, self.past - self.first)


def ranges_of(wanted: Wanted, logs: Sequence[Log]) -> list[Range]:
    """
    Return the ranges that *wanted* means now, those that hold something.

    Raises:
        UsageError: A partition does not exist, the group has never read the topic, or nothing is left of the range; says of
            what it was made.
    """
    chosen = [log for log in logs if not wanted.partitions or log.partition in wanted.partitions]
    if missing := sorted(set(wanted.partitions) - {log.partition for log in logs}):
        raise UsageError(
            f"partition {missing[0]} of {wanted.topic} does not exist; there are {len(logs)}, from 0"
        )
    if all(log.watermark is None for log in chosen):
        raise UsageError(
            f"group {wanted.group} has no watermark of {wanted.topic}: it has never read it with this database; "
            f"see packhorse offsets show --group {wanted.group} --topic {wanted.topic}"
        )
    found = [_range(wanted, log) for log in chosen if log.watermark is not None]
    if not any(one.size for one in found):
        raise UsageError(_empty(found, chosen))
    return [one for one in found if one.size]


def _range(wanted: Wanted, log: Log) -> Range:
    asked = log.since if wanted.since is not None else wanted.from_offset
    first = log.low if asked is None else asked
    until = log.until if wanted.until is not None else wanted.to_offset
    end = log.high if until is None else min(until, log.high)
    past = min(end, log.watermark or 0)
    return Range(
        partition=log.partition,
        first=max(first, log.low),
        past=past,
        gone=max(0, min(log.low, end) - first),
        ahead=max(0, end - max(past, first)),
    )


def _empty(found: Sequence[Range], logs: Sequence[Log]) -> str:
    gone, ahead = sum(one.gone for one in found), sum(one.ahead for one in found)
    held = ", ".join(
        f"[{log.partition}] {log.low} to before {log.high}" for log in logs[:5] if log.high > log.low
    )
    if gone:
        return f"all {gone} offsets of the range are no longer in the log, which holds {held or 'nothing'}"
    if ahead:
        return (
            f"the range is empty: the group has dealt with none of its {ahead} offsets yet, and does them itself; "
            "a replay ends at the group's watermark"
        )
    return f"the range is empty; the log holds {held or 'nothing'}"


def check_topic(wanted: Wanted, topic_id: UUID, known: Mapping[UUID, int]) -> None:
    """
    Check that the topic is the one that the group has read; *known* are the group's topic ids with their partitions.

    Raises:
        NotReady: It was made anew.
    """
    if known and topic_id not in known:
        raise NotReady(
            f"topic {wanted.topic} was made anew: its id is {topic_id}, and group {wanted.group} has read "
            f"{', '.join(map(str, sorted(known)))}; start its processors first, they begin at the new one's start"
        )
