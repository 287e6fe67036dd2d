"""SQL of what a relay needs before it starts. `{schema}` is the database schema."""

NEEDS = """
SELECT w.kind, w.name, c.oid IS NOT NULL, w.privilege,
    coalesce(has_schema_privilege(n.oid, 'USAGE') AND has_table_privilege(c.oid, w.privilege), false)
  FROM (VALUES ('table', 'outbox', 'SELECT'), ('table', 'relay', 'SELECT'), ('table', 'relay', 'UPDATE'),
    ('table', 'relay_hold', 'SELECT'), ('table', 'relay_hold', 'INSERT'), ('table', 'relay_hold', 'UPDATE'),
    ('table', 'relay_member', 'SELECT'), ('table', 'relay_member', 'INSERT'), ('table', 'relay_member', 'UPDATE'),
    ('table', 'relay_member', 'DELETE'), ('table', 'relay_discard', 'SELECT'), ('table', 'schema_version', 'SELECT'),
    ('table', 'retention', 'SELECT'), ('table', 'retention', 'UPDATE'), ('sequence', 'outbox_seq_seq', 'SELECT')) AS w (kind, name, privilege)
  LEFT JOIN pg_namespace AS n ON n.nspname = '{schema}'
  LEFT JOIN pg_class AS c ON c.relnamespace = n.oid AND c.relname = w.name
UNION ALL
SELECT 'function', w.name, p.oid IS NOT NULL, 'EXECUTE',
    coalesce(has_schema_privilege(n.oid, 'USAGE') AND has_function_privilege(p.oid, 'EXECUTE'), false)
  FROM (VALUES ('day_partitions'), ('make_day_partition'), ('empty_partition'), ('drop_partition')) AS w (name)
  LEFT JOIN pg_namespace AS n ON n.nspname = '{schema}'
  LEFT JOIN pg_proc AS p ON p.pronamespace = n.oid AND p.proname = w.name
"""
"""What there is and what this role may, without an error when something is missing; no more than the grants for a relay give."""

CACHE = """
SELECT s.seqcache FROM pg_sequence AS s
  JOIN pg_depend AS d ON d.objid = s.seqrelid AND d.deptype = 'i'
  JOIN pg_class AS o ON o.oid = d.refobjid AND o.relname = 'outbox'
  JOIN pg_namespace AS n ON n.oid = o.relnamespace AND n.nspname = '{schema}'
"""
"""How many values of seq a session draws at once."""
