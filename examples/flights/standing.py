"""How far the demo is, read from the database: facts, never guesses from the clock."""

from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg.rows import class_row

from examples.flights import sql


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """
    Messages by how far they came.

    Attributes:
        published: Rows that the broker confirmed; those that a killed relay sent twice count twice.
        done: Messages whose figures are counted.
        waiting: Messages that failed and will be tried again.
        duplicates: Deliveries that found their message done.
        failed_attempts: Runs of a handler that failed.
        uncopied: Messages in quarantine whose copy the broker has not confirmed.
    """

    published: int = 0
    done: int = 0
    waiting: int = 0
    quarantined: int = 0
    duplicates: int = 0
    failed_attempts: int = 0
    uncopied: int = 0

    @property
    def finished(self) -> int:
        """Return how many messages need nothing more from a machine."""
        return self.done + self.quarantined - self.uncopied


def read_standing(connection: psycopg.Connection[Any]) -> Standing:
    """Return how far it is now."""
    with connection.cursor(row_factory=class_row(Standing)) as cursor:
        return cursor.execute(sql.STANDING).fetchone() or Standing()
