"""What the tables say of one job. `{schema}` is the database schema of Packhorse's tables."""

JOB = """
SELECT j.id, j.type, j.version, j.topic, j.group_id AS "group", j.state, j.attempt, j.tenant, j.correlation_id, j.causation_id,
       j.origin, j.traceparent, j.priority, j.accepted_at, j.changed_at, j.changed_by, j.reason, j.started_at, j.finished_at,
       j.not_before, j.expires_at, j.worker, j.lease_until, j.cancel_asked_at, j.cancel_asked_by, j.cancel_why,
       j.progress_done, j.progress_total, j.progress_text, j.progress_at, j.error, octet_length(j.input) AS input_bytes,
       octet_length(j.checkpoint::text) AS checkpoint_bytes, octet_length(j.result::text) AS result_bytes, j.purged_at,
       j.request_key, j.one_waiting, j.one_running
FROM {schema}.job AS j
"""

JOB_OF = JOB + "WHERE j.id = %(id)s"
"""The row of one job; of what an application put into it, sizes alone."""

TRANSITIONS = """
SELECT t.at, t.before, t.after, t.actor, t.reason, t.attempt, t.worker FROM (
    SELECT t.* FROM {schema}.job_transition AS t WHERE t.job_id = %(id)s ORDER BY t.id DESC LIMIT %(most)s) AS t ORDER BY t.id
"""
"""The newest changes of its state, in their order."""

STEPS = """
SELECT s.name, s.at, s.attempt, octet_length(s.result::text) AS result_bytes
FROM {schema}.job_step AS s WHERE s.job_id = %(id)s ORDER BY s.at DESC, s.name LIMIT %(most)s
"""
"""The newest of its steps."""

EFFECT = """
SELECT e.key, e.idempotency_key, e.state, e.attempt, e.calls, e.intended_at, e.timeout, e.changed_at, e.changed_by, e.why,
       octet_length(e.answer::text) AS answer_bytes
FROM {schema}.job_effect AS e WHERE e.job_id = %(id)s
"""

EFFECTS = (
    EFFECT + "ORDER BY e.state NOT IN ('intended', 'uncertain'), e.intended_at DESC, e.key LIMIT %(most)s"
)
"""Its outside effects, those in doubt first."""

BESIDES = """
SELECT (SELECT count(*) FROM {schema}.job_step AS s WHERE s.job_id = j.id)::int AS step_count,
       (SELECT count(*) FROM {schema}.job_effect AS e WHERE e.job_id = j.id)::int AS effect_count,
       (SELECT d.due_at FROM {schema}.job_due AS d WHERE d.job_id = j.id) AS due_at,
       (SELECT r.job_id FROM {schema}.job_running AS r
         WHERE r.type = j.type AND r.name = j.one_running AND r.job_id <> j.id) AS runs_instead,
       (SELECT p.contact FROM {schema}.job_policy AS p WHERE p.type = j.type) AS contact,
       (SELECT p.group_id FROM {schema}.job_policy AS p WHERE p.type = j.type) AS declared_by,
       j.state = 'accepted' AND NOT EXISTS (SELECT FROM {schema}.job_due AS d WHERE d.job_id = j.id)
           AND NOT EXISTS (SELECT FROM {schema}.outbox AS o WHERE o.id = j.id)
           AND NOT EXISTS (SELECT FROM {schema}.inbox AS i WHERE i.message_id = j.id AND i.topic = j.topic) AS message_lost
FROM {schema}.job AS j WHERE j.id = %(id)s
"""
"""How many of each there are, what it waits for, and what its processor declares of its type."""
