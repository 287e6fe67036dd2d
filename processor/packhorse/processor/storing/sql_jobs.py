"""Statements on jobs, their leases and what waits for its time; `{schema}` is a checked name."""

# Waits for no lock for long, in this transaction.
BRIEF = """(SELECT set_config('lock_timeout', '50ms', true) AS mode)"""

# Jobs are always asked for by their ids here. What is asked of their state beside that is hidden from the planner by `|| ''`: where
# it believes that few jobs are open, it would read the whole index of open ones instead, for each chunk of a backlog.

# Takes jobs under leases, as far as they may run: those that wait, those whose lease is over, and those that this process has a
# lease of that nobody works under. A caller that was given back a job by its name, and has not committed, holds that row: the run
# is to see what the caller has written. Of a name of which one runs at most, one; the holder keeps it until its own run has ended
# (then the database takes the row away, see migration 0010), also when its lease is over: a frozen worker may thaw. Whether that
# run goes on is not asked here: what this statement sees of it may be older than the row it waited for. What is locked, by a caller
# who cancels it say, is passed over. The commit waits for no disk: where a crash of the server loses it, whatever is written under
# the lease is refused.
_CLAIM = """
WITH wanted AS MATERIALIZED (
    SELECT w.* FROM unnest(%(ids)s::uuid[], %(tokens)s::uuid[], %(was)s::uuid[], %(attempts)s::int[])
        AS w (id, token, was, attempt) CROSS JOIN {loose} l WHERE l.mode IS NOT NULL
    {most}
), named AS MATERIALIZED (
    SELECT n.job_id FROM "{schema}".job_waiting n JOIN wanted w ON w.id = n.job_id FOR UPDATE OF n SKIP LOCKED
), free AS MATERIALIZED (
    SELECT j.id, j.type, j.one_running, w.token, w.was, w.attempt FROM "{schema}".job j JOIN wanted w ON w.id = j.id
    WHERE (j.state || '' IN ('accepted', 'retrying') OR j.state || '' = 'running' AND (j.lease_until < clock_timestamp() OR j.token = w.was))
        AND coalesce(j.group_id, %(group)s) = %(group)s AND j.cancel_asked_at IS NULL
        AND (j.expires_at IS NULL OR j.expires_at > clock_timestamp())
        AND (j.one_waiting IS NULL OR j.id IN (SELECT n.job_id FROM named n)
            OR NOT EXISTS (SELECT FROM "{schema}".job_waiting n WHERE n.job_id = j.id))
    FOR NO KEY UPDATE OF j SKIP LOCKED
), held AS (
    INSERT INTO "{schema}".job_running AS r (type, name, job_id, token)
    SELECT DISTINCT ON (f.type, f.one_running) f.type, f.one_running, f.id, f.token FROM free f
    WHERE f.one_running IS NOT NULL ORDER BY f.type, f.one_running, f.id
    ON CONFLICT (type, name) DO UPDATE SET job_id = EXCLUDED.job_id, token = EXCLUDED.token
    WHERE r.job_id = EXCLUDED.job_id
    RETURNING r.job_id
), moved AS (
    UPDATE "{schema}".job j SET state = 'running', token = f.token, worker = %(member)s, group_id = %(group)s,
        lease_until = clock_timestamp() + %(lease)s * interval '1 second', attempt = f.attempt,
        started_at = CASE WHEN j.token = f.was THEN j.started_at ELSE clock_timestamp() END,
        changed_at = clock_timestamp(), changed_by = 'worker',
        reason = CASE WHEN j.state = 'running' AND j.token IS DISTINCT FROM f.was THEN 'lease-over' END
    FROM free f
    WHERE j.id = f.id AND (f.one_running IS NULL OR j.id IN (SELECT h.job_id FROM held h))
    RETURNING j.id, f.token, j.input, j.checkpoint, j.request_key,
        extract(epoch FROM clock_timestamp() - greatest(j.accepted_at, j.not_before))::float8 AS age
)
SELECT m.id, m.token, m.input, m.checkpoint, m.request_key, m.age FROM moved m"""
CLAIM_JOBS = _CLAIM.replace("{most}", "")
# The same of one job. The limit tells the server that it is one: so it keeps one plan, where it makes a new one for arrays of any
# length each time; that took longer than the statement, 0.5 ms. For many jobs a plan made for one would be a bad one.
CLAIM_JOB = _CLAIM.replace("{most}", "LIMIT 1")

