"""
Make the tables of jobs: how each stands and each change of that, request keys and names, what waits for its time, steps and
outside effects.

The database itself writes the history and refuses a change of state that the table of states does not allow; a job follows its
message into quarantine and out of it, whoever acts. Runs before the code that needs it; the version before it goes on working.
"""

from alembic import context, op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None
phase = "before"

JOB = """
CREATE TABLE "{schema}".job (
    id uuid PRIMARY KEY,
    type text NOT NULL,
    version int NOT NULL,
    topic text NOT NULL,
    group_id text,
    state text NOT NULL DEFAULT 'accepted' CHECK (state IN ('accepted', 'running', 'retrying', 'succeeded', 'quarantined',
        'uncertain', 'discarded', 'cancelled', 'expired')),
    attempt int NOT NULL DEFAULT 0,
    input bytea,
    tenant text,
    actor text,
    correlation_id text,
    causation_id text,
    origin text,
    traceparent text,
    request_key text,
    priority text NOT NULL DEFAULT 'normal' CHECK (priority IN ('high', 'normal', 'low')),
    one_waiting text,
    one_running text,
    not_before timestamptz,
    expires_at timestamptz,
    accepted_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    changed_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    changed_by text NOT NULL,
    reason text,
    started_at timestamptz,
    finished_at timestamptz,
    worker uuid,
    token uuid,
    lease_until timestamptz,
    cancel_asked_at timestamptz,
    cancel_asked_by text,
    cancel_why text,
    checkpoint jsonb,
    progress_done bigint,
    progress_total bigint,
    progress_text text,
    progress_at timestamptz,
    result jsonb,
    error text,
    purged_at timestamptz
) WITH (fillfactor = 85);
COMMENT ON TABLE "{schema}".job IS
    'Jobs and how each stands; in the database that accepted them, beside the business rows they were accepted with';
COMMENT ON COLUMN "{schema}".job.id IS 'The id of its message too';
COMMENT ON COLUMN "{schema}".job.input IS 'Avro in the Confluent wire format; null once it was erased';
COMMENT ON COLUMN "{schema}".job.group_id IS 'The group whose workers run it; null until one has met it';
COMMENT ON COLUMN "{schema}".job.changed_by IS 'Who brought it into its state: a role, a person, or the worker';
COMMENT ON COLUMN "{schema}".job.token IS 'Of the lease: whoever writes without it is refused';
COMMENT ON COLUMN "{schema}".job.error IS 'Class and place of the last failure; text only where it was declared safe';
COMMENT ON COLUMN "{schema}".job.result IS 'What its function returned: a row or a reference; null once it was erased';
CREATE INDEX job_open ON "{schema}".job (state, type, id) WHERE state <> 'succeeded';
CREATE TABLE "{schema}".job_transition (
    job_id uuid,
    id bigint GENERATED ALWAYS AS IDENTITY,
    at timestamptz NOT NULL DEFAULT clock_timestamp(),
    before text,
    after text NOT NULL,
    actor text NOT NULL,
    reason text,
    attempt int NOT NULL,
    worker uuid,
    PRIMARY KEY (job_id, id)
);
COMMENT ON TABLE "{schema}".job_transition IS
    'Every change of state of every job, written by the database; holds nothing of a job''s input or result';
"""

