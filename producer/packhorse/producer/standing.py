"""The one question that every act asks in its transaction: what may this person do?"""

STANDING = """
SELECT name, role, personal, edit, expired FROM {schema}.operator_standing(%(token)s::bytea, %(hold)s)
"""
"""
What a person may do, for `packhorse.core.rights.standing_of`; `{schema}` is the quoted database schema.

`token` is the hash of a token, or null for the role that is connected. With `hold` the rows of the right stay locked until the
transaction ends, so that it can't be withdrawn beneath an act.
"""
