"""
The statements of a portion: members are asked for, proved, or found moved. `{schema}` is the database schema of Packhorse's tables.

Outcomes and states are asked for with `IS TRUE`: so no partial index is taken for what the primary key finds, which without statistics
is a loop in a loop.

The order of locks is the processor's: inbox rows (sorted), quarantined messages, parked keys (sorted) last.
"""

from packhorse.console import sql_pieces

_KEY = """k.key_hash = {of}.key_hash AND k.group_id || '' = {of}.group_id AND k.topic || '' = {of}.topic
    AND ('x' || left(k.key_hash, 16))::bit(64)::bigint = ('x' || left({of}.key_hash, 16))::bit(64)::bigint"""
_OF = "m.redrive_id = %(id)s AND m.ordinal = ANY(%(ordinals)s::bigint[])"
_UNITS = """
    SELECT DISTINCT ON (m.group_id, m.topic, m.key_hash) m.group_id, m.topic, m.key_hash, m.message_id
    FROM {schema}.redrive_member AS m
    WHERE <of> AND m.key_hash IS NOT NULL
    ORDER BY m.group_id, m.topic, m.key_hash, m.ordinal
"""
_PIECES = {
    **sql_pieces.PIECES,
    "<units>": _UNITS,
    "<of>": _OF,
    "<key of m>": _KEY.format(of="m"),
    "<key of u>": _KEY.format(of="u"),
}


def put(statement: str) -> str:
    """
    Return *statement* with the pieces that several share, here and in other rooms (`sql_pieces`).

    `<of>`: redrive_member m is of the portion. `<units>`: the keys of the portion, each with the first of its members.
    `<key of …>`: parked_key k is the key of a member or unit, found by the index on its number; the one on group, topic and
    partition would find all keys of the topic.
    """
    return sql_pieces.put(statement, _PIECES)


BY_INDEX = """
SELECT set_config('enable_seqscan', 'off', true), set_config('enable_hashjoin', 'off', true),
    set_config('enable_mergejoin', 'off', true)
"""
"""
A portion is a thousand rows of tables with millions: each is asked for by itself, whatever the planner has heard of parked keys
that came a second ago.
"""

ACT_AS = """
SELECT set_config('packhorse.actor', coalesce(r.confirmed_by, ''), true) FROM {schema}.redrive AS r WHERE r.id = %(id)s
"""
"""Say until the transaction ends that who confirmed the set acts: changes of jobs that follow their messages name that person."""

RUN = """
SELECT r.rate, r.stages, r.most_failures, r.first_stage FROM {schema}.redrive AS r WHERE r.id = %(id)s
"""
"""How the set is to be worked through."""

COUNTS = """
SELECT m.stage, m.state, m.refused, count(*) AS n FROM {schema}.redrive_member AS m
WHERE m.redrive_id = %(id)s GROUP BY m.stage, m.state, m.refused
"""
"""How the members stand, by stage; asked once, by a runner that takes the run."""

PORTION = """
SELECT m.ordinal, m.group_id, m.topic, m.key_hash FROM {schema}.redrive_member AS m
WHERE m.redrive_id = %(id)s AND m.state = 'waiting' ORDER BY m.ordinal LIMIT %(count)s
"""
"""The next members."""

REST_OF_KEY = """
SELECT m.ordinal FROM {schema}.redrive_member AS m
WHERE m.redrive_id = %(id)s AND m.group_id = %(group_id)s AND m.topic = %(topic)s AND m.key_hash = %(key_hash)s
  AND m.ordinal > %(ordinal)s AND (m.state = 'waiting') IS TRUE
ORDER BY m.ordinal
"""
"""
The others of the last one's key, which stand together: those of one key are asked for together, so that nothing gets between.
"""

LEAVE_BEHIND = put("""
UPDATE {schema}.redrive_member AS m
SET state = 'left', said = format('its key waits behind %%s, which is %%s and not in the set', k.head_id, h.outcome)
FROM {schema}.parked_key AS k
JOIN {schema}.inbox AS h ON h.message_id = k.head_id AND h.group_id = k.group_id AND h.topic = k.topic
    AND (h.outcome IN ('quarantine', 'uncertain')) IS TRUE
WHERE <of>
  AND <key of m>
  AND NOT EXISTS (SELECT FROM {schema}.redrive_member AS o WHERE o.redrive_id + 0 = m.redrive_id
      AND (o.ordinal = ANY(%(ordinals)s::bigint[])) IS TRUE AND o.message_id = k.head_id AND o.group_id = m.group_id AND o.topic = m.topic)
RETURNING m.ordinal
""")
"""Members whose key waits for another message that a person has to deal with: they would wait behind it unseen."""

