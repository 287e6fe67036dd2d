"""Find and erase what is kept of a person. `{schema}` is the database schema of Packhorse's tables."""
# ruff: noqa: S608 only constants of this module are put together here

_WHERE = """
WHERE (%(group)s::text IS NULL OR t.group_id = %(group)s) AND (%(topic)s::text IS NULL OR t.topic = %(topic)s)
  AND (%(key)s::bytea IS NULL OR t.key = %(key)s)
  AND (%(schemas)s::bytea[] IS NULL OR substring(t.payload FROM 1 FOR 5) = ANY(%(schemas)s::bytea[]))
  AND (%(after_id)s::uuid IS NULL OR (t.message_id, t.group_id, t.topic) > (%(after_id)s, %(after_group)s, %(after_topic)s))
ORDER BY t.message_id, t.group_id, t.topic LIMIT %(limit)s
"""
_COLUMNS = """
SELECT t.message_id AS id, t.group_id AS "group", t.topic, t.partition, t."offset",
       CASE WHEN %(schemas)s::bytea[] IS NOT NULL THEN t.payload END AS payload"""

PARKED = f"{_COLUMNS}, NULL AS tier, NULL::int AS at, NULL::bigint AS spot FROM {{schema}}.parked_message AS t {_WHERE}"
RETRY = f"{_COLUMNS}, t.tier, t.sent_partition AS at, t.sent_offset AS spot FROM {{schema}}.retry_message AS t {_WHERE}"
QUARANTINED = f"{_COLUMNS}, NULL AS tier, t.copy_partition AS at, t.copy_offset AS spot FROM {{schema}}.quarantined_message AS t {_WHERE}"
"""Messages of a key, or with a schema that has the field; in the order of their ids, behind the last one of the portion before."""

_UNKNOWN = """
SELECT CASE WHEN substring(t.payload FROM 1 FOR 1) = '\\x00' AND octet_length(t.payload) >= 5
            THEN substring(t.payload FROM 2 FOR 4) END AS schema, count(*) AS n
FROM {{schema}}.{table} AS t
WHERE (%(group)s::text IS NULL OR t.group_id = %(group)s) AND (%(topic)s::text IS NULL OR t.topic = %(topic)s)
  AND substring(t.payload FROM 1 FOR 5) <> ALL(%(known)s::bytea[])
GROUP BY 1
"""
UNKNOWN_PARKED = _UNKNOWN.format(table="parked_message")
UNKNOWN_RETRY = _UNKNOWN.format(table="retry_message")
UNKNOWN_QUARANTINED = _UNKNOWN.format(table="quarantined_message")
"""How many messages have a schema that this database does not know, by its id; null: their payload names none."""

UNKNOWN_OUTBOX = """
SELECT CASE WHEN substring(o.payload FROM 1 FOR 1) = '\\x00' AND octet_length(o.payload) >= 5
            THEN substring(o.payload FROM 2 FOR 4) END AS schema, count(*) AS n
FROM {schema}.outbox AS o
WHERE o.seq > %(after)s::bigint AND o.seq <= %(until)s::bigint
  AND (%(aggregatetype)s::text IS NULL OR o.aggregatetype = %(aggregatetype)s)
  AND substring(o.payload FROM 1 FOR 5) <> ALL(%(known)s::bytea[])
GROUP BY 1
"""
"""The same of the outbox, in one window of its order."""

OUTBOX = """
SELECT o.id, '' AS "group", o.aggregatetype AS topic, CASE WHEN %(schemas)s::bytea[] IS NOT NULL THEN o.payload END AS payload
FROM {schema}.outbox AS o
WHERE o.seq > %(after)s::bigint AND o.seq <= %(until)s::bigint
  AND (%(aggregatetype)s::text IS NULL OR o.aggregatetype = %(aggregatetype)s)
  AND (%(text)s::text IS NULL OR o.aggregateid = %(text)s)
  AND (%(schemas)s::bytea[] IS NULL OR substring(o.payload FROM 1 FOR 5) = ANY(%(schemas)s::bytea[]))
ORDER BY o.seq
"""
"""The same of the outbox, in one window of its order."""

