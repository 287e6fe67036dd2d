"""
Load a folder of schemas: `<subject>/v<N>.avsc`, versions from 1 without a gap.

A subject with a hyphen belongs to a message type, `<topic>-<full name of the record>`; one without is a type that
others refer to, and is named like it. A schema that names such a type means its version 1, unless the schema's own
property `packhorse.references` says otherwise: `{"shop.Money": 2}`. So a new version never changes what an old one means.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from packhorse.core.errors import SchemaError, SettingsError
from packhorse.core.message import MessageType
from packhorse.core.naming import checked_topic
from packhorse.schemas.bounds import check_bounded
from packhorse.schemas.defaults import default_of
from packhorse.schemas.parse import parse_schema
from packhorse.schemas.text import fingerprint, resolved_text
from packhorse.schemas.tree import Absent, Record, Ref, Schema

PINS: Final = "packhorse.references"
_FILE = re.compile(r"v([1-9][0-9]*)\.avsc")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """One type that a schema names and does not define: where it stands."""

    name: str
    subject: str
    version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """
    One file of the folder.

    Attributes:
        own: The file's JSON without our property for pinning; what the registry gets, next to the references.
        schema: Its tree, with what it refers to.
        text: The same as one line of JSON that needs no other.
        references: What it names and does not define itself, in the order of the first mention.
    """

    subject: str
    version: int
    path: Path
    own: str = field(repr=False)
    schema: Schema = field(repr=False)
    text: str = field(repr=False)
    fingerprint: str
    references: tuple[Reference, ...]

    @property
    def is_message(self) -> bool:
        """Say whether it is a message type's, and not only there to be referred to."""
        return "-" in self.subject

    @property
    def message_type(self) -> MessageType:
        """Return what a class of this version is on the wire; of a message type's version only."""
        topic, _, name = self.subject.rpartition("-")
        namespace, _, aggregatetype = topic.rpartition(".")
        return MessageType(
            type=name,
            version=self.version,
            namespace=namespace,
            aggregatetype=aggregatetype,
            schema=self.text,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Folder:
    """All versions, by subject and then version."""

    path: Path
    versions: tuple[Version, ...]

    def subjects(self) -> dict[str, list[Version]]:
        """Return the versions of each subject, oldest first."""
        found: dict[str, list[Version]] = {}
        for one in self.versions:
            found.setdefault(one.subject, []).append(one)
        return found

    def in_reference_order(self) -> list[Version]:
        """Return all versions so that each stands behind those it refers to, and behind the earlier ones of its subject."""
        by_key = {(one.subject, one.version): one for one in self.versions}
        placed: dict[tuple[str, int], Version] = {}

        def place(one: Version) -> None:
            if (one.subject, one.version) in placed:
                return
            before = [(one.subject, one.version - 1)] if one.version > 1 else []
            for key in [*before, *((ref.subject, ref.version) for ref in one.references)]:
                place(by_key[key])
            placed[one.subject, one.version] = one

        for one in self.versions:
            place(one)
        return list(placed.values())


def load_folder(path: Path) -> Folder:
    """
    Read all schemas below *path*.

    Raises:
        SettingsError: *path* is no folder, or has no schema in it.
        SchemaError: A file is no schema, has the wrong name or place, or refers to what is not there; names the file.
    """
    files = _files(path)
    loader = _Loader(files=files)
    versions = tuple(
        loader.load(subject, number) for subject in sorted(files) for number in sorted(files[subject])
    )
    return Folder(path=path, versions=versions)


def _files(root: Path) -> dict[str, dict[int, Path]]:
    if not root.is_dir():
        raise SettingsError(f"avro_dir {root} is no folder; name the one with <subject>/v<N>.avsc in it")
    found: dict[str, dict[int, Path]] = {}
    for file in sorted(root.rglob("*.avsc")):
        match = _FILE.fullmatch(file.name)
        if match is None or file.parent.parent != root:
            raise SchemaError(f"{file}: the place of a schema is {root}/<subject>/v<N>.avsc; move it there")
        found.setdefault(file.parent.name, {})[int(match[1])] = file
    if not found:
        raise SettingsError(
            f"avro_dir {root} has no <subject>/v<N>.avsc in it; write the first, or name another folder"
        )
    for subject, versions in found.items():
        missing = sorted(set(range(1, max(versions) + 1)) - set(versions))
        if missing:
            raise SchemaError(
                f"{root / subject}: v{missing[0]}.avsc is missing; versions count from 1 without a gap"
            )
    return found


@dataclass(slots=True, kw_only=True)
class _Loader:
    files: Mapping[str, Mapping[int, Path]]
    done: dict[tuple[str, int], Version] = field(default_factory=dict)
    open: list[tuple[str, int]] = field(default_factory=list)

    def load(self, subject: str, version: int) -> Version:
        key = (subject, version)
        if key in self.open:
            circle = " → ".join(
                f"{name} v{number}" for name, number in [*self.open[self.open.index(key) :], key]
            )
            raise SchemaError(f"the references go in a circle: {circle}; define one type inside the other")
        if key not in self.done:
            self.open.append(key)
            try:
                self.done[key] = self._read(subject, version)
            finally:
                self.open.pop()
        return self.done[key]

    def _read(self, subject: str, version: int) -> Version:
        path = self.files[subject][version]
        try:
            raw = json.loads(path.read_text(encoding="utf-8"))
            pins = _pins(raw)
            references: dict[str, Reference] = {}
            own = json.dumps(raw, separators=(",", ":"))
            schema = parse_schema(own, find=lambda name: self._find(name, pins, references), strict=True)
            _check(subject, schema)
            text = resolved_text(schema)
        except (OSError, ValueError, SchemaError) as error:
            raise SchemaError(f"{path}: {error}") from None
        return Version(
            subject=subject,
            version=version,
            path=path,
            own=own,
            schema=schema,
            text=text,
            fingerprint=fingerprint(text),
            references=tuple(references.values()),
        )

    def _find(self, name: str, pins: Mapping[str, int], references: dict[str, Reference]) -> Schema | None:
        subject = self._subject_of(name)
        if subject is None:
            return None
        version = pins.get(name, 1)
        if version not in self.files[subject]:
            raise SchemaError(f"{PINS} pins {name} to version {version}, which {subject} has not")
        references[name] = Reference(name=name, subject=subject, version=version)
        return self.load(subject, version).schema

    def _subject_of(self, name: str) -> str | None:
        if name in self.files:
            return name
        found = [subject for subject in self.files if subject.rpartition("-")[2] == name]
        if len(found) > 1:
            raise SchemaError(
                f"{name} stands in {' and in '.join(found)}; put it in a subject named {name} to refer to it"
            )
        return found[0] if found else None


def _pins(raw: Any) -> dict[str, int]:
    pins = raw.pop(PINS, {}) if isinstance(raw, dict) else {}
    if not isinstance(pins, dict) or not all(type(number) is int for number in pins.values()):
        raise SchemaError(f"{PINS} is {json.dumps(pins)}; an object from full names to versions is needed")
    return pins


def _check(subject: str, schema: Schema) -> None:
    root = schema.resolved(schema.root)
    topic, hyphen, name = subject.rpartition("-")
    if isinstance(schema.root, Ref) or getattr(root, "name", None) != name:
        raise SchemaError(
            f"the folder's name asks for a type {name}, the file defines {_root_name(schema)}; rename one"
        )
    if hyphen and not isinstance(root, Record):
        raise SchemaError(f"a message type is a record, found {type(root).__name__.lower()}")
    if hyphen and not all(topic.rpartition(".")):
        raise SchemaError(f"topic {topic!r} in the folder's name is not <namespace>.<aggregatetype>")
    if hyphen:
        try:
            checked_topic(topic)
        except SettingsError as error:
            raise SchemaError(str(error)) from None
    check_bounded(schema)
    for record in _records(schema):
        for one in record.fields:
            if not isinstance(one.default, Absent):
                default_of(one, schema, None)


def _root_name(schema: Schema) -> str:
    return getattr(schema.root, "name", None) or f"a {type(schema.root).__name__.lower()}"


def _records(schema: Schema) -> Iterator[Record]:
    return (named for named in schema.names.values() if isinstance(named, Record))
