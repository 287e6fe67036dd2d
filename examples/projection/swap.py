"""Show readers the new projection once it has all that the old one has."""

from typing import Any

import psycopg

from examples.projection.tables import SHOW_NEW
from examples.projection.turnover import new, old

STILL_OPEN = """
SELECT count(*) FROM packhorse.inbox WHERE group_id = %(new)s AND outcome IN ('retry', 'parked', 'quarantine', 'uncertain')
"""
"""What the new one has met and not done: in retry, parked or in quarantine."""

BEHIND = """
SELECT coalesce(sum(greatest(o."offset" - coalesce(n."offset", 0), 0)), 0)
FROM packhorse.watermark o
LEFT JOIN packhorse.watermark n ON n.group_id = %(new)s AND n.topic_id = o.topic_id AND n.partition = o.partition
WHERE o.group_id = %(old)s AND o.topic = ANY(%(topics)s)
"""
"""How many offsets the old one has dealt with and the new one has not."""


def swap(connection: psycopg.Connection[Any]) -> str | None:
    """
    Show the new projection in one transaction; return why not, if not.

    The old table is locked against its processor for that moment, so that it can't run ahead between the look and the commit.
    """
    groups = {"old": old.group, "new": new.group, "topics": list(old.topics)}
    with connection.transaction():
        connection.execute("SET LOCAL lock_timeout = '2s'")
        connection.execute("LOCK TABLE turnover_v1 IN SHARE MODE")
        for question, what in (
            (STILL_OPEN, "messages wait in the new group"),
            (BEHIND, "offsets behind the old one"),
        ):
            row = connection.execute(question, groups).fetchone()
            if row is not None and row[0]:
                return f"not yet: {row[0]} {what}"
        connection.execute(SHOW_NEW)
    return None
