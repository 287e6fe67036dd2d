"""
Keep the counts of the quarantine short, and have contacts told of groups of failures that need a person.

That somebody was told, and the notice in the outbox, are one transaction: after a crash neither is there, and another process
tells. Two processes that find the same group race for one row; one of them tells.
"""

from packhorse.core.errors import DatabaseUnavailable, PackhorseError, SchemaNotRegistered
from packhorse.processor.noticing.deciding import Failing, is_due
from packhorse.processor.noticing.notices import notice_of
from packhorse.processor.noticing.table import STEP, NoticeTable
from packhorse.processor.plant import Plant
from packhorse.processor.running.faults import describe
from packhorse.processor.storing import postgres
from packhorse.processor.storing.transaction import transaction

EVERY = 10.0
"""Seconds between two looks."""
REST = 600.0
"""Seconds until the next look when tables or rights are missing, or something else is wrong."""
MOST_FOLDS = 20
"""Portions that one look adds to the counts."""


class Upkeep:
    """For the watchdog's thread, on its connection. What goes wrong here keeps nothing else from its turn."""

    def __init__(self, plant: Plant) -> None:
        self._plant = plant
        self._table = NoticeTable(schema=plant.store.schema, group=plant.app.group)
        self._next = plant.clock.monotonic() + EVERY
        self._lacks = ""

    def turn(self, connection: postgres.GuardedConnection) -> None:
        """
        Look if it is time.

        Raises:
            DatabaseUnavailable: The connection is lost; all is as it was.
        """
        now = self._plant.clock.monotonic()
        if now < self._next:
            return
        self._next = now + EVERY
        try:
            self.look(connection)
            self._lacks = ""
        except DatabaseUnavailable:
            raise
        except Exception as error:  # noqa: BLE001 what is wrong with counts must not end the process that carries messages
            self._next = now + REST
            cause = str(error) if isinstance(error, PackhorseError) else describe(error)
            if self._lacks != cause:
                self._plant.log.warning("quarantine is not counted, and nobody is told", cause=cause)
            self._lacks = cause

    def look(self, connection: postgres.GuardedConnection) -> int:
        """
        Add to the counts what has changed, and tell of what is due; return how many groups that were.

        Raises:
            DatabaseUnavailable, NotReady: What is due stays due.
        """
        for _ in range(MOST_FOLDS):
            if postgres.run(connection, self._table.fold()) < STEP:
                break
        found, now = postgres.run(connection, self._table.failing())
        due = [one for one in found if now is not None and is_due(one, now=now)]
        if not due:
            return 0
        namespace = postgres.run(connection, self._table.namespace())
        return sum(self._tell(connection, one, namespace) for one in due)

    def _tell(self, connection: postgres.GuardedConnection, failing: Failing, namespace: str | None) -> bool:
        plant = self._plant
        contact = plant.app.contact_of(failing.type)
        with transaction(connection):
            if not postgres.run(connection, self._table.tell(failing, contact)):
                return False
            notice = self._emit(connection, failing, namespace, contact)
        plant.log.warning(
            "messages in quarantine need a person",
            group=plant.app.group,
            topic=failing.topic,
            type=failing.type,
            reason=failing.reason,
            error=failing.site,
            messages=failing.waiting,
            contact=contact,
            notice=notice,
            next=f"packhorse quarantine group {failing.print[:8]}",
        )
        return True

    def _emit(
        self,
        connection: postgres.GuardedConnection,
        failing: Failing,
        namespace: str | None,
        contact: str | None,
    ) -> str:
        """Write the notice to the outbox in the transaction that is open; return its id, or why there is none."""
        if namespace is None:
            return "none: its schema is not registered"
        notice = notice_of(failing, namespace=namespace, group=self._plant.app.group, contact=contact)
        try:
            return str(self._plant.outbox.emit(connection, notice, key=failing.print))
        except SchemaNotRegistered as error:
            return f"none: {error}"
