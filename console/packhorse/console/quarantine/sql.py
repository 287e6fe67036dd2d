"""Pages of the quarantine, and acts on one message. `{schema}` is the database schema of Packhorse's tables."""

from packhorse.console.sql_pieces import put
from packhorse.console.truth.sql import QUARANTINED

_LOOKED = """
    SELECT q.message_id, q.group_id, q.topic, q.quarantined_at, q.reason, q.type, q.tenant, q.state, q.key, q.error FROM {schema}.quarantined_message AS q
    WHERE (%(since)s::timestamptz IS NULL OR q.quarantined_at >= %(since)s)
      AND (%(until)s::timestamptz IS NULL OR q.quarantined_at < %(until)s)
      AND (%(after_at)s::timestamptz IS NULL
           OR (q.quarantined_at, q.message_id, q.group_id, q.topic)
              < (%(after_at)s, %(after_id)s::uuid, %(after_group)s, %(after_topic)s))"""
_OF_FAILURE = """
      AND {schema}.failure_print(q.group_id, q.topic, q.type, q.reason, q.error) = %(failure)s"""
_OF_KEY = """
      AND q.key = %(key)s"""
_OF_ID = """
      AND q.message_id = %(id)s"""
_ORDER = """
    ORDER BY q.quarantined_at DESC, q.message_id DESC, q.group_id DESC, q.topic DESC"""
_ORDER_OF_FAILURE = """
    ORDER BY q.quarantined_at DESC, q.message_id DESC"""
_LOOK = """
    LIMIT %(look)s"""
_FAR = """
    OFFSET %(look)s - 1 LIMIT 1"""
_FITS = """
WHERE (%(group)s::text IS NULL OR q.group_id = %(group)s)
  AND (%(topic)s::text IS NULL OR q.topic = %(topic)s)
  AND (%(reason)s::text IS NULL OR q.reason = %(reason)s)
  AND (%(type)s::text IS NULL OR q.type = %(type)s)
  AND (%(tenant)s::text IS NULL OR q.tenant = %(tenant)s)
  AND (%(state)s::text IS NULL OR q.state = %(state)s)
  AND (%(key)s::bytea IS NULL OR q.key = %(key)s)
  AND (%(failure)s::text IS NULL
       OR {schema}.failure_print(q.group_id, q.topic, q.type, q.reason, q.error) = %(failure)s)
  AND (%(text)s::text IS NULL OR strpos(lower(q.error), lower(%(text)s)) > 0)
ORDER BY q.quarantined_at DESC, q.message_id DESC, q.group_id DESC, q.topic DESC
LIMIT %(limit)s
)
"""
_PAGE = (
    QUARANTINED
    + """
JOIN fits AS f ON f.message_id = q.message_id AND f.group_id = q.group_id AND f.topic = q.topic
ORDER BY q.quarantined_at DESC, q.message_id DESC, q.group_id DESC, q.topic DESC
"""
)
_BEGIN = "WITH fits AS MATERIALIZED (SELECT q.message_id, q.group_id, q.topic FROM ("
_BEHIND = ") AS q"
_PLACE = """
SELECT f.quarantined_at AS at, f.message_id AS id, f.group_id AS "group", f.topic FROM ("""
_FOUND = "WITH found AS MATERIALIZED ("
_FITS_OF_FOUND = """), fits AS MATERIALIZED (SELECT q.message_id, q.group_id, q.topic FROM (
    SELECT q.* FROM found AS q"""

QUARANTINE_PAGE = _BEGIN + _LOOKED + _ORDER + _LOOK + _BEHIND + _FITS + _PAGE
"""One page of the quarantine, the newest first, behind the row that the page before ended with, out of the next so many."""

QUARANTINE_FAR = _PLACE + _LOOKED + _ORDER + _FAR + ") AS f"
"""The last of the next so many: how far the page looked if it found no more."""

PAGE_OF_FAILURE = _BEGIN + _LOOKED + _OF_FAILURE + _ORDER_OF_FAILURE + _LOOK + _BEHIND + _FITS + _PAGE
FAR_OF_FAILURE = _PLACE + _LOOKED + _OF_FAILURE + _ORDER_OF_FAILURE + _FAR + ") AS f"
"""The same of one group of failures, by its index."""

