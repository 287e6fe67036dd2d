"""The statements around every act. `{schema}` is the database schema of Packhorse's tables."""

TURN = """
SELECT pg_advisory_xact_lock(1346454353, hashtext(%(turn)s))
"""
"""Wait for one's turn among the acts of a name; kept until the transaction ends."""

WRITE_ACT = """
INSERT INTO {schema}.audit (actor, act, group_id, topic, message_id, detail, why)
VALUES (%(actor)s, %(act)s, %(group)s, %(topic)s, %(id)s, %(detail)s, %(why)s)
RETURNING at
"""
"""Put an act on the record, in the transaction of the act."""

DONE_BY = """
SELECT a.id, a.at, a.actor, a.role, a.act, a.group_id AS "group", a.topic, a.message_id, a.detail, a.why
FROM {schema}.audit AS a
WHERE a.at >= %(since)s AND a.detail ->> 'once' = %(once)s
ORDER BY a.at, a.id
LIMIT 100
"""
"""What a form has done. Its number says when it was shown, so only what is on the record since then is looked through."""

ACT_AS = """
SELECT set_config('packhorse.actor', %(actor)s, true)
"""
"""Say who acts until the transaction ends: what the database writes along with the act, such as changes of jobs, names the person."""

LIMITS = """
SELECT set_config('statement_timeout', %(timeout)s, true), set_config('lock_timeout', %(timeout)s, true),
       set_config('synchronous_commit', CASE current_setting('synchronous_commit') WHEN 'remote_apply' THEN 'remote_apply'
           ELSE 'on' END, true), set_config('jit', 'off', true)
"""
"""A lock that is not free in time ends the act; an act counts as done only once it is durable. Compiling takes seconds, looks don't."""