MOVED = """
CREATE FUNCTION "{schema}".job_may(change text) RETURNS boolean LANGUAGE sql IMMUTABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp AS $body$
    SELECT change = ANY (ARRAY[{pairs}])
$body$;
COMMENT ON FUNCTION "{schema}".job_may(text) IS 'Whether a job may go from one state to another, given as before>after';
CREATE FUNCTION "{schema}".job_came() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $body$
BEGIN
    INSERT INTO "{schema}".job_transition (job_id, at, before, after, actor, reason, attempt)
    SELECT c.id, c.accepted_at, NULL, c.state, c.changed_by, c.reason, c.attempt FROM came AS c;
    RETURN NULL;
END
$body$;
CREATE FUNCTION "{schema}".job_moved() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET enable_nestloop = off AS $body$
DECLARE
    bad record;
BEGIN
    -- A plan is kept from a session's first statement on, mostly of one row: by loops, 500 rows would be compared 250,000 times.
    SELECT w.id, w.state AS before, c.state AS after INTO bad FROM went AS w JOIN came AS c ON c.id = w.id
     WHERE w.state <> c.state AND NOT (w.state || '>' || c.state) = ANY (ARRAY[{pairs}]) LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION 'job % can''t go from % to %', bad.id, bad.before, bad.after
            USING ERRCODE = 'check_violation', CONSTRAINT = 'job_transition';
    END IF;
    INSERT INTO "{schema}".job_transition (job_id, at, before, after, actor, reason, attempt, worker)
    SELECT c.id, c.changed_at, w.state, c.state, c.changed_by, c.reason, c.attempt, coalesce(c.worker, w.worker)
      FROM went AS w JOIN came AS c ON c.id = w.id
     WHERE w.state <> c.state OR (c.state = 'running' AND w.token IS DISTINCT FROM c.token);
    DELETE FROM "{schema}".job_running AS n WHERE n.job_id = ANY (ARRAY(SELECT c.id FROM went AS w JOIN came AS c ON c.id = w.id
        WHERE w.state = 'running' AND c.state <> 'running' AND c.one_running IS NOT NULL));
    DELETE FROM "{schema}".job_waiting AS n WHERE n.job_id = ANY (ARRAY(SELECT c.id FROM went AS w JOIN came AS c ON c.id = w.id
     WHERE w.state = 'accepted' AND c.state <> 'accepted' AND c.one_waiting IS NOT NULL));
    DELETE FROM "{schema}".job_due AS n WHERE n.job_id = ANY (ARRAY(SELECT c.id FROM went AS w JOIN came AS c ON c.id = w.id
     WHERE w.state = 'accepted' AND c.state <> 'accepted' AND c.not_before IS NOT NULL));
    RETURN NULL;
END
$body$;
CREATE TRIGGER job_came AFTER INSERT ON "{schema}".job REFERENCING NEW TABLE AS came
    FOR EACH STATEMENT EXECUTE FUNCTION "{schema}".job_came();
CREATE TRIGGER job_moved AFTER UPDATE ON "{schema}".job REFERENCING OLD TABLE AS went NEW TABLE AS came
    FOR EACH STATEMENT EXECUTE FUNCTION "{schema}".job_moved();
CREATE TRIGGER refuse_forgetting BEFORE UPDATE OR TRUNCATE ON "{schema}".job_transition
    FOR EACH STATEMENT EXECUTE FUNCTION "{schema}".refuse_forgetting();
"""