JOBS = """
WITH seen AS MATERIALIZED (
    SELECT j.id, j.group_id, j.topic, j.input, j.type, j.request_key, j.one_waiting, j.one_running FROM {schema}.job AS j
    WHERE j.id > %(after)s::uuid ORDER BY j.id LIMIT %(window)s
), wanted AS (
    SELECT s.*, substring(s.input FROM 1 FOR 5) AS prefix,
           coalesce(%(text)s IN (s.request_key, s.one_waiting, s.one_running), false) AS named
    FROM seen AS s
    WHERE (%(group)s::text IS NULL OR s.group_id = %(group)s) AND (%(topic)s::text IS NULL OR s.topic = %(topic)s)
)
SELECT w.id, coalesce(w.group_id, '') AS "group", w.topic, CASE WHEN NOT w.named THEN w.input END AS payload, w.named,
       NULL::bytea AS schema, NULL::bigint AS n
FROM wanted AS w WHERE w.named OR w.prefix = ANY(%(schemas)s::bytea[])
UNION ALL
SELECT NULL, NULL, NULL, NULL, NULL, CASE WHEN substring(w.prefix FROM 1 FOR 1) = '\\x00' AND octet_length(w.prefix) = 5
            THEN substring(w.prefix FROM 2 FOR 4) END, count(*)
FROM wanted AS w WHERE NOT w.named AND w.prefix <> ALL(%(known)s::bytea[]) GROUP BY 6
UNION ALL
SELECT l.id, NULL, NULL, NULL, NULL, NULL, NULL
FROM (SELECT s.id FROM seen AS s WHERE %(window)s = (SELECT count(*) FROM seen) ORDER BY s.id DESC LIMIT 1) AS l
"""
"""
Jobs in one window of their ids whose input may be the subject's, with it, and those whose request key or name is; then how many have a
schema that is not known; last, without a topic, where the next window begins.
"""

RUNNING = """
SELECT j.id, j.type AS aggregatetype, 'running' AS fate FROM {schema}.job AS j
WHERE j.id = ANY(%(ids)s::uuid[]) AND j.state = 'running' ORDER BY j.id
"""
"""Which jobs run just now."""

SPAN = """
SELECT coalesce((SELECT o.seq FROM {schema}.outbox AS o ORDER BY o.seq LIMIT 1) - 1, 0) AS first,
       coalesce((SELECT o.seq FROM {schema}.outbox AS o ORDER BY o.seq DESC LIMIT 1), 0) AS last
"""
"""Between which numbers the outbox's rows lie."""

SCHEMAS = """
SELECT DISTINCT s.schema_id AS id, s.schema AS text FROM {schema}.schema_version AS s
"""
"""All schemas that are registered."""

_MEMBERS = """
    unnest(%(ids)s::uuid[], %(groups)s::text[], %(topics)s::text[]) AS m (id, group_id, topic)"""

END = f"""
WITH locked AS (
    SELECT i.message_id, i.group_id, i.topic FROM {{schema}}.inbox AS i JOIN {_MEMBERS}
      ON i.message_id = m.id AND i.group_id = m.group_id AND i.topic = m.topic
    WHERE i.outcome IN ('parked', 'retry', 'quarantine')
    ORDER BY i.message_id, i.group_id, i.topic FOR UPDATE OF i
)
UPDATE {{schema}}.inbox AS i
SET outcome = 'discarded', reason = 'purged', due_at = NULL, changed_at = clock_timestamp() FROM locked AS l
WHERE i.message_id = l.message_id AND i.group_id = l.group_id AND i.topic = l.topic
"""
"""Give the messages up: what stands open of them is over. Copies that still lie on topics are duplicates from now on."""

DELETE_PARKED = f"""
DELETE FROM {{schema}}.parked_message AS t USING {_MEMBERS}
WHERE t.message_id = m.id AND t.group_id = m.group_id AND t.topic = m.topic
"""
"""Forget followers."""

DELETE_RETRY = f"""
DELETE FROM {{schema}}.retry_message AS t USING {_MEMBERS}
WHERE t.message_id = m.id AND t.group_id = m.group_id AND t.topic = m.topic
"""
"""Forget what waits for another attempt."""

