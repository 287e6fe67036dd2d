"""The row in which a member says that it lives and how it is; and what status reads beside watermarks. No I/O here."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from packhorse.core.naming import checked_identifier
from packhorse.processor.health.judging import Health
from packhorse.processor.storing.steps import Statement, Steps
from packhorse.processor.watching import sql
from packhorse.processor.watching.stacks import Stack
from packhorse.processor.watching.stall import PartitionSample, Stall

EVERY = 5.0
"""Seconds between two writes of the row."""
ALIVE = 20.0
"""Seconds since it was last seen after which a member counts as dead."""
KEEP = 86_400.0
"""Seconds for which the row of a member that died is shown."""
MOST_PARTITIONS = 500
"""Partitions in one row; it is written every few seconds."""


class MemberRow(NamedTuple):
    """One member, as it wrote itself down; *seen* is seconds ago."""

    member: UUID
    host: str
    pid: int
    started_at: datetime
    seen: float
    status: dict[str, Any]

    @property
    def alive(self) -> bool:
        """Return whether it was seen lately."""
        return self.seen <= ALIVE


class TierRow(NamedTuple):
    """What waits in one tier; *due_in* is seconds until the first is due, negative when it is overdue."""

    topic: str
    tier: str
    messages: int
    unsent: int
    due_in: float


class ParkedRow(NamedTuple):
    """Parked keys of one topic; *oldest* is seconds ago."""

    topic: str
    keys: int
    oldest: float
    paused: int
    followers: int


class QuarantineRow(NamedTuple):
    """What rests in quarantine for one reason; *oldest* is seconds ago."""

    topic: str
    reason: str
    messages: int
    oldest: float


def status_of(
    samples: Sequence[PartitionSample],
    stalls: Iterable[tuple[Stall, Stack]],
    health: Health,
    *,
    now: float,
    facts: dict[str, object],
) -> dict[str, object]:
    """Return what the row says, as JSON can hold it; *now* is monotonic seconds, and no value of a message is in it."""
    shown = samples[:MOST_PARTITIONS]
    return {
        "partitions": [_partition(sample) for sample in shown],
        "partitions_not_shown": len(samples) - len(shown),
        "stalls": [_stall(stall, stack, now) for stall, stack in stalls],
        "live": health.live,
        "ready": health.ready,
        "wrong": [*health.not_live, *health.not_ready],
        **facts,
    }


def _partition(sample: PartitionSample) -> dict[str, object]:
    return {
        "topic": sample.topic,
        "partition": sample.partition,
        "phase": sample.phase,
        "position": sample.position,
        "lag": sample.lag,
        "in_flight": sample.running,
        "pending": sample.pending,
        "bytes": sample.size,
        "paused": sample.held or None,
        "trouble": sample.trouble or None,
    }


def _stall(stall: Stall, stack: Stack, now: float) -> dict[str, object]:
    return {
        "topic": stall.topic,
        "partition": stall.partition,
        "offset": stall.offset,
        "type": stall.type,
        "cause": stall.cause.value,
        "seconds": round(now - stall.since),
        "text": stall.text,
        "stack": list(stack),
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberTable:
    """The members of one group, and what waits in it."""

    schema: str
    group: str

    def __post_init__(self) -> None:
        checked_identifier(self.schema, what="database schema")

    def seen(
        self, member: UUID, *, host: str, pid: int, started_at: datetime, status: dict[str, object]
    ) -> Steps[None]:
        """Write that *member* lives and how it is; drop rows of those that died long ago."""
        yield self._statement(
            sql.SEEN, member=member, host=host, pid=pid, started_at=started_at, status=json.dumps(status)
        )
        yield self._statement(sql.FORGET_DEAD, keep=KEEP)

    def gone(self, member: UUID) -> Steps[None]:
        """Drop the row of *member*, which has left."""
        yield self._statement(sql.GONE, member=member)

    def members(self) -> Steps[list[MemberRow]]:
        """Return the members, those that died within the last day too."""
        answer = yield self._statement(sql.MEMBERS)
        return [MemberRow._make(row) for row in answer.rows]

    def tiers(self) -> Steps[list[TierRow]]:
        """Return what waits in the tiers."""
        answer = yield self._statement(sql.TIERS)
        return [TierRow._make(row) for row in answer.rows]

    def parked(self) -> Steps[list[ParkedRow]]:
        """Return the parked keys, by topic."""
        answer = yield self._statement(sql.PARKED)
        return [ParkedRow._make(row) for row in answer.rows]

    def quarantine(self) -> Steps[list[QuarantineRow]]:
        """Return what rests in quarantine, by topic and reason."""
        answer = yield self._statement(sql.QUARANTINE)
        return [QuarantineRow._make(row) for row in answer.rows]

    def _statement(self, text: str, **parameters: object) -> Statement:
        return Statement(text.replace("{schema}", self.schema).encode(), {"group": self.group, **parameters})
