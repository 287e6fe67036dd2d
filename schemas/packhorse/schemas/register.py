"""
Register a folder's schemas: first in the registry, then in the database's table. Decides through ports, does no I/O.

A crash between the two leaves an id that no table knows; running it again finds that id and writes the row.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from packhorse.core.errors import SchemaError
from packhorse.schemas.answers import Registered, RegistryReference
from packhorse.schemas.folder import Folder, Version
from packhorse.schemas.parse import parse_schema
from packhorse.schemas.redaction import personal_paths
from packhorse.schemas.text import fingerprint, wire_text


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """What the table says of one version."""

    fingerprint: str
    schema_id: int


class RegistryPort(Protocol):
    """What registering needs of a registry; see `packhorse.schemas.registry.Registry`."""

    def lookup(
        self, subject: str, text: str, references: Sequence[RegistryReference]
    ) -> Registered | None: ...

    def register(self, subject: str, text: str, references: Sequence[RegistryReference]) -> Registered: ...

    def schema_of(self, schema_id: int) -> str: ...


class TablePort(Protocol):
    """What registering needs of the table; see `packhorse.schemas.postgres.SchemaTable`."""

    def rows(self) -> Mapping[tuple[str, int], Row]: ...

    def write(self, subject: str, version: int, row: Row, text: str) -> None: ...


class Done(StrEnum):
    """What registering did with a version."""

    REGISTERED = "registered"
    RECORDED = "recorded"
    CHANGED = "changed"
    UNCHANGED = "unchanged"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """
    What was done with one version.

    Attributes:
        done: `registered`: new in the registry and the table; `recorded`: the registry had it, the table not;
            `changed`: the registry gives another id than before; `unchanged`: nothing was to do.
        note: What a person should know, or empty.
    """

    version: Version
    schema_id: int
    done: Done
    note: str = ""


def register(folder: Folder, registry: RegistryPort, table: TablePort) -> Iterator[Outcome]:
    """
    Register all versions, those first that others refer to; yield each when its row is written.

    Safe to repeat and to run by several at once: what is there already is found and left.

    Raises:
        SchemaError: A version was registered before with another text (then nothing is done at all), the registry
            refuses one, or answers with the id of another schema.
        RegistryUnavailable, DatabaseUnavailable, NotReady: As the ports say; versions yielded before are done.
    """
    rows = table.rows()
    for version in folder.versions:
        _check_unchanged(version, rows.get((version.subject, version.version)))
    places: dict[tuple[str, int], Registered] = {}
    for version in folder.in_reference_order():
        references = [
            RegistryReference(
                name=one.name, subject=one.subject, version=places[one.subject, one.version].version
            )
            for one in version.references
        ]
        found = registry.lookup(version.subject, version.own, references)
        place = found or _made(version, registry, references)
        places[version.subject, version.version] = place
        note = _checked(version, place.schema_id, registry)
        old = rows.get((version.subject, version.version))
        if old is None or old.schema_id != place.schema_id:
            row = Row(fingerprint=version.fingerprint, schema_id=place.schema_id)
            table.write(version.subject, version.version, row, version.text)
        yield _outcome(version, place.schema_id, old, note, new=found is None)


def _check_unchanged(version: Version, row: Row | None) -> None:
    if row is not None and row.fingerprint != version.fingerprint:
        raise SchemaError(
            f"{version.path}: {version.subject} v{version.version} was registered with another text, as schema "
            f"{row.schema_id}; put the file back as it was and write the change as v{version.version + 1}"
        )


def _made(version: Version, registry: RegistryPort, references: list[RegistryReference]) -> Registered:
    try:
        return registry.register(version.subject, version.own, references)
    except SchemaError as error:
        raise SchemaError(f"{version.subject} v{version.version}: {error}") from error


def _checked(version: Version, schema_id: int, registry: RegistryPort) -> str:
    """Return a note when the registry's schema says less than ours; refuse it when it would write other bytes."""
    stored = registry.schema_of(schema_id)
    if wire_text(parse_schema(stored)) != wire_text(version.schema):
        raise SchemaError(
            f"{version.subject} v{version.version}: the registry gave id {schema_id}, under which it keeps another schema; "
            "look at that subject in the registry"
        )
    if shown := sorted(set(personal_paths(version.schema)) - set(personal_paths(parse_schema(stored)))):
        raise SchemaError(
            f"{version.subject} v{version.version}: the registry gave id {schema_id}, whose text does not mark {shown[0]} as "
            "personal, so screens would show it; let the version differ in more than the mark, by a field with a default say"
        )
    if fingerprint(stored) != version.fingerprint:
        return "the registry keeps an earlier text with the same bytes; other readers see that one"
    return ""


def _outcome(version: Version, schema_id: int, old: Row | None, note: str, *, new: bool) -> Outcome:
    if old is None:
        return Outcome(
            version=version, schema_id=schema_id, done=Done.REGISTERED if new else Done.RECORDED, note=note
        )
    if old.schema_id == schema_id:
        return Outcome(version=version, schema_id=schema_id, done=Done.UNCHANGED, note=note)
    told = f"was {old.schema_id}: messages that were written with it need the old registry to be read; start writers anew, they remember ids"
    return Outcome(
        version=version, schema_id=schema_id, done=Done.CHANGED, note="; ".join(filter(None, (told, note)))
    )
