"""Pauses of groups, topics, partitions and keys: ordered by people with the right, on the record."""

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Protocol

from packhorse.console.acting.person import Person
from packhorse.console.pausing.known import Known, no_group, unknown
from packhorse.core.acts import checked_why
from packhorse.core.errors import SettingsError, UnknownId, UsageError
from packhorse.core.partitions import partition_of
from packhorse.processor.pausing.pauses import Pause, PausedKey, Scope


@dataclass(frozen=True, slots=True, kw_only=True)
class Paused:
    """What is paused in a group."""

    pauses: tuple[Pause, ...]
    keys: tuple[PausedKey, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Resumed:
    """
    What a resume did.

    Attributes:
        done: False: just that was not paused, and nothing was done.
        left: Pauses that hold it, or a part of it, all the same.
    """

    done: bool
    left: tuple[Pause, ...]


class PausingSource(Protocol):
    """Read and change what is paused; promises and raises what `PausingTables` does."""

    def known(self, person: Person, group: str, *, places: bool = True) -> Known:
        """Return what the tables know of *group*."""

    def paused(self, person: Person, group: str) -> Paused:
        """Return what is paused in *group*."""

    def groups(self, person: Person) -> list[str]:
        """Return the groups in which something is paused, by name."""

    def pause(self, person: Person, group: str, scope: Scope, *, key_partition: int, why: str) -> bool:
        """Pause *scope* on the record; return False when it was paused already."""

    def resume(
        self, person: Person, group: str, scope: Scope, *, why: str, since: datetime | None = None
    ) -> Resumed:
        """Let *scope* go on, on the record; with *since*, only if it is that pause."""


class PausingQuestions(Protocol):
    """Ask the broker. Raises BrokerUnavailable, or NotReady without the right."""

    def knows(self, group: str) -> bool:
        """Return whether the broker has *group*."""

    def partitions(self, topic: str) -> int | None:
        """Return how many partitions *topic* has; None: it does not exist."""


class Pausing:
    """
    The pauses of one database, for one person.

    Args:
        broker: Asked about what the tables do not know, and about a key's partition; None: no broker is set.
    """

    def __init__(
        self, tables: PausingSource, person: Person, *, broker: PausingQuestions | None = None
    ) -> None:
        self._tables = tables
        self._person = person
        self._broker = broker

    def knows(self, group: str) -> bool:
        """Return whether processes, watermarks or messages of *group* are known in this database."""
        return self._tables.known(self._person, group, places=False).group

    def paused(self, group: str) -> Paused:
        """
        Return what is paused in *group*.

        Raises:
            UnknownId: Nothing is, and nothing is known of the group.
        """
        found = self._tables.paused(self._person, group)
        if not found.pauses and not found.keys and not self.knows(group):
            raise UnknownId(f"{no_group(group)}; `packhorse doctor` names the groups")
        return found

    def everywhere(self) -> dict[str, Paused]:
        """Return what is paused, by group; groups in which nothing is are left out."""
        return {
            group: self._tables.paused(self._person, group) for group in self._tables.groups(self._person)
        }

    def pause(self, group: str, scope: Scope, *, why: str, anyway: bool = False) -> bool:
        """
        Pause *scope* and put it on record, both or neither; return False when it was paused already.

        Members of the group follow within about a second: what runs ends, nothing new begins. *anyway* pauses what nothing
        is known of, ahead of its first start.

        Raises:
            UsageError: *why* is empty, or the key is named by its hash and not by itself.
            SettingsError: It is a key, whose partition only a broker tells, and none is set.
            UnknownId: There is no such group, topic or partition.
            Forbidden, NotReady, BrokerUnavailable, DatabaseUnavailable: Nothing was done.
        """
        why = checked_why(why)
        if scope.key_hash is not None:
            raise UsageError("a key is paused by --key; --key-hash names one that is paused already")
        if not anyway:
            self.check(group, scope)
        at = self._partition(scope)
        return self._tables.pause(self._person, group, scope, key_partition=at, why=why)

    def check(self, group: str, scope: Scope) -> None:
        """
        Check that there is what a pause of *scope* would hold.

        Raises:
            UnknownId: There is no such group, topic or partition.
            NotReady, BrokerUnavailable, DatabaseUnavailable: That can't be asked.
        """
        if (refusal := unknown(group, scope, self._known(group, scope))) is not None:
            raise refusal

    def resume(self, group: str, scope: Scope, *, why: str, since: datetime | None = None) -> Resumed:
        """
        Let *scope* go on and put it on record, both or neither; with *since*, only what was paused then.

        Raises:
            UsageError: *why* is empty.
            OwnershipLost: It was resumed meanwhile, and somebody has paused it anew; nothing was done.
            Forbidden, NotReady, DatabaseUnavailable: Nothing was done.
        """
        return self._tables.resume(self._person, group, scope, why=checked_why(why), since=since)

    def _known(self, group: str, scope: Scope) -> Known:
        """Return what tables and broker know; the broker is asked only where the tables would refuse."""
        known = self._tables.known(self._person, group)
        if self._broker is None or unknown(group, scope, known) is None:
            return known
        count = None if scope.topic is None else self._broker.partitions(scope.topic)
        counts = {} if count is None or scope.topic is None else {scope.topic: count}
        return replace(known, group=known.group or self._broker.knows(group), counts=counts)

    def _partition(self, scope: Scope) -> int:
        if scope.key is None or scope.topic is None:
            return -1
        if self._broker is None:
            raise SettingsError(
                "the partition of a key is asked of the broker: set PACKHORSE_KAFKA_BOOTSTRAP_SERVERS, or pause the partition"
            )
        if (count := self._broker.partitions(scope.topic)) is None:
            raise UnknownId(f"topic {scope.topic} does not exist; nothing was done")
        return partition_of(scope.key, count)
