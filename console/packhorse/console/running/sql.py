"""
The statements on a run's row, be it of a redrive or a replay; `{schema}` is the database schema of Packhorse's tables.

A run's row is locked before anything else of the run, so a person's pause waits for the portion in hand and none comes after.
"""

from dataclasses import dataclass

_TAKE = """
UPDATE {{schema}}.{table} AS r
SET token = r.token + 1, runner = %(runner)s, changed_at = clock_timestamp(),
    lease_until = clock_timestamp() + %(seconds)s * interval '1 second'
WHERE r.id = %(id)s AND r.state = 'running' AND (r.lease_until IS NULL OR r.lease_until <= clock_timestamp())
RETURNING r.token
"""
_RENEW = """
UPDATE {{schema}}.{table} AS r SET lease_until = clock_timestamp() + %(seconds)s * interval '1 second'
WHERE r.id = %(id)s AND r.token = %(token)s AND r.state = 'running'
RETURNING r.token
"""
_LEAVE = """
UPDATE {{schema}}.{table} AS r SET lease_until = NULL, changed_at = clock_timestamp()
WHERE r.id = %(id)s AND r.token = %(token)s
"""
_STANDING = """
SELECT r.id, r.state, r.said, r.runner, r.token, r.lease_until, coalesce(r.lease_until > clock_timestamp(), false) AS alive
FROM {{schema}}.{table} AS r WHERE r.id = %(id)s
"""
_FREE = """
SELECT r.id FROM {{schema}}.{table} AS r
WHERE r.state = 'running' AND (r.lease_until IS NULL OR r.lease_until <= clock_timestamp())
ORDER BY r.id LIMIT 1
"""
_CLOSE = """
UPDATE {{schema}}.{table} AS r
SET state = %(state)s, said = %(said)s, lease_until = NULL, changed_at = clock_timestamp(),
    ended_at = CASE WHEN %(final)s THEN clock_timestamp() END
WHERE r.id = %(id)s AND r.token = %(token)s AND r.state = 'running'
RETURNING r.id
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Statements:
    """
    What is asked of the row of one kind of run.

    Attributes:
        table: Which that is, and what people call such a run: redrive or replay.
        take: Have the run, if it runs and nobody's lease does; the token moves.
        renew: Keep it; no row when the token has moved or the run does not run. The row stays locked to the end of the
            transaction.
        leave: Let it go, so that another need not wait for the end of the lease.
        standing: How it stands.
        free: The first run that nobody works on.
        close: Bring it to a state in which nobody works on it.
    """

    table: str
    take: str
    renew: str
    leave: str
    standing: str
    free: str
    close: str


def _of(table: str) -> Statements:
    return Statements(
        table=table,
        take=_TAKE.format(table=table),
        renew=_RENEW.format(table=table),
        leave=_LEAVE.format(table=table),
        standing=_STANDING.format(table=table),
        free=_FREE.format(table=table),
        close=_CLOSE.format(table=table),
    )


REDRIVES = _of("redrive")
REPLAYS = _of("replay")
