"""A person's pause or resume, carried out: one transaction with its audit row."""

from packhorse.core.acts import Actor, checked_why
from packhorse.core.errors import UsageError
from packhorse.core.partitions import partition_of
from packhorse.core.users import system_user
from packhorse.processor.kafka.admin import BrokerQuestions
from packhorse.processor.pausing.pauses import PausedKey, Pauses, Scope
from packhorse.processor.pausing.table import PauseTable
from packhorse.processor.storing import postgres
from packhorse.processor.storing.steps import Steps

COMMIT = b"COMMIT"
ROLLBACK = b"ROLLBACK"


class Pausing:
    """The pauses of one group, for a person; one connection."""

    def __init__(self, connection: postgres.GuardedConnection, table: PauseTable) -> None:
        self._connection = connection
        self._table = table

    def pause(
        self, scope: Scope, *, why: str, broker: BrokerQuestions | None, claimed: str | None = None
    ) -> bool:
        """
        Pause *scope* and put it on record, both or neither; return False when it was paused already.

        Members of the group follow within about a second: what runs ends, nothing new begins. A key needs *broker*, which
        says how many partitions its topic has.

        Raises:
            UsageError: *why* is empty, or the key is named by its hash and not parked.
            NotReady, BrokerUnavailable, DatabaseUnavailable: Nothing was done.
        """
        why = checked_why(why)
        if scope.key_hash is not None:
            raise UsageError("a key is paused by --key; --key-hash names one that is paused already")
        at = -1
        if scope.key is not None and scope.topic is not None and broker is not None:
            at = partition_of(scope.key, broker.describe([scope.topic])[scope.topic][1])
        actor = self._actor(claimed)
        return self._once(self._table.pause(scope, key_partition=at, actor=actor, why=why))

    def resume(self, scope: Scope, *, why: str, claimed: str | None = None) -> bool:
        """Let *scope* go on and put it on record, both or neither; return False when it was not paused."""
        why = checked_why(why)
        return self._once(self._table.resume(scope, actor=self._actor(claimed), why=why))

    def paused(self) -> tuple[Pauses, list[PausedKey]]:
        """Return what is paused."""
        pauses = postgres.run(self._connection, self._table.pauses())
        return pauses, postgres.run(self._connection, self._table.paused_keys())

    def _actor(self, claimed: str | None) -> Actor:
        role = postgres.run(self._connection, self._table.role())
        return Actor(user=system_user(), role=role, claimed=claimed)

    def _once(self, steps: Steps[bool]) -> bool:
        postgres.begin(self._connection)
        try:
            done = postgres.run(self._connection, steps)
            postgres.command(self._connection, COMMIT)
        except BaseException:
            postgres.command(self._connection, ROLLBACK)
            raise
        return done
