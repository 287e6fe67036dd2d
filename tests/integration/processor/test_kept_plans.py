"""Plans that the server keeps: what is asked for each single message must not be planned anew for each."""

from uuid import UUID

import psycopg

from packhorse.core.clock import SYSTEM_CHANCE, SYSTEM_CLOCK
from packhorse.processor.record import Stream
from packhorse.processor.storing import postgres
from packhorse.processor.storing.sql import queries_for
from packhorse.processor.storing.store import Store

STORE = Store(queries=queries_for("packhorse"), group="g", schema="packhorse")
STREAM = Stream(topic="t", topic_id=UUID(int=1), source="t")
FILL = """
INSERT INTO packhorse.inbox (group_id, topic, message_id, outcome, attempt, partition, "offset", type)
SELECT 'g', 't', i.id, 'done', 1, 0, i.n, 'x' FROM unnest(%(ids)s::uuid[]) WITH ORDINALITY AS i (id, n)
"""
PLANS = """
SELECT sum(generic_plans) > 0, sum(custom_plans) FROM pg_prepared_statements WHERE statement LIKE '%WITH mark AS%'"""
EMPTY = "DELETE FROM packhorse.inbox WHERE group_id = 'g'"
ROWS = 50_000


def test_the_look_at_one_message_is_planned_once_over_a_full_inbox(shared_tables: str) -> None:
    """Fails when the id is a parameter where the inbox is asked for it: a plan anew takes ten times as long as the look."""
    connection, now = postgres.connect(shared_tables), SYSTEM_CLOCK.now()
    with psycopg.connect(shared_tables, autocommit=True) as other:
        other.execute(FILL, {"ids": [SYSTEM_CHANCE.message_id(now) for _ in range(ROWS)]})
        other.execute("ANALYZE packhorse.inbox")
        try:
            for n in range(30):
                postgres.run(connection, STORE.look_up(STREAM, 0, [UUID(int=n)]))
            is_kept, anew = connection.execute(PLANS).fetchone() or (False, 99)
        finally:
            other.execute(EMPTY)
            connection.end()
    assert is_kept
    assert anew <= 5