# How jobs stand that could not be had.
LOOK_UP_JOBS = """
SELECT j.id, j.state, j.group_id, extract(epoch FROM j.lease_until - clock_timestamp())::float8, j.cancel_asked_at IS NOT NULL,
    j.token, j.one_running, coalesce(j.expires_at <= clock_timestamp(), false)
FROM "{schema}".job j WHERE j.id = ANY(%(ids)s::uuid[])"""

# Ends runs in the transaction that records their messages, each under its token; without one, of what did not run: only where no
# lease stands in the way. Returns those that were theirs: of the others nothing may be recorded.
_FINISH = """
WITH ends AS MATERIALIZED (
    SELECT e.* FROM unnest(%(ids)s::uuid[], %(tokens)s::uuid[], %(states)s::text[], %(attempts)s::int[], %(reasons)s::text[],
        %(errors)s::text[], %(results)s::text[], %(dones)s::bigint[], %(totals)s::bigint[], %(texts)s::text[])
        AS e (id, token, state, attempt, reason, error, result, done, total, text)
    {most}
), over AS MATERIALIZED (
    -- what did not run, of a job that is not there, has ended, or is another group's: its message alone is recorded
    SELECT e.id FROM ends e WHERE e.token IS NULL AND NOT EXISTS (SELECT FROM "{schema}".job j
        WHERE j.id = e.id AND j.state || '' IN ('accepted', 'retrying', 'running') AND coalesce(j.group_id, %(group)s) = %(group)s)
), done AS (
    UPDATE "{schema}".job j SET state = e.state, group_id = %(group)s, attempt = greatest(j.attempt, e.attempt),
        changed_at = clock_timestamp(), changed_by = CASE WHEN e.reason = 'cancelled' AND j.cancel_asked_by IS NOT NULL
            THEN j.cancel_asked_by ELSE 'worker' END, reason = e.reason,
        error = coalesce(e.error, CASE WHEN e.state <> 'succeeded' THEN j.error END), result = coalesce(e.result::jsonb, j.result),
        finished_at = CASE WHEN e.state IN ('succeeded', 'cancelled', 'expired') THEN clock_timestamp() END,
        progress_done = coalesce(e.done, j.progress_done), progress_total = coalesce(e.total, j.progress_total),
        progress_text = coalesce(e.text, j.progress_text),
        progress_at = CASE WHEN e.done IS NULL THEN j.progress_at ELSE clock_timestamp() END,
        checkpoint = CASE WHEN e.state = 'succeeded' THEN NULL ELSE j.checkpoint END,
        worker = NULL, token = NULL, lease_until = NULL
    FROM ends e
    WHERE j.id = e.id AND coalesce(j.group_id, %(group)s) = %(group)s AND (j.state || '' = 'running' AND j.token = e.token
        OR e.token IS NULL AND (j.state || '' IN ('accepted', 'retrying') OR j.state || '' = 'running' AND j.lease_until < clock_timestamp()))
    RETURNING j.id
)
{then}"""
_ENDED = _FINISH.replace("{then}", "SELECT d.id FROM done d UNION ALL SELECT o.id FROM over o")
#
# Of several none waits for long for a row that a caller has locked, who cancels it say and takes his time: then each is ended by itself.
FINISH_JOBS = _ENDED.replace("{most}", "CROSS JOIN {brief} l WHERE l.mode IS NOT NULL")
# The same of one job; why there are two, see CLAIM_JOB.
FINISH_JOB = _ENDED.replace("{most}", "LIMIT 1")

# The same, of jobs that are done at their first attempt and want nothing written, with the inbox rows of their messages: one statement, a
# transaction by itself. Where another was first with one of the messages nothing of it is done.
_NOTED = """
INSERT INTO "{schema}".inbox (group_id, topic, message_id, outcome, attempt, partition, "offset", type, digest)
SELECT %(group)s, %(source)s, r.id, 'done', 1, %(partition)s, r."offset", r.type, r.digest
FROM unnest(%(ids)s::uuid[], %(offsets)s::bigint[], %(types)s::text[], %(digests)s::text[]) AS r (id, "offset", type, digest)
JOIN done d ON d.id = r.id
RETURNING message_id"""
_RECORDED = _FINISH.replace("{then}", _NOTED)
RECORD_JOBS = _RECORDED.replace("{most}", "CROSS JOIN {brief} l WHERE l.mode IS NOT NULL")
RECORD_JOB = _RECORDED.replace("{most}", "LIMIT 1")