NAMES = """
CREATE TABLE "{schema}".job_request (
    type text,
    tenant text,
    request_key text,
    job_id uuid NOT NULL,
    digest text NOT NULL,
    made_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (type, tenant, request_key)
);
COMMENT ON TABLE "{schema}".job_request IS
    'The job that a request key stands for, in the scope of type and tenant, for as long as the job''s row is kept';
COMMENT ON COLUMN "{schema}".job_request.tenant IS 'Empty without one';
COMMENT ON COLUMN "{schema}".job_request.digest IS 'Of the input, version and all, hex: the same key for another one is a conflict';
CREATE TABLE "{schema}".job_waiting (
    type text,
    name text,
    job_id uuid NOT NULL,
    PRIMARY KEY (type, name)
);
COMMENT ON TABLE "{schema}".job_waiting IS 'Names of which one job at most waits: the one that does; gone when its run begins';
CREATE INDEX job_waiting_job ON "{schema}".job_waiting (job_id);
CREATE TABLE "{schema}".job_running (
    type text,
    name text,
    job_id uuid NOT NULL,
    token uuid NOT NULL,
    PRIMARY KEY (type, name)
);
COMMENT ON TABLE "{schema}".job_running IS
    'Names of which one job at most runs: the one that does, under the token of its lease; gone when its run ends';
CREATE INDEX job_running_job ON "{schema}".job_running (job_id);
CREATE TABLE "{schema}".job_due (
    job_id uuid PRIMARY KEY,
    due_at timestamptz NOT NULL,
    aggregatetype text NOT NULL,
    aggregateid text,
    type text NOT NULL,
    schema_version text NOT NULL,
    payload bytea,
    traceparent text,
    tracestate text,
    correlation_id text,
    causation_id text,
    origin text,
    actor text,
    tenant text,
    expires_at text,
    headers jsonb
);
COMMENT ON TABLE "{schema}".job_due IS
    'Jobs that wait for their time, each with its outbox row; whoever deletes the row writes that, once; gone with a job that ends
before';
CREATE INDEX job_due_at ON "{schema}".job_due (due_at);
CREATE INDEX job_due_type ON "{schema}".job_due (type, due_at);
"""

WORK = """
CREATE TABLE "{schema}".job_step (
    job_id uuid,
    name text,
    at timestamptz NOT NULL DEFAULT clock_timestamp(),
    attempt int NOT NULL,
    result jsonb,
    PRIMARY KEY (job_id, name)
);
COMMENT ON TABLE "{schema}".job_step IS 'Steps of jobs that are done, with what each returned: none is run again';
CREATE TABLE "{schema}".job_effect (
    job_id uuid,
    key text,
    idempotency_key text NOT NULL,
    digest text NOT NULL,
    state text NOT NULL DEFAULT 'intended' CHECK (state IN ('intended', 'answered', 'happened', 'did-not-happen', 'uncertain')),
    attempt int NOT NULL,
    calls int NOT NULL DEFAULT 1,
    intended_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    timeout float8 NOT NULL,
    changed_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    changed_by text NOT NULL,
    why text,
    answer jsonb,
    PRIMARY KEY (job_id, key)
);
COMMENT ON TABLE "{schema}".job_effect IS
    'Outside effects of jobs: each intent is here before the call, each answer after it';
COMMENT ON COLUMN "{schema}".job_effect.idempotency_key IS 'What the outside system is given: the same over attempts and redrives';
COMMENT ON COLUMN "{schema}".job_effect.digest IS 'Of the arguments, hex: the same key with others is refused';
COMMENT ON COLUMN "{schema}".job_effect.timeout IS 'Seconds that the call itself may take: before that a "no" of the other side counts for nothing';
CREATE INDEX job_effect_open ON "{schema}".job_effect (state, changed_at) WHERE state IN ('intended', 'uncertain');
CREATE TABLE "{schema}".job_policy (
    type text PRIMARY KEY,
    group_id text NOT NULL,
    contact text,
    keep_result float8,
    keep_row float8,
    seen_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
COMMENT ON TABLE "{schema}".job_policy IS
    'What the processor of a type of jobs declares of it: seconds after their end that results and rows are kept (null: as the
processors'' settings say, Infinity: for ever), and who is told';
CREATE TABLE "{schema}".job_retention (
    type text PRIMARY KEY,
    ran_by text,
    seen_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    jobs bigint NOT NULL DEFAULT 0,
    results bigint NOT NULL DEFAULT 0,
    detail jsonb NOT NULL DEFAULT '{{}}'
);
COMMENT ON TABLE "{schema}".job_retention IS
    'One row a type: how many jobs and results were removed and are not on the record yet. The row without a name says who works and what the
last turn left behind';
"""

