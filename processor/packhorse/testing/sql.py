"""The statements of the test helpers; `{schema}` is a checked identifier."""

# Fills in for the registry; keeps what is there.
REGISTER = """
INSERT INTO "{schema}".schema_version (subject, version, fingerprint, schema_id, schema)
VALUES (%s, %s, %s, %s, %s) ON CONFLICT (subject, version) DO NOTHING"""

# What the transaction of this connection has written so far, savepoints included; the messages of jobs hold a reference alone.
EMITTED = """
SELECT o.id, o.aggregatetype, o.aggregateid, o.type, o.schema_version, o.payload, o.traceparent, o.correlation_id,
    o.causation_id, o.origin, o.actor, o.tenant, o.expires_at, o.headers::text
FROM "{schema}".outbox AS o
WHERE o.xid = pg_current_xact_id_if_assigned() AND NOT EXISTS (SELECT FROM "{schema}".job AS j WHERE j.id = o.id)
ORDER BY o.seq"""

# The jobs that the transaction of this connection has submitted so far. What is visible and of a transaction in progress is its
# own; a savepoint has an id of its own, of which the row holds the lower half.
SUBMITTED = """
SELECT j.id, j.type, j.version, j.input, j.tenant, j.actor, j.correlation_id, j.causation_id, j.request_key, j.priority,
    j.one_waiting, j.one_running, j.not_before, j.expires_at
FROM "{schema}".job AS j
WHERE j.accepted_at >= transaction_timestamp() AND age(j.xmin) <= age(pg_current_xact_id_if_assigned()::xid)
  AND pg_xact_status(((pg_current_xact_id_if_assigned()::text::bigint >> 32 << 32) + j.xmin::text::bigint)::text::xid8)
      = 'in progress'
ORDER BY j.accepted_at, j.id"""

# Writers' schemas by id.
SCHEMAS = """
SELECT schema_id, schema FROM "{schema}".schema_version"""

# The transaction that a handler is lent, so that a change of it shows; drawing the id needs no row.
XID = b"SELECT pg_current_xact_id()::text"
XID_NOW = b"SELECT pg_current_xact_id_if_assigned()::text"

# The savepoint around a handler.
MARK = b"SAVEPOINT packhorse_handler"
UNDO = b"ROLLBACK TO SAVEPOINT packhorse_handler"
FORGET = b"RELEASE SAVEPOINT packhorse_handler"
