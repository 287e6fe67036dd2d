"""Retention's SQL. What changes partitions is a function of migration 0003; it decides under its own locks."""

FACTS = """
SELECT (clock_timestamp() AT TIME ZONE 'UTC')::date, p.name, p.day, p.bytes FROM "{schema}".day_partitions() AS p
"""

SESSION = "SET default_transaction_isolation = 'read committed'"
"""The functions need each statement's own snapshot. Without a pooler this lasts; behind one they refuse another level."""

MAKE = """
SELECT jsonb_build_object('outcome', "{schema}".make_day_partition(%(day)s::date, %(patience)s::int))
"""

EMPTY = """
SELECT "{schema}".empty_partition(%(name)s::text, %(keep)s::date, %(patience)s::int, %(act)s::boolean)
"""

DROP = """
SELECT "{schema}".drop_partition(%(name)s::text, %(keep)s::date, %(patience)s::int)
"""

RECORD = """
WITH alone AS (SELECT set_config('synchronous_commit', 'local', true))
UPDATE "{schema}".retention SET ran_at = clock_timestamp(), ran_by = %(by)s, keep_days = %(keep_days)s,
    overdue = %(overdue)s::jsonb
  FROM alone
"""
"""Like the functions it does not wait for a standby; a line that a failover forgets is written at the next run."""

LAST = """
SELECT r.ran_at, r.ran_by, r.keep_days, r.overdue FROM "{schema}".retention AS r
"""