LOCK_AS_FROZEN = put("""
SELECT m.ordinal, m.group_id, m.topic, m.key_hash FROM {schema}.redrive_member AS m
JOIN {schema}.inbox AS i ON i.message_id = m.message_id AND i.group_id = m.group_id AND i.topic = m.topic
JOIN {schema}.quarantined_message AS q
    ON q.message_id = m.message_id AND q.group_id = m.group_id AND q.topic = m.topic
WHERE <of>
  AND (i.outcome = 'quarantine') IS TRUE AND i.attempt = m.attempt
  AND (q.state = 'quarantined') IS TRUE AND q.redrives = m.redrives AND q.quarantined_at = m.quarantined_at AND q.purged_at IS NULL
ORDER BY i.message_id, i.group_id, i.topic FOR UPDATE OF i, q
""")
"""Those of a portion that are as they were frozen, locked; the others have moved."""

ORDER_ATTEMPTS = put("""
UPDATE {schema}.inbox AS i
SET <ordered>
FROM {schema}.redrive_member AS m
WHERE <of>
  AND i.message_id = m.message_id AND i.group_id = m.group_id AND i.topic = m.topic AND (i.outcome = 'quarantine') IS TRUE
""")
"""Order the next attempt of each, due now by the database's clock."""

CLAIM_REDRIVES = put("""
UPDATE {schema}.quarantined_message AS q
SET <redriven>
FROM {schema}.redrive_member AS m
WHERE <of>
  AND q.message_id = m.message_id AND q.group_id = m.group_id AND q.topic = m.topic AND (q.state = 'quarantined') IS TRUE
""")
"""Take the messages for a redrive."""

RECORD_REDRIVES = put("""
INSERT INTO {schema}.audit (actor, act, group_id, topic, message_id, detail, why)
SELECT r.confirmed_by, 'redrive', m.group_id, m.topic, m.message_id,
    jsonb_build_object('set', r.id, 'attempt', m.attempt + 1, 'redrive', m.redrives + 1), r.why
FROM {schema}.redrive_member AS m JOIN {schema}.redrive AS r ON r.id = m.redrive_id
WHERE <of> ORDER BY m.ordinal
""")
"""One row of the audit for each, in the name of who confirmed the set."""

MARK_ASKED = put("""
UPDATE {schema}.redrive_member AS m SET state = 'asked', stage = %(stage)s, asked_at = clock_timestamp() WHERE <of>
""")

MARK_MOVED = put("""
UPDATE {schema}.redrive_member AS m
SET state = 'moved', said = coalesce(
    (SELECT format('%%s by %%s at %%s', a.act, a.actor, to_char(a.at AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS"Z"'))
        FROM {schema}.audit AS a
        WHERE a.message_id = m.message_id AND a.group_id = m.group_id AND a.topic = m.topic
          AND a.at > (SELECT r.previewed_at FROM {schema}.redrive AS r WHERE r.id = m.redrive_id)
        ORDER BY a.id DESC LIMIT 1),
    'it is not as it was previewed, and no act is on record')
WHERE <of>
""")
"""Members that are not as they were previewed; who has acted on them is said."""

MOVE_STAGE = """
UPDATE {schema}.redrive AS r SET stage = %(stage)s, changed_at = clock_timestamp() WHERE r.id = %(id)s AND r.stage < %(stage)s
"""

LOCK_KEYS = put("""
SELECT k.key_hash FROM {schema}.parked_key AS k
JOIN (<units>) AS u ON <key of u>
ORDER BY k.group_id, k.topic, k.key_hash FOR UPDATE OF k
""")
"""Lock the keys that are parked already, sorted."""

PARK_KEYS = put("""
INSERT INTO {schema}.parked_key (group_id, topic, key_hash, key, partition, head_id, token)
SELECT q.group_id, q.topic, q.key_hash, q.key, q.partition, q.message_id, <new token>
FROM (<units>) AS u
JOIN {schema}.quarantined_message AS q ON q.message_id = u.message_id AND q.group_id = u.group_id AND q.topic = u.topic
ORDER BY q.group_id, q.topic, q.key_hash
ON CONFLICT DO NOTHING
""")
"""Park the keys that are not, with the first of their members as the head."""

TAKE_HEADS = put("""
UPDATE {schema}.parked_key AS k SET head_id = u.message_id
FROM (<units>) AS u
WHERE <key of u> AND k.head_id <> u.message_id
  AND EXISTS (SELECT FROM {schema}.redrive_member AS o WHERE o.message_id = k.head_id AND o.group_id = k.group_id
      AND o.topic = k.topic AND o.redrive_id + 0 = %(id)s AND (o.ordinal = ANY(%(ordinals)s::bigint[])) IS TRUE)
""")
"""Where a later member is the head, let the first one be: they take effect in the order in which they came."""

