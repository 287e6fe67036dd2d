"""Every statement that the outbox sends, named and described; `{schema}` is a checked identifier."""

from dataclasses import dataclass

from packhorse.core.naming import checked_identifier

TABLES = (
    "audit",
    "failed_attempt",
    "failure_group",
    "failure_note",
    "in_hand",
    "inbox",
    "inbox_retention",
    "job",
    "job_due",
    "job_effect",
    "job_policy",
    "job_request",
    "job_retention",
    "job_running",
    "job_step",
    "job_transition",
    "job_waiting",
    "operator",
    "outbox",
    "parked_key",
    "parked_message",
    "pause",
    "processor_member",
    "purge_secret",
    "quarantine_change",
    "quarantine_tally",
    "quarantine_tenant_tally",
    "quarantined_message",
    "redrive",
    "redrive_member",
    "relay",
    "relay_discard",
    "relay_hold",
    "relay_member",
    "replay",
    "replay_message",
    "replay_partition",
    "retention",
    "retry_message",
    "schema_version",
    "started",
    "watermark",
)
"""All tables that the migrations make, beside the partitions of the outbox and the inbox."""

COLUMNS = (
    "id",
    "aggregatetype",
    "aggregateid",
    "type",
    "schema_version",
    "payload",
    "traceparent",
    "tracestate",
    "correlation_id",
    "causation_id",
    "origin",
    "actor",
    "tenant",
    "expires_at",
    "headers",
)
"""The columns that a writer fills; created_at, xid and seq are the database's own."""

INSERT_ONE = """
INSERT INTO "{schema}".outbox (id, aggregatetype, aggregateid, type, schema_version, payload, traceparent, tracestate,
    correlation_id, causation_id, origin, actor, tenant, expires_at, headers)
VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s::jsonb)"""

# Many rows that differ in id, key, payload and headers alone: what they share travels once. ORDER BY stands for the
# promise that sequence values are drawn in the order of the calls; the input has that order already.
INSERT_ALIKE = """
INSERT INTO "{schema}".outbox (id, aggregatetype, aggregateid, type, schema_version, payload, traceparent, tracestate,
    correlation_id, causation_id, origin, actor, tenant, expires_at, headers)
SELECT r.id, %s, r.aggregateid, %s, %s, r.payload, %s, %s, %s, %s, %s, %s, %s, %s, r.headers::jsonb
FROM unnest(%s, %s, %s, %s) WITH ORDINALITY AS r (id, aggregateid, payload, headers, n)
ORDER BY r.n"""

# Many rows of any kind.
INSERT_MIXED = """
INSERT INTO "{schema}".outbox (id, aggregatetype, aggregateid, type, schema_version, payload, traceparent, tracestate,
    correlation_id, causation_id, origin, actor, tenant, expires_at, headers)
SELECT r.id, r.aggregatetype, r.aggregateid, r.type, r.schema_version, r.payload, r.traceparent, r.tracestate,
    r.correlation_id, r.causation_id, r.origin, r.actor, r.tenant, r.expires_at, r.headers::jsonb
FROM unnest(%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s) WITH ORDINALITY AS r (id, aggregatetype,
    aggregateid, type, schema_version, payload, traceparent, tracestate, correlation_id, causation_id, origin, actor,
    tenant, expires_at, headers, n)
ORDER BY r.n"""

# Takes the slots' locks until the transaction ends; returns those that others hold (see migration 0001).
LOCK_SLOTS = 'SELECT "{schema}".lock_keys(%s)'

# What a writer needs, asked of the catalog: a query of the tables themselves would fail where one is missing, and a
# failed statement takes the caller's transaction with it.
READY = """
SELECT c.relname, has_schema_privilege(n.oid, 'USAGE') AND CASE c.relname
        WHEN 'outbox' THEN has_any_column_privilege(c.oid, 'INSERT')
        ELSE has_table_privilege(c.oid, 'SELECT')
    END, current_user
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = '{schema}' AND c.relname IN ('outbox', 'schema_version')"""

# The registry's ids of all versions of some subjects. A row is settled when its transaction id is older than this
# transaction's: what this transaction wrote itself (a savepoint's id is younger still) may yet be rolled back.
SCHEMA_IDS = """
SELECT subject, version, schema_id, fingerprint, coalesce(age(xmin) > age(pg_current_xact_id_if_assigned()::xid), true)
FROM "{schema}".schema_version WHERE subject = ANY(%s)"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Queries:
    """The statements for one database schema, as the driver takes them."""

    insert_one: bytes
    insert_alike: bytes
    insert_mixed: bytes
    lock_slots: bytes
    ready: bytes
    schema_ids: bytes


def queries_for(schema: str) -> Queries:
    """
    Return the statements for the database schema *schema*.

    Raises:
        SettingsError: The name is not allowed.
    """
    checked_identifier(schema, what="database schema")
    return Queries(
        insert_one=INSERT_ONE.format(schema=schema).encode(),
        insert_alike=INSERT_ALIKE.format(schema=schema).encode(),
        insert_mixed=INSERT_MIXED.format(schema=schema).encode(),
        lock_slots=LOCK_SLOTS.format(schema=schema).encode(),
        ready=READY.format(schema=schema).encode(),
        schema_ids=SCHEMA_IDS.format(schema=schema).encode(),
    )
