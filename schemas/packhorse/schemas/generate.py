"""Write the message classes of a folder as one Python module: typed, frozen, stable under ruff's formatter."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final

from packhorse.core.errors import SchemaError
from packhorse.schemas.defaults import DefaultFault, Defaults, scalar_default
from packhorse.schemas.folder import Folder, Version
from packhorse.schemas.literals import literal, text_literal
from packhorse.schemas.names import attribute, class_name, member
from packhorse.schemas.sources import docstring, enum_source, line, scalar_hint, twice
from packhorse.schemas.tree import (
    Absent,
    Array,
    Enum,
    Field,
    Fixed,
    Map,
    Named,
    Node,
    Primitive,
    Record,
    Schema,
    Union,
)

HEAD: Final = '"""Messages; made by `packhorse schemas generate`: change the schemas, then run it again."""'
_IMPORTS: Final = (
    ("dt.", "import datetime as dt"),
    ("Mapping[", "from collections.abc import Mapping"),
    ("Decimal", "from decimal import Decimal"),
    ("StrEnum", "from enum import StrEnum"),
    ("UUID", "from uuid import UUID"),
)


def generate(versions: Iterable[Version]) -> str:
    """
    Return the module with a class for each of *versions* and for each type inside them.

    Raises:
        SchemaError: Two types want the same class name, or a name can't be Python's; names the subject and both.
    """
    module = _Module()
    for version in versions:
        try:
            module.add(version)
        except SchemaError as error:
            raise SchemaError(f"{version.subject} v{version.version}: {error}") from None
    return module.text()


def newest(folder: Folder, only: Iterable[str] = ()) -> list[Version]:
    """
    Return the newest version of each message type in *folder*, or of the subjects in *only*.

    Raises:
        SchemaError: There is none, or one of *only* is not there.
    """
    found = {
        subject: versions[-1] for subject, versions in folder.subjects().items() if versions[-1].is_message
    }
    wanted = list(only)
    for subject in wanted:
        if subject not in found:
            raise SchemaError(
                f"{folder.path} has no message type {subject}; it has {', '.join(found) or 'none'}"
            )
    if not found:
        raise SchemaError(
            f"{folder.path} has no message type: no folder named <topic>-<full name of the record>"
        )
    return [found[subject] for subject in wanted] if wanted else list(found.values())


@dataclass(slots=True)
class _Module:
    classes: dict[str, str] = field(default_factory=dict)  # class name → source text
    made: dict[str, tuple[str, Named]] = field(default_factory=dict)  # class name → full name and definition
    hints: list[str] = field(default_factory=list)
    calls_field: bool = False

    def add(self, version: Version) -> None:
        _Classes(self, version).emit(version.schema.root)

    def text(self) -> str:
        body = "\n\n\n".join(self.classes.values())
        # Only annotations are looked at: a word in a doc or a default must not bring in an import.
        hints = " ".join(self.hints)
        lines = [text for word, text in _IMPORTS if re.search(rf"\b{re.escape(word)}", hints)]
        lines += [f"from dataclasses import {'dataclass, field' if self.calls_field else 'dataclass'}"]
        lines += ["from typing import ClassVar"]
        imports = "\n".join(sorted(lines, key=lambda text: (text.startswith("from"), text)))
        return f"{HEAD}\n\n{imports}\n\nfrom packhorse.core.message import MessageType\n\n\n{body}\n"


class _Classes:
    """Emit the classes of one version, those that others need first."""

    def __init__(self, module: _Module, version: Version) -> None:
        self._module = module
        self._version = version
        self._schema: Schema = version.schema
        self._open: set[str] = set()

    def emit(self, node: Node) -> None:
        found = self._schema.resolved(node)
        match found:
            case Array():
                self.emit(found.items)
            case Map():
                self.emit(found.values)
            case Union():
                for branch in found.branches:
                    self.emit(branch)
            case Record() | Enum():
                self._emit_named(found)

    def _emit_named(self, node: Record | Enum) -> None:
        name = class_name(node.name)
        if name in self._open:
            return
        if name in self._module.made:
            self._same(name, node)
            return
        self._open.add(name)
        if isinstance(node, Record):
            for one in node.fields:
                self.emit(one.type)
            text = self._record(name, node)
        else:
            text = enum_source(name, node)
            self._module.hints.append("StrEnum")
        self._open.discard(name)
        self._module.classes[name] = text
        self._module.made[name] = (node.name, node)

    def _same(self, name: str, node: Named) -> None:
        full, made = self._module.made[name]
        if full != node.name:
            raise SchemaError(f"{node.name} and {full} both want the class {name}; rename one, or use --only")
        if made != node:
            raise SchemaError(
                f"{full} has another definition in another subject; let both refer to one version, or use --only"
            )
        if node is self._schema.record:
            raise SchemaError(
                f"{full} is a message type and part of another message; give the part a name of its own"
            )

    def _record(self, name: str, node: Record) -> str:
        owners: dict[str, str] = {}
        for one in node.fields:
            other = owners.setdefault(attribute(one.name), one.name)
            if other != one.name:
                raise SchemaError(
                    f"{node.name}: fields {other} and {one.name} both want the attribute {other}_"
                )
        lines = [
            "@dataclass(frozen=True, slots=True, kw_only=True)",
            f"class {name}:",
            *docstring(name, node),
        ]
        lines += [self._field(node, one) for one in node.fields]
        lines += [""] if node.fields else []
        return "\n".join([*lines, *self._about(node)])

    def _about(self, node: Record) -> list[str]:
        if node is not self._schema.record:
            return [line(f"    __avro__: ClassVar[str] = {text_literal(node.name)}")]
        about = self._version.message_type
        return [
            "    __packhorse__: ClassVar[MessageType] = MessageType(",
            f"        type={text_literal(about.type)},",
            f"        version={about.version},",
            f"        namespace={text_literal(about.namespace)},",
            f"        aggregatetype={text_literal(about.aggregatetype)},",
            f"        schema={text_literal(about.schema)},",
            "    )",
        ]

    def _field(self, node: Record, one: Field) -> str:
        name = attribute(one.name)
        try:
            hint = self._hint(one.type)
        except SchemaError as error:
            raise SchemaError(f"{node.name}.{one.name}: {error}") from None
        taken = {
            class_name(other) for other, named in self._schema.names.items() if not isinstance(named, Fixed)
        }
        if name in taken:
            raise SchemaError(
                f"{node.name}.{one.name} has the name of a class in this module; rename the field"
            )
        default = self._default(one)
        self._module.hints.append(hint)
        self._module.calls_field = self._module.calls_field or default.startswith("field(")
        return line(f"    {name}: {hint}{f' = {default}' if default else ''}")

    def _default(self, one: Field) -> str:
        options = []
        if not isinstance(one.default, Absent):
            text = self._literal(one.type, one.default)
            if text.startswith("{"):
                options.append(f"default_factory={'dict' if text == '{}' else f'lambda: {text}'}")
            elif one.personal:
                options.append(f"default={text}")
            else:
                return text
        if one.personal:
            options.append("repr=False")
        return f"field({', '.join(options)})" if options else ""

    def _hint(self, node: Node) -> str:
        text, known = self._hint_parts(node)
        return text if known else f'"{text}"'

    def _hint_parts(self, node: Node) -> tuple[str, bool]:
        """Return the annotation, and whether all classes in it stand above."""
        found = self._schema.resolved(node)
        match found:
            case Primitive() | Fixed():
                return scalar_hint(found), True
            case Enum() | Record():
                name = class_name(found.name)
                return name, name in self._module.made
            case Array():
                text, known = self._hint_parts(found.items)
                return f"tuple[{text}, ...]", known
            case Map():
                text, known = self._hint_parts(found.values)
                return f"Mapping[str, {text}]", known
            case Union():
                parts = [self._hint_parts(branch) for branch in found.branches]
                texts = sorted((text for text, _ in parts), key=lambda text: text == "None")
                if len(set(texts)) != len(texts):
                    raise SchemaError(
                        f"two branches of the union are {twice(texts)} in Python; keep one of them"
                    )
                return " | ".join(texts), all(known for _, known in parts)
        raise AssertionError(f"{found} is no node")

    def _literal(self, node: Node, raw: Any) -> str:
        found = self._schema.resolved(node)
        match found:
            case Primitive() | Fixed():
                return literal(scalar_default(found, raw))
            case Enum():
                return f"{class_name(found.name)}.{member(raw)}"
            case Array():
                items = [self._literal(found.items, item) for item in raw]
                return f"({', '.join(items)}{',' if len(items) == 1 else ''})"
            case Map():
                pairs = [
                    f"{text_literal(key)}: {self._literal(found.values, item)}" for key, item in raw.items()
                ]
                return f"{{{', '.join(pairs)}}}"
            case Union():
                return self._literal(self._branch(found, raw), raw)
            case Record():
                given = {one.name: raw.get(one.name, one.default) for one in found.fields}
                pairs = [
                    f"{attribute(one.name)}={self._literal(one.type, given[one.name])}"
                    for one in found.fields
                ]
                return f"{class_name(found.name)}({', '.join(pairs)})"
        raise AssertionError(f"{found} is no node")

    def _branch(self, node: Union, raw: Any) -> Node:
        values = Defaults(self._schema, None)
        for branch in node.branches:
            try:
                values.make(branch, raw)
            except DefaultFault:
                continue
            return branch
        raise AssertionError("the folder checks defaults when it is loaded")
