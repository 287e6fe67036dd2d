"""Erase what is kept of a person: in portions, each on the record; again from the beginning after a crash, with the same end."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Protocol
from uuid import UUID

from packhorse.console.acting.person import Person
from packhorse.console.purging.fields import has_value, paths_of, tagged_by
from packhorse.console.purging.model import (
    Erased,
    Found,
    Left,
    Place,
    Report,
    Schemas,
    Table,
    Tally,
    Wanted,
    batches,
    stays_of,
)
from packhorse.core.acts import checked_why
from packhorse.core.clock import SYSTEM_CHANCE, Chance
from packhorse.core.errors import InfrastructureError, MessageFault, PackhorseError, UnknownSchema, UsageError
from packhorse.processor.erasing import Eraser
from packhorse.schemas.decode import Decoder
from packhorse.schemas.framing import split

BATCH = 200
"""Messages that one transaction erases."""
Heard = Callable[[str], None]
"""Takes a line on how far it is; it names nobody."""
Erasers = Sequence[tuple[str, Eraser]]
"""What applications have declared, by name."""


class EraserFailed(PackhorseError):
    """Name the application's eraser that raised, with class and place; what was erased before it stays so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """A purge that a person ordered: what is to go, why, and what names its run."""

    run: UUID
    wanted: Wanted
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Portion:
    """
    Some messages, each with its payload where it has to be decoded, and behind what the next portion begins; None: none follows.

    Attributes:
        unknown: How many others there are by the id of their schema, which this database does not know.
    """

    found: tuple[tuple[Found, bytes | None], ...] = field(repr=False)
    unknown: Mapping[int | None, int] = field(default_factory=dict)
    next: Any


class PurgeSource(Protocol):
    """Find and erase in one database; promises and raises what `PurgeTables` does."""

    def schemas(self, person: Person) -> dict[int, str]:
        """Return all registered schemas by id."""

    def portion(
        self, person: Person, table: Table, wanted: Wanted, *, schemas: Schemas | None, after: Any
    ) -> Portion:
        """Return the next messages of the subject in *table*, behind *after*."""

    def staying(self, person: Person, ids: Sequence[UUID], *, unpublished: bool) -> list[Left]:
        """Return which rows of the outbox a purge would leave now, and why."""

    def running(self, person: Person, ids: Sequence[UUID]) -> list[Left]:
        """Return which jobs run now: a purge would ask them to stop, and leave them."""

    def begin(self, person: Person, order: Order) -> str:
        """Put on the record that a purge begins, and return what stands for its subject there."""

    def erase(self, person: Person, order: Order, mark: str, table: Table, found: Sequence[Found]) -> Erased:
        """Erase *found* of *table*, on the record, all of it or nothing."""

    def traces(self, person: Person, order: Order, mark: str) -> Erased:
        """Erase the key where it is named beside messages."""

    def application(self, person: Person, order: Order, mark: str, name: str, eraser: Eraser) -> Erased:
        """Let an application erase what it has, on the record, all of it or nothing."""

    def end(
        self, person: Person, order: Order, mark: str, *, counts: Mapping[str, int], left: int, unread: int
    ) -> tuple[list[Place], int]:
        """Put on the record that it is through; return where its records lay, and how many parked keys there are."""

    def sources(self, person: Person, topic: str | None) -> list[str]:
        """Return the source topics that groups read here."""


class PurgeQuestions(Protocol):
    """Ask the broker. Raises BrokerUnavailable, or NotReady without the right."""

    def partitions(self, topic: str) -> int | None:
        """Return how many partitions *topic* has; None: it does not exist."""


