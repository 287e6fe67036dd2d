"""The statements of the test helpers; `{schema}` is a checked identifier."""

# Fills in for the registry; keeps what is there.
REGISTER = """
INSERT INTO "{schema}".schema_version (subject, version, fingerprint, schema_id, schema)
VALUES (%s, %s, %s, %s, %s) ON CONFLICT (subject, version) DO NOTHING"""

# What the transaction of this connection has written so far, savepoints included.
EMITTED = """
SELECT o.id, o.aggregatetype, o.aggregateid, o.type, o.schema_version, o.payload, o.traceparent, o.correlation_id,
    o.causation_id, o.origin, o.actor, o.tenant, o.expires_at, o.headers::text
FROM "{schema}".outbox AS o
WHERE o.xid = pg_current_xact_id_if_assigned()
ORDER BY o.seq"""

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
