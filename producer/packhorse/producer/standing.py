"""The one question that every act asks in its transaction: what may this person do?"""

from typing import Any

from packhorse.core.person import Person

STANDING = """
SELECT name, role, personal, edit, expired FROM {schema}.operator_standing(%(token)s::bytea, %(hold)s)
"""
"""
What a person may do, for `packhorse.core.rights.standing_of`; `{schema}` is the quoted database schema.

`token` is the hash of a token, or null for the role that is connected. With `hold` the rows of the right stay locked until the
transaction ends, so that it can't be withdrawn beneath an act.
"""

USER_STANDING = """
SELECT name, role, personal, edit, expired FROM {schema}.user_standing(%(user)s::text, %(hold)s)
"""
"""The same for a user, by the name under which a trusted proxy has signed them in."""


def question_of(person: Person, *, hold: bool) -> tuple[str, dict[str, Any]]:
    """Return the statement that says what *person* may do, and its values."""
    if person.signed_in is not None:
        return USER_STANDING, {"user": person.signed_in, "hold": hold}
    return STANDING, {"token": person.token_hash, "hold": hold}
