"""A registry and a table in memory, for deciding what registering does."""

import json
from collections.abc import Callable, Sequence

from packhorse.core.errors import SchemaError, UnknownSchema
from packhorse.schemas.answers import Registered, RegistryReference
from packhorse.schemas.parse import parse_schema
from packhorse.schemas.register import Row
from packhorse.schemas.text import resolved_text, wire_text
from packhorse.schemas.tree import Schema

Stored = tuple[str, tuple[RegistryReference, ...]]


class MemoryRegistry:
    """
    A registry in memory; ids begin at *first_id*, versions of a subject count from 1.

    Attributes:
        calls: Every change that was asked for.
        lenient: True makes it answer with the old id for a schema that writes the same bytes, as some registries do.
        before_answer: Called after a schema was stored; what it raises is what the caller sees.
    """

    def __init__(self, *, first_id: int = 101, lenient: bool = False) -> None:
        self.subjects: dict[str, list[tuple[Stored, int]]] = {}
        self.ids: dict[int, str] = {}
        self.calls: list[str] = []
        self.lenient = lenient
        self.before_answer: Callable[[], None] = lambda: None
        self._next = first_id

    def lookup(self, subject: str, text: str, references: Sequence[RegistryReference]) -> Registered | None:
        wanted = self._stored(text, references)
        for version, (stored, schema_id) in enumerate(self.subjects.get(subject, []), start=1):
            same_bytes = self.lenient and self._wire(stored) == self._wire(wanted)
            if stored == wanted or same_bytes:
                return Registered(schema_id=schema_id, version=version)
        return None

    def register(self, subject: str, text: str, references: Sequence[RegistryReference]) -> Registered:
        self.calls.append(subject)
        if (found := self.lookup(subject, text, references)) is None:
            stored = self._stored(text, references)
            self.ids[self._next] = resolved_text(self._schema(stored))
            self.subjects.setdefault(subject, []).append((stored, self._next))
            found = Registered(schema_id=self._next, version=len(self.subjects[subject]))
            self._next += 1
        self.before_answer()
        return found

    def schema_of(self, schema_id: int) -> str:
        if schema_id not in self.ids:
            raise UnknownSchema(f"schema {schema_id}")
        return self.ids[schema_id]

    def _stored(self, text: str, references: Sequence[RegistryReference]) -> Stored:
        return json.dumps(json.loads(text)), tuple(references)

    def _wire(self, stored: Stored) -> str:
        return wire_text(self._schema(stored))

    def _schema(self, stored: Stored) -> Schema:
        text, references = stored
        parts = [self._schema(self.subjects[one.subject][one.version - 1][0]) for one in references]
        return parse_schema(
            text, find=lambda name: next((part for part in parts if name in part.names), None)
        )


class MemoryTable:
    """The table `schema_version` in memory."""

    def __init__(self) -> None:
        self.kept: dict[tuple[str, int], Row] = {}
        self.writes: list[tuple[str, int]] = []

    def rows(self) -> dict[tuple[str, int], Row]:
        return dict(self.kept)

    def write(self, subject: str, version: int, row: Row, text: str) -> None:
        old = self.kept.get((subject, version))
        if old is not None and old.fingerprint != row.fingerprint:
            raise SchemaError(f"{subject} v{version} was registered with another text")
        assert text
        self.writes.append((subject, version))
        self.kept[subject, version] = row
