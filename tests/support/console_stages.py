"""Put a message into one stage of its way, on real tables, as relay, processors and people would."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any
from uuid import UUID

import psycopg
from psycopg.types.json import Jsonb

from packhorse.core.clock import SYSTEM_CHANCE
from packhorse.processor.record import key_hash

GROUP, TOPIC, KEY = "figures", "airline.aircraft", "N14228"

_RETRY = """
INSERT INTO packhorse.retry_message (group_id, topic, message_id, attempt, tier, due_at, topic_id, partition, "offset", headers,
    sent_at, sent_partition, sent_offset)
VALUES (%(group)s, %(topic)s, %(id)s, %(attempt)s, %(tier)s, clock_timestamp() + %(due_in)s, gen_random_uuid(), 2, 1234, '[]',
    CASE WHEN %(sent)s THEN clock_timestamp() END, CASE WHEN %(sent)s THEN 2 END, CASE WHEN %(sent)s THEN 7 END)
"""
_KEY = """
INSERT INTO packhorse.parked_key (group_id, topic, key_hash, partition, head_id, paused, paused_by, paused_why, paused_at,
    drainer, lease_until)
VALUES (%(group)s, %(topic)s, %(hash)s, 2, %(head)s, %(by)s::text IS NOT NULL, %(by)s, %(why)s,
    CASE WHEN %(by)s::text IS NOT NULL THEN clock_timestamp() END, %(drainer)s,
    CASE WHEN %(drainer)s::text IS NOT NULL THEN clock_timestamp() + interval '30 seconds' END)
"""
_FOLLOWER = """
INSERT INTO packhorse.parked_message (group_id, topic, message_id, key_hash, topic_age, topic_id, partition, "offset", headers)
VALUES (%(group)s, %(topic)s, %(id)s, %(hash)s, 0, gen_random_uuid(), 2, %(offset)s, '[]')
"""
_MEMBER = """
INSERT INTO packhorse.processor_member (group_id, member, host, pid, seen_at, status)
VALUES (%(group)s, %(member)s, 'box', 42, clock_timestamp() - %(ago)s, %(status)s)
"""
_MARK = """
INSERT INTO packhorse.watermark (group_id, topic_id, partition, topic, "offset", incarnation)
VALUES (%(group)s, gen_random_uuid(), %(partition)s, %(topic)s, %(offset)s, '1/1')
"""
_PAUSE = """
INSERT INTO packhorse.pause (group_id, topic, partition, paused_by, why) VALUES (%(group)s, %(topic)s, %(partition)s, %(by)s, %(why)s)
"""
_REDRIVE = """
INSERT INTO packhorse.redrive (state, wanted, members, rate, stages, previewed_by, expires_at, confirmed_by, lease_until)
VALUES (%(state)s, '{}', 1, 100, '{1}', 'ann (role ops)', clock_timestamp() + interval '1 hour', %(confirmed)s,
    clock_timestamp() + interval '15 seconds') RETURNING id
"""
_REDRIVE_MEMBER = """
INSERT INTO packhorse.redrive_member (redrive_id, ordinal, group_id, topic, message_id, partition, "offset", attempt, redrives,
    quarantined_at, state)
VALUES (%(run)s, 1, %(group)s, %(topic)s, %(id)s, 2, 1234, 5, 0, coalesce((SELECT q.quarantined_at
    FROM packhorse.quarantined_message AS q WHERE q.message_id = %(id)s LIMIT 1), clock_timestamp()), %(member)s)
"""
_REPLAY = """
INSERT INTO packhorse.replay (state, group_id, topic, topic_id, wanted, rate, planned_by, expires_at)
VALUES ('running', %(group)s, %(topic)s, gen_random_uuid(), '{}', 100, 'ann (role ops)', clock_timestamp() + interval '1 hour')
RETURNING id
"""
_REPLAY_MESSAGE = """
INSERT INTO packhorse.replay_message (replay_id, partition, "offset", message_id) VALUES (%(run)s, 2, 1234, %(id)s)
"""


class Stages:
    """The stages, on the tables behind one connection in autocommit; each names only what it is about."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self._connection = connection

    def _run(self, statement: str, **given: object) -> Any:
        values = {"group": GROUP, "topic": TOPIC, "hash": key_hash(KEY.encode()), **given}
        cursor = self._connection.execute(statement, values)
        return cursor.fetchone() if cursor.description else None

    def waits(
        self, message_id: UUID, *, due_in: timedelta, sent: bool, attempt: int = 2, tier: str = "5m"
    ) -> None:
        """Let the message wait in a tier."""
        self._run(_RETRY, id=message_id, due_in=due_in, sent=sent, attempt=attempt, tier=tier)

    def parked(
        self, head: UUID | None, *, by: str | None = None, why: str | None = None, drainer: str | None = None
    ) -> None:
        """Park the key, behind *head* or because a person paused it."""
        self._run(_KEY, head=head, by=by, why=why, drainer=drainer)

    def follows(self, message_id: UUID, *, offset: int) -> None:
        """Let the message wait behind the key."""
        self._run(_FOLLOWER, id=message_id, offset=offset)

    def process(
        self, status: Mapping[str, object] | None = None, *, ago: timedelta = timedelta(0), group: str = GROUP
    ) -> None:
        """Let a process of the group have been seen so long ago."""
        self._run(
            _MEMBER, member=SYSTEM_CHANCE.token(), ago=ago, group=group, status=Jsonb(dict(status or {}))
        )

    def watermark(self, offset: int, *, partition: int = 2, group: str = GROUP) -> None:
        """Let all below *offset* be durable."""
        self._run(_MARK, offset=offset, partition=partition, group=group)

    def pause(
        self, *, topic: str = "", partition: int = -1, by: str = "ann (role ops)", why: str | None = None
    ) -> None:
        """Let a person pause the group, a topic or a partition."""
        self._run(_PAUSE, topic=topic, partition=partition, by=by, why=why)

    def redrive(
        self,
        message_id: UUID,
        *,
        state: str = "running",
        member: str = "waiting",
        confirmed: str | None = "bob (role ops)",
    ) -> int:
        """Let the message be a member of a redrive; return its number."""
        run = int(self._run(_REDRIVE, state=state, confirmed=confirmed)[0])
        self._run(_REDRIVE_MEMBER, run=run, id=message_id, member=member)
        return run

    def replay(self) -> int:
        """Let a replay run; return its number."""
        return int(self._run(_REPLAY)[0])

    def handed(self, run: int, message_id: UUID) -> None:
        """Let a replay have handed the message over, and not counted its outcome."""
        self._run(_REPLAY_MESSAGE, run=run, id=message_id)

    def set(self, statement: str, *values: object) -> None:
        """Run a statement of the test's own."""
        self._connection.execute(statement.encode(), values)
