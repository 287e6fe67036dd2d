"""What a person may ask of the relay, looked up in the transaction of the act."""

from typing import Any

import psycopg

from packhorse.core.person import Person
from packhorse.core.rights import Right, standing_of
from packhorse.producer.standing import STANDING


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
        Forbidden: The right is missing.
        NotSignedIn: The token is unknown or expired.
    """
    text = STANDING.replace("{schema}", f'"{schema}"')
    row = connection.execute(text.encode(), {"token": person.token_hash, "hold": hold}).fetchone()
    assert row is not None
    standing = standing_of((row[0], row[1], row[2], row[3], row[4]), by_token=person.token_hash is not None)
    standing.check(right, doing=doing)
    return person.actor(standing)