EMPTY_QUARANTINED = f"""
UPDATE {{schema}}.quarantined_message AS t
SET state = 'discarded', discarded_at = coalesce(t.discarded_at, clock_timestamp()), purged_at = clock_timestamp(), key = NULL,
    payload = NULL, headers = '[]', key_hash = NULL, history = NULL, tenant = NULL,
    error = CASE WHEN t.error IS NOT NULL THEN {{schema}}.error_site(t.error) END
FROM {_MEMBERS}
WHERE t.message_id = m.id AND t.group_id = m.group_id AND t.topic = m.topic
"""
"""Empty what rests in quarantine; that it was there stays, with reason and site. It can't be restored or sent again."""

WAKE = f"""
WITH locked AS (
    SELECT k.group_id, k.topic, k.key_hash FROM {{schema}}.parked_key AS k JOIN {_MEMBERS}
      ON k.head_id = m.id AND k.group_id = m.group_id AND k.topic = m.topic
    ORDER BY k.group_id, k.topic, k.key_hash FOR UPDATE OF k
)
UPDATE {{schema}}.parked_key AS k SET wake_at = clock_timestamp() FROM locked AS l
WHERE k.group_id = l.group_id AND k.topic = l.topic AND k.key_hash = l.key_hash
"""
"""Have keys woken that waited for them: what is behind of others goes on."""

LOCK_JOBS = """
WITH messages AS MATERIALIZED (
    SELECT i.message_id FROM {schema}.inbox AS i JOIN {schema}.job AS j ON j.id = i.message_id AND j.topic = i.topic
    WHERE i.message_id = ANY(%(ids)s::uuid[]) ORDER BY i.message_id, i.group_id, i.topic FOR UPDATE OF i
)
SELECT j.id, j.type, coalesce(j.group_id, '') AS "group", j.topic, j.state FROM {schema}.job AS j
WHERE j.id = ANY(%(ids)s::uuid[]) AND (SELECT count(*) FROM messages) >= 0 ORDER BY j.id FOR NO KEY UPDATE OF j
"""
"""Lock jobs and how they stand, behind what groups say of their messages, as acts on messages do."""

CANCEL = """
SELECT count(*) FILTER (WHERE c.after = 'cancelled' AND c.before <> c.after)::int AS n
FROM unnest(%(ids)s::uuid[]) AS j (id) CROSS JOIN LATERAL {schema}.cancel_job(j.id, %(actor)s, 'purged') AS c
"""
"""Take jobs back that nobody runs; the workers of those that run are asked to stop."""

ERASE_JOBS = """
WITH requests AS (
    DELETE FROM {schema}.job_request AS r USING {schema}.job AS j WHERE j.id = ANY(%(ids)s::uuid[]) AND r.type = j.type
      AND r.tenant = coalesce(j.tenant, '') AND r.request_key = j.request_key AND r.job_id = j.id
), steps AS (
    DELETE FROM {schema}.job_step AS s WHERE s.job_id = ANY(%(ids)s::uuid[])
), effects AS (
    UPDATE {schema}.job_effect AS e SET answer = NULL, digest = '', why = NULL WHERE e.job_id = ANY(%(ids)s::uuid[])
)
UPDATE {schema}.job AS j SET input = NULL, result = NULL, checkpoint = NULL, progress_text = NULL, tenant = NULL, request_key = NULL,
    one_waiting = NULL, one_running = NULL, purged_at = clock_timestamp(),
    error = CASE WHEN j.error IS NOT NULL THEN {schema}.error_site(j.error) END
WHERE j.id = ANY(%(ids)s::uuid[]) AND j.purged_at IS NULL
"""
"""Empty jobs; that they were there stays, with their history and that effects happened."""

INBOX_TEXTS = """
UPDATE {schema}.inbox AS i
SET error = CASE WHEN i.error IS NOT NULL THEN {schema}.error_site(i.error) END, digest = NULL
WHERE i.message_id = ANY(%(ids)s::uuid[]) AND (%(group)s::text IS NULL OR i.group_id = %(group)s)
  AND (i.digest IS NOT NULL OR i.error <> {schema}.error_site(i.error))
"""
"""Cut the texts of errors to class and place, and forget the payload's digest; the id stays, for duplicates are known by it."""

