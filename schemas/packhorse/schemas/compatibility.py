"""Check that each version of a schema reads what the earlier ones wrote; offline, naming field and rule."""

import json
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from avro.compatibility import ReaderWriterCompatibilityChecker, SchemaCompatibilityType
from avro.errors import AvroException
from avro.schema import Schema as AvroSchema
from avro.schema import make_avsc_object

from packhorse.schemas.direction import Direction
from packhorse.schemas.folder import Folder, Version
from packhorse.schemas.marks import lost_marks
from packhorse.schemas.resolution import Resolver
from packhorse.schemas.tree import PERSONAL

MARK_LOST: Final = "personal-mark"
"""The rule that a field stays marked as personal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """
    One thing that keeps *reader* from reading what *writer* wrote, or from hiding it; both are versions of *subject*.

    Attributes:
        path: The field, dotted from the record; empty for the record itself.
        rule: The word for the rule that is broken.
    """

    subject: str
    reader: int
    writer: int
    path: str
    rule: str
    text: str

    def __str__(self) -> str:
        if self.rule == MARK_LOST:
            return f"{self.subject}: v{self.reader}: {self.path}: {self.text} (rule {self.rule})"
        return (
            f"{self.subject}: v{self.reader} can't read what v{self.writer} wrote: "
            f"{self.path or 'the record'}: {self.text} (rule {self.rule})"
        )


def check(folder: Folder, direction: Direction = Direction.BACKWARD) -> list[Finding]:
    """
    Return what breaks compatibility in *folder*, by subject, version and place; empty when nothing does.

    A mark of personal data that is lost from one version to the next is told whatever the direction.
    """
    found: list[Finding] = []
    for versions in folder.subjects().values():
        for newer in versions:
            for older in versions[: newer.version - 1]:
                for reader, writer in _pairs(older, newer, direction):
                    found.extend(between(reader, writer))
        for older, newer in pairwise(versions):
            found.extend(_lost_marks(older, newer))
    return found


def _lost_marks(older: Version, newer: Version) -> Iterator[Finding]:
    text = f'v{older.version} marks it as personal; keep "{PERSONAL}": true, or write false where it holds no such data any more'
    for path in lost_marks(older.schema, newer.schema):
        yield Finding(
            subject=newer.subject,
            reader=newer.version,
            writer=older.version,
            path=path,
            rule=MARK_LOST,
            text=text,
        )


def _pairs(older: Version, newer: Version, direction: Direction) -> Iterator[tuple[Version, Version]]:
    if direction in {Direction.BACKWARD, Direction.FULL}:
        yield newer, older
    if direction in {Direction.FORWARD, Direction.FULL}:
        yield older, newer


def between(reader: Version, writer: Version) -> list[Finding]:
    """
    Return what keeps *reader* from reading what *writer* wrote.

    Our own resolution is asked first, since it is what decodes, names each place and looks at logical types. What it
    finds nothing wrong with, Avro's own checker must agree to: other languages rest on those rules.
    """
    resolver = Resolver(writer.schema, reader.schema, None)
    resolver.root()
    places = [(one.path, one.rule.value, one.text) for one in resolver.incompatibilities]
    return [
        Finding(
            subject=reader.subject,
            reader=reader.version,
            writer=writer.version,
            path=path,
            rule=rule,
            text=text,
        )
        for path, rule, text in places or _second_opinion(reader, writer)
    ]


def _second_opinion(reader: Version, writer: Version) -> Iterable[tuple[str, str, str]]:
    try:
        checker = ReaderWriterCompatibilityChecker()  # type: ignore[no-untyped-call]
        result = checker.get_compatibility(_parsed(reader.text), _parsed(writer.text))
    except AvroException as error:
        return [("", "invalid", f"Avro's reference implementation refuses the schema: {error}")]
    if result.compatibility is SchemaCompatibilityType.compatible:
        return []
    rule = result.incompatibilities[0].value.replace("_", "-") if result.incompatibilities else "incompatible"
    return [(", ".join(sorted(result.locations)), rule, "; ".join(sorted(result.messages)))]


def _parsed(text: str) -> AvroSchema:
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore"
        )  # it warns of logical types that it does not know; we have looked at them
        return make_avsc_object(json.loads(text))