IN_ORDER = """
SELECT set_config('enable_bitmapscan', 'off', true)
"""
"""Let a page of a failure be read in the order of its index: the planner would fetch and sort all of it for the first few."""

PAGE_OF_KEY = _FOUND + _LOOKED + _OF_KEY + _FITS_OF_FOUND + _ORDER + _BEHIND + _FITS + _PAGE
"""The same of one key, all of whose messages are looked at."""

PAGE_OF_ID = _BEGIN + _LOOKED + _OF_ID + _ORDER + _BEHIND + _FITS + _PAGE
"""The same of one id, which a few groups and topics may have."""

QUARANTINED_BYTES = """
SELECT q.payload, q.headers, q.purged_at FROM {schema}.quarantined_message AS q
WHERE q.group_id = %(group)s AND q.topic = %(topic)s AND q.message_id = %(id)s
"""
"""The bytes of one quarantined message as they arrived."""

CLAIM_REDRIVE = put("""
UPDATE {schema}.quarantined_message AS q
SET <redriven>
WHERE q.group_id = %(group)s AND q.topic = %(topic)s AND q.message_id = %(id)s
  AND q.state = 'quarantined' AND q.redrives = %(redrives)s AND q.quarantined_at = %(quarantined_at)s
RETURNING q.redrives
""")
"""Take the message for a redrive, only as it was previewed."""

ORDER_ATTEMPT = put("""
UPDATE {schema}.inbox AS i
SET <ordered>
WHERE i.group_id = %(group)s AND i.topic = %(topic)s AND i.message_id = %(id)s
  AND i.outcome = 'quarantine' AND i.attempt = %(attempt)s
RETURNING i.attempt
""")
"""Order the next attempt, due now by the database's clock."""

PARK_KEY = put("""
INSERT INTO {schema}.parked_key (group_id, topic, key_hash, key, partition, head_id, token)
SELECT q.group_id, q.topic, q.key_hash, q.key, q.partition, q.message_id, <new token>
FROM {schema}.quarantined_message AS q
WHERE q.group_id = %(group)s AND q.topic = %(topic)s AND q.message_id = %(id)s AND q.key_hash IS NOT NULL
ON CONFLICT DO NOTHING
RETURNING key_hash
""")
"""Park the key of a message that is redriven, with it as the head, unless it is parked; where order binds it."""

CLAIM_DISCARD = """
UPDATE {schema}.quarantined_message AS q
SET state = 'discarded', discarded_at = clock_timestamp()
WHERE q.group_id = %(group)s AND q.topic = %(topic)s AND q.message_id = %(id)s
  AND q.state = 'quarantined' AND q.redrives = %(redrives)s AND q.quarantined_at = %(quarantined_at)s
RETURNING q.redrives
"""
"""Give the message up, only as it was previewed; its bytes stay."""

END_DISCARDED = """
UPDATE {schema}.inbox AS i
SET outcome = 'discarded', changed_at = clock_timestamp()
WHERE i.group_id = %(group)s AND i.topic = %(topic)s AND i.message_id = %(id)s
  AND i.outcome = 'quarantine' AND i.attempt = %(attempt)s
RETURNING i.attempt
"""
"""Let the message's outcome be that it was given up."""

WAKE_KEY = """
UPDATE {schema}.parked_key AS k SET wake_at = clock_timestamp()
WHERE k.group_id = %(group)s AND k.topic = %(topic)s AND k.head_id = %(id)s
RETURNING k.key_hash
"""
"""Have the key that waits for the message woken, at a processor's next look."""

FOLLOWERS_OF = """
SELECT count(*) AS waiting
FROM {schema}.parked_key AS k
JOIN {schema}.parked_message AS m ON m.group_id = k.group_id AND m.topic = k.topic AND m.key_hash = k.key_hash
WHERE k.group_id = %(group)s AND k.topic = %(topic)s AND k.head_id = %(id)s
"""
"""How many messages wait behind it."""

LAST_ACT = """
SELECT a.at, a.actor, a.act, a.group_id AS "group", a.topic, a.why, a.detail
FROM {schema}.audit AS a
WHERE a.message_id = %(id)s AND a.group_id = %(group)s AND a.topic = %(topic)s
ORDER BY a.id DESC LIMIT 1
"""
"""Who acted last on one message of a group."""