CANCEL = """
CREATE FUNCTION "{schema}".cancel_job(wanted uuid, whom text, why text, OUT before text, OUT after text) RETURNS record
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $body$
BEGIN
    SELECT j.state INTO before FROM "{schema}".job AS j WHERE j.id = wanted FOR NO KEY UPDATE;
    after := before;
    IF before IN ('accepted', 'retrying') THEN
        after := 'cancelled';
        UPDATE "{schema}".job AS j SET state = after, changed_at = clock_timestamp(), changed_by = whom, reason = why,
            finished_at = clock_timestamp(), cancel_asked_at = clock_timestamp(), cancel_asked_by = whom, cancel_why = why
         WHERE j.id = wanted;
    ELSIF before = 'running' THEN
        UPDATE "{schema}".job AS j SET cancel_asked_at = clock_timestamp(), cancel_asked_by = whom, cancel_why = why
         WHERE j.id = wanted AND j.cancel_asked_at IS NULL;
    END IF;
END
$body$;
COMMENT ON FUNCTION "{schema}".cancel_job(uuid, text, text) IS
    'Cancel a job that waits, ask the worker of one that runs, leave all others; returns the state before and after';
REVOKE EXECUTE ON FUNCTION "{schema}".cancel_job(uuid, text, text) FROM PUBLIC;
CREATE FUNCTION "{schema}".send_job(wanted uuid, aggregate text, reference bytea) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $body$
BEGIN
    PERFORM FROM "{schema}".job AS j WHERE j.id = wanted FOR NO KEY UPDATE;
    INSERT INTO "{schema}".outbox (id, aggregatetype, type, schema_version, payload, traceparent, correlation_id, causation_id, origin,
        actor, tenant, expires_at)
    SELECT j.id, aggregate, j.type, j.version::text, reference, j.traceparent, j.correlation_id, j.causation_id, j.origin, j.actor,
           j.tenant, to_char(j.expires_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')
      FROM "{schema}".job AS j
     WHERE j.id = wanted AND j.state = 'accepted' AND right(j.topic, length(aggregate) + 1) = '.' || aggregate
       AND NOT EXISTS (SELECT FROM "{schema}".job_due AS d WHERE d.job_id = j.id)
       AND NOT EXISTS (SELECT FROM "{schema}".outbox AS o WHERE o.id = j.id)
       AND NOT EXISTS (SELECT FROM "{schema}".inbox AS i WHERE i.message_id = j.id AND i.topic = j.topic);
    RETURN FOUND;
END
$body$;
COMMENT ON FUNCTION "{schema}".send_job(uuid, text, bytea) IS
    'Write the outbox row of an accepted job anew where there is none (any more) and no group has dealt with its message';
REVOKE EXECUTE ON FUNCTION "{schema}".send_job(uuid, text, bytea) FROM PUBLIC;
"""

