"""A group's processors, played in SQL on real tables, and a runner of redrives that a test moves by hand."""

from typing import Any
from uuid import UUID

import psycopg

from packhorse.console.acting.postgres import Database
from packhorse.console.redriving.shell import RedriveShell
from packhorse.console.running.postgres import Leases
from packhorse.console.running.sql import REDRIVES


class Group:
    """A group's processors, played in SQL: what is ordered gets an outcome, what is parked is drained in order."""

    def __init__(self, connection: psycopg.Connection[Any], *, broken: bool = False) -> None:
        self._connection = connection
        self.broken = broken
        self.ran: list[UUID] = []

    def run(self) -> int:
        """Run what is due, then what waits behind heads that are finished; return how many that were."""
        rows = self._connection.execute(
            "UPDATE packhorse.inbox SET outcome = %s, due_at = NULL, reason = %s WHERE outcome = 'retry'"
            " RETURNING message_id, group_id, topic",
            self._outcome(),
        ).fetchall()
        self.ran += [row[0] for row in sorted(rows)]
        self._stop(rows)
        return len(rows) + self._drain()

    def _outcome(self) -> tuple[str, str | None]:
        return ("quarantine", "attempts-exhausted") if self.broken else ("done", None)

    def _stop(self, rows: list[Any]) -> None:
        if self.broken:
            self._connection.execute(
                "UPDATE packhorse.quarantined_message SET state = 'quarantined', quarantined_at = clock_timestamp()"
                " WHERE message_id = ANY(%s)",
                ([row[0] for row in rows],),
            )

    def _drain(self) -> int:
        rows = self._connection.execute(
            "SELECT m.message_id, m.group_id, m.topic FROM packhorse.parked_message m JOIN packhorse.parked_key k"
            " USING (group_id, topic, key_hash) LEFT JOIN packhorse.inbox h ON h.message_id = k.head_id"
            " AND h.group_id = k.group_id AND h.topic = k.topic"
            " WHERE h.outcome IS DISTINCT FROM 'quarantine' AND h.outcome IS DISTINCT FROM 'retry'"
            ' ORDER BY m.key_hash, m.topic_age, m."offset"'
        ).fetchall()
        for row in rows:
            self.ran.append(row[0])
            self._connection.execute(
                "UPDATE packhorse.inbox SET outcome = %s, reason = %s WHERE message_id = %s",
                (*self._outcome(), row[0]),
            )
            self._connection.execute("DELETE FROM packhorse.parked_message WHERE message_id = %s", row[:1])
        self._stop(rows)
        return len(rows)


def shell_of(database: Database, redrive_id: int, **more: Any) -> RedriveShell:
    leases = Leases(database, REDRIVES)
    lease = leases.take(redrive_id, "a runner")
    assert lease is not None
    return RedriveShell(database, leases, lease, **more)
