"""An audited reset of a stopped group: which offsets it sets, decided purely."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from packhorse.core.errors import UsageError

WORDS = ("committed", "earliest", "latest")


class Standing(NamedTuple):
    """
    Where one partition of a group stands; None where there is nothing.

    Attributes:
        at: The first offset at or after the time that is wanted, if one is.
    """

    topic: str
    topic_id: UUID
    partition: int
    watermark: int | None
    committed: int | None
    low: int
    high: int
    at: int | None = None


class Move(NamedTuple):
    """One partition's reset."""

    standing: Standing
    to: int

    @property
    def skips(self) -> int:
        """Return how many offsets that are in the log and were not dealt with count as done from then on."""
        return max(0, self.to - self._done)

    @property
    def repeats(self) -> int:
        """Return how many offsets that are in the log and were dealt with are delivered again."""
        return max(0, self._done - max(self.to, self.standing.low))

    @property
    def _done(self) -> int:
        watermark, low = self.standing.watermark, self.standing.low
        return low if watermark is None else max(watermark, low)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reset:
    """
    What a person asked for.

    Attributes:
        to: committed, earliest, latest, a time with its zone, or an offset.
        partition: The one partition; None: all of the topic.
    """

    to: str
    partition: int | None = None

    def __post_init__(self) -> None:
        if self.offset is not None:
            if self.partition is None:
                raise UsageError(f"--to {self.to} is an offset of one partition; name it with --partition")
        elif self.to not in WORDS:
            _ = self.moment

    @property
    def offset(self) -> int | None:
        """Return the offset that is wanted; None when it is none."""
        return int(self.to) if self.to.isdecimal() else None

    @property
    def moment(self) -> datetime | None:
        """
        Return the time that is wanted; None when it is none.

        Raises:
            UsageError: It is neither a word, an offset nor a time.
        """
        if self.to in WORDS or self.offset is not None:
            return None
        try:
            found = datetime.fromisoformat(self.to)
        except ValueError:
            raise UsageError(
                f"--to {self.to[:40]!r} is not allowed: {', '.join(WORDS)}, an offset, or a time such as 2026-11-30T10:00Z"
            ) from None
        if found.tzinfo is None:
            raise UsageError(f"--to {self.to[:40]} has no zone; write e.g. 2026-11-30T10:00Z")
        return found


def moves(standings: Sequence[Standing], reset: Reset) -> list[Move]:
    """
    Return the moves that *reset* means, in order of partitions; those that change nothing are left out.

    Raises:
        UsageError: The partition does not exist, has no committed offset to go to, or the offset is not in the topic.
    """
    chosen = [one for one in standings if reset.partition in {None, one.partition}]
    if not chosen:
        raise UsageError(f"partition {reset.partition} does not exist; there are {len(standings)}, from 0")
    found = [Move(one, _target(one, reset)) for one in chosen]
    return [
        move for move in found if move.standing.watermark != move.to or move.standing.committed != move.to
    ]


def _target(standing: Standing, reset: Reset) -> int:
    where = f"{standing.topic}[{standing.partition}]"
    if reset.to == "committed":
        if standing.committed is None:
            raise UsageError(
                f"{where} has no committed offset; name another with --to, or --partition to leave it out"
            )
        return standing.committed
    if reset.to == "earliest":
        return standing.low
    if reset.to == "latest":
        return standing.high
    offset = reset.offset
    if offset is None:
        return standing.high if standing.at is None else standing.at
    if not standing.low <= offset <= standing.high:
        raise UsageError(
            f"offset {offset} is not in {where}: it holds {standing.low} to {standing.high - 1}, and {standing.high} comes next"
        )
    return offset
