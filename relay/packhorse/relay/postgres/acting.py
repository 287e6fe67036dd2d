"""What a person may ask of the relay, looked up in the transaction of the act."""

from typing import Any

import psycopg

from packhorse.core.person import Person
from packhorse.core.rights import Right, standing_of
from packhorse.producer.standing import question_of


def allowed(
    connection: psycopg.Connection[tuple[Any, ...]],
    schema: str,
    person: Person,
    right: Right,
    *,
    doing: str,
    hold: bool = True,
) -> str:
    """
    Check that *person* may do what *doing* says, which needs *right*, and return who acts, as the audit shows it.

    With *hold* the right stays locked until the transaction ends, so that it can't be withdrawn beneath the act; the lock draws a
    transaction id.

    Raises:
        Forbidden: The right is missing, or a user has none at all.
        NotSignedIn: The token is unknown or expired.
    """
    statement, values = question_of(person, hold=hold)
    row = connection.execute(statement.replace("{schema}", f'"{schema}"').encode(), values).fetchone()
    assert row is not None
    found = (row[0], row[1], row[2], row[3], row[4])
    standing = standing_of(found, by_token=person.token_hash is not None, signed_in=person.signed_in)
    standing.check(right, doing=doing)
    return person.actor(standing)
