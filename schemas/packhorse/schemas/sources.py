"""Pieces of the source text of generated classes."""

from typing import Final

from packhorse.core.errors import SchemaError
from packhorse.schemas.literals import text_literal
from packhorse.schemas.names import attribute, member
from packhorse.schemas.tree import Enum, Field, Fixed, Primitive, Record

_PLAIN: Final = {
    "null": "None",
    "boolean": "bool",
    "int": "int",
    "long": "int",
    "float": "float",
    "double": "float",
    "bytes": "bytes",
    "string": "str",
}
_LOGICAL: Final = {
    "uuid": "UUID",
    "decimal": "Decimal",
    "date": "dt.date",
    "time-millis": "dt.time",
    "time-micros": "dt.time",
}
_SURELY_SHORT = 72
"""A longer line might be broken by a formatter, depending on its settings, so it is told to skip it."""


def scalar_hint(node: Primitive | Fixed) -> str:
    if node.logical is not None:
        return _LOGICAL.get(node.logical.name, "dt.datetime")
    return _PLAIN[node.kind] if isinstance(node, Primitive) else "bytes"


def twice(texts: list[str]) -> str:
    return next(text for text in texts if texts.count(text) > 1)


def enum_source(name: str, node: Enum) -> str:
    members = [member(symbol) for symbol in node.symbols]
    if len(set(members)) != len(members):
        raise SchemaError(f"{node.name}: two symbols want the member {twice(members)}; rename one")
    lines = [f"class {name}(StrEnum):", *docstring(name, node)]
    lines += [
        line(f"    {one} = {text_literal(symbol)}") for one, symbol in zip(members, node.symbols, strict=True)
    ]
    return "\n".join([*lines, "", line(f"    __avro__: ClassVar[str] = {text_literal(node.name)}")])


def docstring(name: str, node: Record | Enum) -> list[str]:
    head = _prose(node.doc) or f"{name}, as its schema has it."
    noted = [(one, _note(one)) for one in node.fields] if isinstance(node, Record) else []
    noted = [(one, note) for one, note in noted if note]
    if not noted:
        gap = " " if head.endswith('"') else ""
        return [f'    """{head}{gap}"""', ""]
    lines = [f"        {attribute(one.name)}: {note}" for one, note in noted]
    return ['    """', f"    {head}", "", "    Attributes:", *lines, '    """', ""]


def _note(one: Field) -> str:
    return " ".join(part for part in (_prose(one.doc), "Personal data." if one.personal else "") if part)


def _prose(doc: str) -> str:
    """Return *doc* on one line, safe inside a docstring."""
    return " ".join(doc.split()).replace("\\", "\\\\").replace('"""', "'''")


def line(text: str) -> str:
    return text if len(text) <= _SURELY_SHORT else f"{text}  # fmt: skip"