ATTEMPT_TEXTS = """
UPDATE {schema}.failed_attempt AS f SET error = {schema}.error_site(f.error)
WHERE f.message_id = ANY(%(ids)s::uuid[]) AND (%(group)s::text IS NULL OR f.group_id = %(group)s)
  AND f.error <> {schema}.error_site(f.error)
"""
"""The same of attempts."""

RUN_TRACES = """
UPDATE {schema}.redrive_member AS r SET key_hash = NULL
WHERE r.message_id = ANY(%(ids)s::uuid[]) AND r.key_hash IS NOT NULL AND r.state NOT IN ('waiting', 'asked')
"""
"""Forget what stands for the key in redrives that are done with the message."""

PURGE_OUTBOX = """
SELECT p.id, p.aggregatetype, p.seq, p.fate, p.gone FROM {schema}.purge_outbox(%(ids)s::uuid[], %(unpublished)s) AS p
"""
"""Delete rows of the outbox, as far as they may go."""

FATES = """
SELECT f.id, f.aggregatetype, f.fate FROM {schema}.outbox_fates(%(ids)s::uuid[]) AS f
WHERE f.fate <> 'published' AND NOT (f.fate = 'unpublished' AND %(unpublished)s) ORDER BY f.seq
"""
"""Which rows of the outbox would stay, and why."""

DISCARD = """
INSERT INTO {schema}.relay_discard (message_id, hold_id, aggregatetype, seq, actor, why)
VALUES (%(id)s, 0, %(aggregatetype)s, %(seq)s, %(actor)s, %(why)s) ON CONFLICT DO NOTHING
"""
"""Say of a row that was not published who gave it up."""

HOLDS = """
UPDATE {schema}.relay_hold AS h SET aggregateid = ''
WHERE h.state = 'ended' AND h.aggregateid = %(text)s AND (%(aggregatetype)s::text IS NULL OR h.aggregatetype = %(aggregatetype)s)
"""
"""Forget the key in holds that are over."""

RUNS = """
WITH redrives AS (
    UPDATE {schema}.redrive AS r SET wanted = jsonb_set(r.wanted, ARRAY['key'], '"erased"')
    WHERE r.state IN ('aborted', 'ended') AND r.wanted ->> 'key' = %(text)s RETURNING 1
), replays AS (
    UPDATE {schema}.replay AS r SET wanted = r.wanted || jsonb_strip_nulls(jsonb_build_object(
        'keys', CASE WHEN r.wanted -> 'keys' ? %(text)s THEN (r.wanted -> 'keys') - %(text)s::text || '["erased"]'::jsonb END,
        'left_out', CASE WHEN r.wanted -> 'left_out' ? %(text)s
            THEN (r.wanted -> 'left_out') - %(text)s::text || '["erased"]'::jsonb END))
    WHERE r.state IN ('stopped', 'ended') AND (r.wanted -> 'keys' ? %(text)s OR r.wanted -> 'left_out' ? %(text)s) RETURNING 1
)
SELECT (SELECT count(*) FROM redrives) + (SELECT count(*) FROM replays) AS n
"""
"""Forget the key in what runs that are over were asked for."""

KEYS = """
SELECT count(*) AS n FROM {schema}.parked_key AS k
WHERE k.key = %(key)s::bytea AND (%(group)s::text IS NULL OR k.group_id = %(group)s)
  AND (%(topic)s::text IS NULL OR k.topic = %(topic)s)
"""
"""How many parked keys there still are of it."""

MARK = """
SELECT {schema}.purge_mark(%(subject)s) AS mark
"""
"""What stands for the subject on the record."""

PLACES = """
SELECT p ->> 0 AS topic, (p ->> 1)::int AS partition, (p ->> 2)::bigint AS "offset", p ->> 3 AS kind
FROM {schema}.audit AS a CROSS JOIN LATERAL jsonb_array_elements(coalesce(a.detail -> 'places', '[]')) AS p
WHERE a.act = 'purge' AND a.detail ->> 'subject' = %(mark)s
"""
"""Where records of the subject lay, as far as this run and earlier ones of the same subject met them."""

SOURCES = """
SELECT DISTINCT w.topic FROM {schema}.watermark AS w
WHERE w.topic NOT LIKE '%%.retry.%%' AND (%(topic)s::text IS NULL OR w.topic = %(topic)s)
ORDER BY w.topic
"""
"""Which source topics groups read here."""
