"""How far the demo is, read from the database: facts, never guesses from the clock."""

from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg.rows import dict_row

from examples.flights import sql
from packhorse.core.clock import SYSTEM_CLOCK, Clock


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """
    Messages by how far they came.

    Attributes:
        published: Rows that the broker confirmed, as the relay last saved it.
        done: Messages whose figures are counted.
        waiting: Messages that failed and wait in a tier to be tried again.
        behind: Messages that wait behind one of their aircraft.
        duplicates: Deliveries that found their message done.
        failed_attempts: Runs of a handler that failed.
        uncopied: Messages in quarantine whose copy the broker has not confirmed.
    """

    published: int = 0
    done: int = 0
    waiting: int = 0
    behind: int = 0
    quarantined: int = 0
    duplicates: int = 0
    failed_attempts: int = 0
    uncopied: int = 0

    @property
    def finished(self) -> int:
        """Return how many messages need nothing more from a machine."""
        return self.done + self.quarantined - self.uncopied


class Lookout:
    """Tell how far it is; of its time, a tenth at most goes into counting what is done."""

    def __init__(self, connection: psycopg.Connection[Any], clock: Clock = SYSTEM_CLOCK) -> None:
        self._connection = connection
        self._clock = clock
        self._counted: dict[str, Any] = {}
        self._count_at = float("-inf")

    def look(self) -> Standing:
        """Return how far it is now; `done` and `duplicates` may be as they were some moments ago."""
        with self._connection.cursor(row_factory=dict_row) as cursor:
            found = cursor.execute(sql.OPEN).fetchone() or {}
            if (began := self._clock.monotonic()) >= self._count_at:
                self._counted = cursor.execute(sql.DONE).fetchone() or {}
                self._count_at = began + 10 * (self._clock.monotonic() - began)
        return Standing(**found, **self._counted)