# Gives jobs back that were claimed and are not run, or not to their end: nothing is charged. One of which a run has failed waits for its
# next run, not for its first.
RELEASE_JOBS = """
UPDATE "{schema}".job j SET state = CASE WHEN j.attempt > 1 OR j.error IS NOT NULL THEN 'retrying' ELSE 'accepted' END,
    changed_at = clock_timestamp(), changed_by = 'worker', reason = %(reason)s, worker = NULL, token = NULL, lease_until = NULL
FROM unnest(%(ids)s::uuid[], %(tokens)s::uuid[]) AS w (id, token)
WHERE j.id = w.id AND j.token = w.token AND j.state || '' = 'running'"""

# Renews leases and writes progress; a row that is locked just now is passed over, and renewed with the next beat. It does not ask
# whether the lease is over: as long as nobody has taken the job, it is still this worker's.
RENEW_JOBS = """
WITH held AS MATERIALIZED (
    SELECT j.id, w.done, w.total, w.text FROM "{schema}".job j JOIN unnest(%(ids)s::uuid[], %(tokens)s::uuid[],
        %(dones)s::bigint[], %(totals)s::bigint[], %(texts)s::text[]) AS w (id, token, done, total, text) ON j.id = w.id
    WHERE j.token = w.token AND j.state || '' = 'running' FOR NO KEY UPDATE OF j SKIP LOCKED
)
UPDATE "{schema}".job j SET lease_until = clock_timestamp() + %(lease)s * interval '1 second',
    progress_done = coalesce(h.done, j.progress_done),
    progress_total = CASE WHEN h.done IS NULL THEN j.progress_total ELSE h.total END,
    progress_text = CASE WHEN h.done IS NULL THEN j.progress_text ELSE h.text END,
    progress_at = CASE WHEN h.done IS NULL THEN j.progress_at ELSE clock_timestamp() END
FROM held h WHERE j.id = h.id
RETURNING j.id, j.cancel_asked_at IS NOT NULL"""

# Which of these leases stand: of a beat that did not come back for some of them.
STANDING_JOBS = """
SELECT j.id FROM "{schema}".job j JOIN unnest(%(ids)s::uuid[], %(tokens)s::uuid[]) AS w (id, token) ON j.id = w.id
WHERE j.token = w.token AND j.state || '' = 'running'"""

# Keeps what a body wants to go on from, durably.
CHECKPOINT_JOB = """
UPDATE "{schema}".job j SET checkpoint = %(value)s::jsonb FROM {durable} d
WHERE j.id = %(id)s AND j.token = %(token)s AND j.state = 'running' AND d.mode IS NOT NULL"""

# Writes the outbox rows of jobs whose time has come: whoever deletes a row writes it.
DUE_JOBS = """
WITH due AS (
    DELETE FROM "{schema}".job_due d WHERE d.job_id IN (SELECT n.job_id FROM unnest(%(types)s::text[]) AS t (type)
        CROSS JOIN LATERAL (SELECT x.job_id FROM "{schema}".job_due x WHERE x.type = t.type AND x.due_at <= clock_timestamp()
            ORDER BY x.type, x.due_at LIMIT %(most)s FOR UPDATE SKIP LOCKED) AS n)
    RETURNING d.*
), sent AS (
    INSERT INTO "{schema}".outbox (id, aggregatetype, aggregateid, type, schema_version, payload, traceparent, tracestate,
        correlation_id, causation_id, origin, actor, tenant, expires_at, headers)
    SELECT d.job_id, d.aggregatetype, d.aggregateid, d.type, d.schema_version, d.payload, d.traceparent, d.tracestate,
        d.correlation_id, d.causation_id, d.origin, d.actor, d.tenant, d.expires_at, d.headers
    FROM due d ORDER BY d.due_at
    RETURNING 1
)
SELECT (SELECT count(*) FROM sent), (SELECT extract(epoch FROM min(n.due_at) - clock_timestamp())::float8
    FROM unnest(%(types)s::text[]) AS t (type) CROSS JOIN LATERAL (SELECT x.due_at FROM "{schema}".job_due x
        WHERE x.type = t.type AND x.due_at > clock_timestamp() ORDER BY x.type, x.due_at LIMIT 1) AS n)"""

# What a processor declares of its types of jobs.
DECLARE_JOBS = """
INSERT INTO "{schema}".job_policy AS p (type, group_id, contact, keep_result, keep_row)
SELECT w.type, %(group)s, w.contact, w.keep_result, w.keep_row
FROM unnest(%(types)s::text[], %(contacts)s::text[], %(results)s::float8[], %(rows)s::float8[])
    AS w (type, contact, keep_result, keep_row)
ON CONFLICT (type) DO UPDATE SET group_id = EXCLUDED.group_id, contact = EXCLUDED.contact, keep_result = EXCLUDED.keep_result,
    keep_row = EXCLUDED.keep_row, seen_at = clock_timestamp()"""