FOLLOW = """
CREATE FUNCTION "{schema}".job_rests(wanted uuid, reason text) RETURNS text LANGUAGE sql STABLE PARALLEL SAFE AS $body$
SELECT CASE WHEN reason = 'uncertain'
    OR EXISTS (SELECT FROM "{schema}".job_effect AS e WHERE e.job_id = wanted AND e.state IN ('intended', 'uncertain'))
    THEN 'uncertain' ELSE 'quarantined' END
$body$;
COMMENT ON FUNCTION "{schema}".job_rests(uuid, text) IS
    'The state of a job whose message is in quarantine for a reason: uncertain while an effect of its may or may not have happened';

CREATE FUNCTION "{schema}".job_follows() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET enable_nestloop = off AS $body$
BEGIN
    IF TG_OP = 'INSERT' THEN
        UPDATE "{schema}".job AS j SET state = "{schema}".job_rests(j.id, c.reason),
            group_id = c.group_id, changed_at = clock_timestamp(), reason = c.reason, error = c.error,
            changed_by = coalesce(nullif(current_setting('packhorse.actor', true), ''), 'worker'), worker = NULL, token = NULL,
            lease_until = NULL
          FROM came AS c
         WHERE j.id = ANY (ARRAY(SELECT o.message_id FROM came AS o)) AND j.id = c.message_id AND j.topic = c.topic
           -- another group that reads the topic has a quarantine of its own, and none of the workers
           AND c.group_id = coalesce(j.group_id, (SELECT p.group_id FROM "{schema}".job_policy AS p WHERE p.type = j.type))
           AND c.state = 'quarantined' AND j.state || '' IN ('accepted', 'running', 'retrying');  -- hidden: job_open is no way here
    ELSE
        UPDATE "{schema}".job AS j SET state = t.state, group_id = c.group_id, changed_at = clock_timestamp(), worker = NULL, token = NULL,
            lease_until = NULL, reason = CASE c.state WHEN 'quarantined' THEN c.reason ELSE c.state END,
            finished_at = CASE c.state WHEN 'discarded' THEN clock_timestamp() END,
            cancel_asked_at = CASE WHEN c.state <> 'redriven' THEN j.cancel_asked_at END,
            cancel_asked_by = CASE WHEN c.state <> 'redriven' THEN j.cancel_asked_by END,
            cancel_why = CASE WHEN c.state <> 'redriven' THEN j.cancel_why END,
            changed_by = coalesce(nullif(current_setting('packhorse.actor', true), ''), 'worker')
          FROM went AS w JOIN came AS c ON c.message_id = w.message_id AND c.group_id = w.group_id AND c.topic = w.topic
          CROSS JOIN LATERAL (SELECT CASE c.state WHEN 'redriven' THEN 'retrying' WHEN 'discarded' THEN 'discarded'
                ELSE "{schema}".job_rests(c.message_id, c.reason) END AS state) AS t
         WHERE j.id = ANY (ARRAY(SELECT o.message_id FROM came AS o)) AND j.id = c.message_id AND j.topic = c.topic
           AND coalesce(j.group_id, c.group_id) = c.group_id AND w.state <> c.state
           AND j.state <> t.state AND "{schema}".job_may(j.state || '>' || t.state);
    END IF;
    RETURN NULL;
END
$body$;
CREATE TRIGGER job_follows_insert AFTER INSERT ON "{schema}".quarantined_message REFERENCING NEW TABLE AS came
    FOR EACH STATEMENT EXECUTE FUNCTION "{schema}".job_follows();
CREATE TRIGGER job_follows_update AFTER UPDATE ON "{schema}".quarantined_message
    REFERENCING OLD TABLE AS went NEW TABLE AS came
    FOR EACH STATEMENT EXECUTE FUNCTION "{schema}".job_follows();
REVOKE EXECUTE ON FUNCTION "{schema}".job_came(), "{schema}".job_moved(), "{schema}".job_follows() FROM PUBLIC;
"""

PAIRS = (
    ">accepted",
    "accepted>cancelled",
    "accepted>expired",
    "accepted>quarantined",
    "accepted>retrying",
    "accepted>running",
    "accepted>uncertain",
    "discarded>quarantined",
    "discarded>uncertain",
    "quarantined>discarded",
    "quarantined>retrying",
    "retrying>cancelled",
    "retrying>expired",
    "retrying>quarantined",
    "retrying>running",
    "retrying>uncertain",
    "running>accepted",
    "running>cancelled",
    "running>expired",
    "running>quarantined",
    "running>retrying",
    "running>running",
    "running>succeeded",
    "running>uncertain",
    "uncertain>discarded",
    "uncertain>quarantined",
    "uncertain>retrying",
)
"""The changes that were allowed when this was written; a test compares them with `packhorse.core.jobs`."""


def upgrade() -> None:
    """Make the tables of jobs and what keeps them true."""
    schema = context.config.attributes["schema"]
    allowed = ", ".join(f"'{pair}'" for pair in PAIRS)
    for part in (JOB, NAMES, MOVED, WORK, CANCEL, FOLLOW):
        op.execute(part.format(schema=schema, pairs=allowed))