FOLLOW = put("""
WITH behind AS (
    UPDATE {schema}.inbox AS i SET outcome = 'parked', due_at = NULL, changed_at = clock_timestamp()
    FROM {schema}.redrive_member AS m
    JOIN {schema}.parked_key AS k ON <key of m>
        AND k.head_id IS DISTINCT FROM m.message_id
    WHERE <of>
      AND i.message_id = m.message_id AND i.group_id = m.group_id AND i.topic = m.topic AND (i.outcome = 'retry') IS TRUE
    RETURNING i.message_id, i.group_id, i.topic
)
<insert parked message>
SELECT q.group_id, q.topic, q.message_id, q.key_hash,
    <age of q>,
    q.topic_id, q.partition, q."offset", q.leader_epoch, q.timestamp_ms, q.key, q.payload, q.headers, q.type, q.tenant
FROM behind AS b
JOIN {schema}.quarantined_message AS q ON q.message_id = b.message_id AND q.group_id = b.group_id AND q.topic = b.topic
ON CONFLICT DO NOTHING
""")
"""Let those that are not the head of their key wait behind it, in the place where they came: then the drain runs them in order."""

WAKE_KEYS = put("""
UPDATE {schema}.parked_key AS k SET wake_at = clock_timestamp()
FROM (<units>) AS u
WHERE <key of u> AND (k.head_id IS NULL OR NOT EXISTS (
    SELECT FROM {schema}.inbox AS h WHERE h.message_id = k.head_id AND h.group_id = k.group_id AND h.topic = k.topic
        AND h.outcome IN ('retry', 'parked', 'quarantine', 'uncertain')))
""")
"""Have the keys looked at whose head is finished, so that what was put behind it is drained."""

PROVE = """
UPDATE {schema}.redrive_member AS m
SET state = CASE WHEN i.outcome IN ('done', 'skipped') THEN 'good'
        WHEN i.outcome = 'discarded' AND (i.reason = 'purged') IS TRUE THEN 'left' ELSE 'bad' END,
    said = CASE i.outcome WHEN 'done' THEN NULL
        WHEN 'skipped' THEN 'skipped' || coalesce(': ' || i.reason, '')
        ELSE i.outcome || coalesce(': ' || i.reason, '') END
FROM {schema}.inbox AS i
WHERE m.redrive_id = %(id)s AND m.state = 'asked'
  AND i.message_id = m.message_id AND i.group_id = m.group_id AND i.topic = m.topic AND i.attempt > m.attempt
  AND i.outcome IN ('done', 'skipped', 'quarantine', 'uncertain', 'discarded')
RETURNING m.stage, m.state, m.refused
"""
"""Members that have an outcome since they were asked for; one that was purged meanwhile tells nothing of the cause."""

FIND_STUCK = put("""
UPDATE {schema}.redrive_member AS m
SET state = 'left', refused = f.refused, said = f.said
FROM (
    SELECT m.ordinal, q.redrive_refused IS NOT NULL AS refused,
        coalesce('the broker refuses it: ' || q.redrive_refused || '; it stays ordered, and goes once that is mended',
            CASE WHEN k.paused THEN 'its key is paused' || coalesce(' by ' || k.paused_by, '') || ': it runs once that is resumed' END,
            format('waits behind %%s of its key, which is %%s: it runs once that is dealt with', k.head_id, h.outcome)) AS said
    FROM {schema}.redrive_member AS m
    JOIN {schema}.inbox AS i ON i.message_id = m.message_id AND i.group_id = m.group_id AND i.topic = m.topic
        AND i.attempt > m.attempt
    JOIN {schema}.quarantined_message AS q
        ON q.message_id = m.message_id AND q.group_id = m.group_id AND q.topic = m.topic
    LEFT JOIN {schema}.parked_key AS k ON i.outcome = 'parked'
        AND <key of m>
    LEFT JOIN {schema}.inbox AS h ON h.message_id = k.head_id AND h.group_id = k.group_id AND h.topic = k.topic
    WHERE m.redrive_id = %(id)s AND m.state = 'asked'
      AND (i.outcome = 'retry' AND q.redrive_sent_at IS NULL AND q.redrive_refused IS NOT NULL
           OR i.outcome = 'parked' AND (k.paused OR h.outcome IN ('quarantine', 'uncertain'))) IS TRUE
) AS f
WHERE m.redrive_id = %(id)s AND m.ordinal = f.ordinal AND m.state = 'asked'
RETURNING m.stage, m.state, m.refused
""")
"""
Members that will have no outcome by themselves: the broker refuses them, their key is paused, or what it waits for needs a
person.
"""

FIND_FORGOTTEN = """
UPDATE {schema}.redrive_member AS m
SET state = 'left', said = 'its outcome is not known: it ended longer ago than the inbox keeps, while nobody worked on the set'
WHERE m.redrive_id = %(id)s AND m.state = 'asked' AND NOT EXISTS (SELECT FROM {schema}.inbox AS i
    WHERE i.message_id = m.message_id AND i.group_id = m.group_id AND i.topic = m.topic OFFSET 0)
RETURNING m.stage, m.state, m.refused
"""
"""Members whose inbox row is gone; what is open is never forgotten."""
