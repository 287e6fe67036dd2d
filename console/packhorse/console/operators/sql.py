"""Who has which rights. `{schema}` is the database schema of Packhorse's tables."""

_OPERATOR = """
SELECT o.kind, o.name, o.role, o.personal, o.edit, o.made_at, o.made_by, o.expires_at,
       coalesce(o.expires_at <= clock_timestamp(), false) AS expired,
       o.kind = 'role' AND NOT EXISTS (SELECT FROM pg_roles AS r WHERE r.rolname = o.name) AS gone
FROM {schema}.operator AS o
"""

ALL = _OPERATOR + "ORDER BY o.kind, o.name"
"""All who have rights."""

ONE = _OPERATOR + "WHERE o.kind = %(kind)s AND o.name = %(name)s FOR UPDATE OF o"
"""One of them, locked until the transaction ends."""

MINE = (
    _OPERATOR
    + """
WHERE CASE WHEN %(kind)s <> 'role' THEN o.kind = %(kind)s AND o.name = %(name)s
           ELSE o.kind = 'role' AND EXISTS (SELECT FROM pg_roles AS r
                WHERE r.rolname = o.name AND pg_has_role(session_user, r.oid, 'USAGE')) END
ORDER BY o.name
"""
)
"""What gives rights to a user or the holder of a token, or to the role that is connected: itself and those that it is a member of."""

OWNER = """
SELECT pg_has_role(session_user, c.relowner, 'USAGE') AS owns
FROM pg_class AS c WHERE c.oid = '{schema}.operator'::regclass
"""
"""Whether the role that is connected owns the tables."""

ROLE = """
SELECT has_schema_privilege(r.oid, '{schema}'::regnamespace, 'USAGE')
       AND has_table_privilege(r.oid, '{schema}.audit'::regclass, 'SELECT')
       AND has_column_privilege(r.oid, '{schema}.audit'::regclass, 'actor', 'INSERT') AS may_connect
FROM pg_roles AS r WHERE r.rolname = %(name)s
"""
"""Whether a role is there, and whether it may look at and write what every act needs."""

PUT = """
INSERT INTO {schema}.operator AS o (kind, name, role, personal, edit, token_hash, made_by, expires_at)
VALUES (%(kind)s, %(name)s, %(role)s, %(personal)s, %(edit)s, %(token)s, %(by)s,
        clock_timestamp() + %(lasts)s::float8 * interval '1 second')
ON CONFLICT (kind, name) DO UPDATE
SET role = EXCLUDED.role, personal = EXCLUDED.personal, edit = EXCLUDED.edit, expires_at = EXCLUDED.expires_at,
    token_hash = EXCLUDED.token_hash
"""
"""Give rights, instead of those that were there."""

REMOVE = """
DELETE FROM {schema}.operator AS o WHERE o.kind = %(kind)s AND o.name = %(name)s
"""
"""Take all rights away."""

OTHER_ADMINS = """
SELECT count(*) FILTER (WHERE o.kind <> 'user') AS others, count(*) FILTER (WHERE o.kind = 'user') AS users
FROM {schema}.operator AS o
WHERE o.role = 'admin' AND (o.kind, o.name) <> (%(kind)s, %(name)s)
  AND (o.expires_at IS NULL OR o.expires_at > clock_timestamp())
  AND (o.kind <> 'role' OR EXISTS (SELECT FROM pg_roles AS r WHERE r.rolname = o.name))
"""
"""How many admins there are besides one: by a role or a token, and users, of whom nobody knows here whether a proxy lets them in."""