class Purging:
    """
    The erasure of one database, for one person.

    Args:
        broker: Says how many partitions topics have; None: no broker is set.
    """

    def __init__(
        self,
        tables: PurgeSource,
        person: Person,
        *,
        broker: PurgeQuestions | None = None,
        chance: Chance = SYSTEM_CHANCE,
    ) -> None:
        self._tables = tables
        self._person = person
        self._broker = broker
        self._chance = chance

    def preview(self, wanted: Wanted) -> Report:
        """
        Count what there is of the subject, table by table, and name the rows of the outbox that would be left; changes nothing.

        Raises:
            UsageError: No schema marks the field personal.
            Forbidden: The person may not purge.
        """
        tally = Tally()
        look = self._look(wanted, tally)
        for table in wanted.tables:
            for found in look.through(table):
                tally.counts[table.value] += len(found)
                ids = [one.id for one in found]
                if table is Table.OUTBOX:
                    tally.left += self._tables.staying(self._person, ids, unpublished=wanted.unpublished)
                elif table is Table.JOB:
                    tally.left += self._tables.running(self._person, ids)
        return Report(
            run=None,
            counts=dict(tally.counts),
            left=tuple(tally.left),
            stays=stays_of(wanted.subject, self._sources(wanted), ()),
            unreadable=tally.unreadable,
            unknown=tally.unknowns(),
        )

    def purge(
        self, wanted: Wanted, *, why: str, erasers: Erasers = (), heard: Heard = lambda _: None
    ) -> Report:
        """
        Erase what is kept of the subject, in transactions of at most BATCH messages, each with its row in the audit.

        A purge that was broken off is run again: what is gone is gone, and its counts stand under the earlier run.

        Raises:
            UsageError: *why* is empty, or no schema marks the field personal.
            Forbidden: The person may not purge, by now.
            EraserFailed: An application's eraser raised; all before it is done.
        """
        order = Order(run=self._chance.token(), wanted=wanted, why=checked_why(why))
        tally = Tally()
        look = self._look(wanted, tally)
        mark = self._tables.begin(self._person, order)
        for table in wanted.tables:
            done = 0
            for found in look.through(table):
                for some in batches(found, BATCH):
                    tally.add(self._tables.erase(self._person, order, mark, table, some))
                    done += len(some)
                    heard(f"{table.value}: {done}")
        tally.add(self._tables.traces(self._person, order, mark))
        for name, eraser in erasers:
            tally.add(self._tables.application(self._person, order, mark, name, eraser))
            heard(f"{name}: done")
        counts = dict(tally.counts)
        places, keys = self._tables.end(
            self._person, order, mark, counts=counts, left=len(tally.left), unread=tally.unread
        )
        return Report(
            run=order.run,
            counts=counts,
            left=tuple(tally.left),
            keys=keys,
            stays=stays_of(wanted.subject, self._sources(wanted), places),
            unreadable=tally.unreadable,
            unknown=tally.unknowns(),
        )

    def _look(self, wanted: Wanted, tally: Tally) -> "_Look":
        path = wanted.subject.path
        if path is None and Table.JOB not in wanted.tables:
            return _Look(tables=self._tables, person=self._person, wanted=wanted, tally=tally)
        texts = self._tables.schemas(self._person)
        personal = {number: paths for number, text in texts.items() if (paths := paths_of(text))}
        known = tuple(sorted(texts))
        return _Look(
            tables=self._tables,
            person=self._person,
            wanted=wanted,
            tally=tally,
            schemas=None if path is None else Schemas(having=tagged_by(texts, path), known=known),
            personal=Schemas(having=tuple(sorted(personal)), known=known),
            paths=personal,
            decoder=Decoder(_Registered(texts)),
        )

    def _sources(self, wanted: Wanted) -> dict[str, int | None]:
        """Return the source topics, and how many partitions each has as far as that matters and a broker says so."""
        found: dict[str, int | None] = dict.fromkeys(self._tables.sources(self._person, wanted.topic))
        if wanted.topic is not None:
            found.setdefault(wanted.topic, None)
        if self._broker is None or wanted.subject.path is not None:
            return found
        with suppress(InfrastructureError, UsageError):  # the report then names no partition
            for topic in found:
                found[topic] = self._broker.partitions(topic)
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class _Look:
    """
    A walk through the tables; where the subject is a field's value, payloads are decoded to find it.

    A job's message has no key: by a key it is the subject's if any personal field of its input is that text.

    Attributes:
        personal: Schemas with any personal field.
        paths: The personal fields of each of them.
    """

    tables: PurgeSource
    person: Person
    wanted: Wanted
    tally: Tally
    schemas: Schemas | None = None
    personal: Schemas | None = None
    paths: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    decoder: Decoder | None = None

    def through(self, table: Table) -> Iterator[list[Found]]:
        """Yield the messages of the subject in *table*, portion by portion."""
        by_key = self.wanted.subject.path is None
        schemas = self.personal if by_key and table is Table.JOB else self.schemas
        after: Any = None
        while True:
            portion = self.tables.portion(self.person, table, self.wanted, schemas=schemas, after=after)
            self.tally.unknown.update({(table, at): count for at, count in portion.unknown.items()})
            if found := [
                one
                for one, payload in portion.found
                if schemas is None or one.named or self._is_theirs(payload)
            ]:
                yield found
            if portion.next is None:
                return
            after = portion.next

    def _is_theirs(self, payload: bytes | None) -> bool:
        subject = self.wanted.subject
        wanted = subject.key if subject.path is None else subject.value
        assert self.decoder is not None
        if payload is None or wanted is None:
            return False
        try:
            value = self.decoder.plain(payload).value
        except MessageFault:
            self.tally.unreadable += 1
            return False
        paths = self.paths.get(split(payload)[0], ()) if subject.path is None else (subject.path,)
        return any(has_value(value, path, wanted) for path in paths)


class _Registered:
    """Schemas that the table of this database knows."""

    def __init__(self, schemas: Mapping[int, str]) -> None:
        self._schemas = schemas

    def schema_of(self, schema_id: int) -> str:
        """Return the schema with the id; raises UnknownSchema."""
        if schema_id not in self._schemas:
            raise UnknownSchema(f"schema id {schema_id} is not registered in this database")
        return self._schemas[schema_id]
