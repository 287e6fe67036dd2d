"""
What a search asks; each statement reads a bounded number of rows, however large the tables are. `{schema}` is the database schema of Packhorse's
tables.
"""
# ruff: noqa: S608 only constants of this module are put together here

from packhorse.console.truth.sql import QUARANTINED
from packhorse.console.truth.sql_around import KEY

IS_JOB = "SELECT EXISTS (SELECT FROM {schema}.job AS j WHERE j.id = %(id)s) AS is_job"

QUARANTINED_OF_KEY = (
    """
WITH found AS MATERIALIZED (
    SELECT q.message_id, q.group_id, q.topic, q.quarantined_at FROM {schema}.quarantined_message AS q
    WHERE q.key = %(key)s LIMIT %(most)s
), newest AS (SELECT f.* FROM found AS f ORDER BY f.quarantined_at DESC, f.message_id DESC LIMIT %(first)s)
"""
    + QUARANTINED
    + """
JOIN newest AS n ON n.message_id = q.message_id AND n.group_id = q.group_id AND n.topic = q.topic
ORDER BY q.quarantined_at DESC, q.message_id DESC, q.group_id, q.topic
"""
)
"""The newest quarantined messages of one key, by its index."""

COUNT_OF_KEY = """
SELECT count(*)::int AS quarantined
FROM (SELECT FROM {schema}.quarantined_message AS q WHERE q.key = %(key)s LIMIT %(most)s) AS q
"""
"""How many they are, counted up to a bound."""

PARKED_KEYS = (
    KEY
    + """
WHERE ('x' || left(k.key_hash, 16))::bit(64)::bigint = ('x' || left(%(hash)s, 16))::bit(64)::bigint AND k.key_hash = %(hash)s
ORDER BY 1, 2 LIMIT %(first)s
"""
)
"""Where the key is parked or paused, by the index on the number that its hash begins with."""

_NEWEST = """(SELECT o.id, o.type, o.aggregatetype, o.aggregateid, o.created_at, o.seq FROM {schema}.outbox AS o
    ORDER BY o.seq DESC LIMIT %(rows)s) AS o"""

ROWS_OF_KEY = (
    """
SELECT o.id, o.type, o.aggregatetype, o.created_at AT TIME ZONE 'UTC' AS created_at FROM """
    + _NEWEST
    + """
WHERE o.aggregateid = %(text)s ORDER BY o.seq DESC LIMIT %(first)s
"""
)
"""Rows of the key among the newest of the outbox."""

LOOKED = "SELECT count(*)::int AS looked, min(o.created_at) AT TIME ZONE 'UTC' AS back_to FROM " + _NEWEST
"""How far back the newest of the outbox go."""

GROUPS = """
SELECT g.name FROM (
    SELECT w.group_id AS name FROM {schema}.watermark AS w UNION SELECT m.group_id FROM {schema}.processor_member AS m
    UNION SELECT p.group_id FROM {schema}.pause AS p
) AS g WHERE strpos(lower(g.name), lower(%(name)s)) > 0
ORDER BY g.name <> %(name)s, g.name LIMIT %(first)s
"""
"""Groups whose name holds the text; the one that is called so comes first."""

TOPICS = """
SELECT w.topic AS name, array_agg(DISTINCT w.group_id ORDER BY w.group_id) AS groups FROM {schema}.watermark AS w
WHERE strpos(lower(w.topic), lower(%(name)s)) > 0 AND position('.' || w.group_id || '.retry.' IN w.topic) = 0
GROUP BY w.topic ORDER BY w.topic <> %(name)s, w.topic LIMIT %(first)s
"""
"""Source topics that groups read here and whose name holds the text."""
