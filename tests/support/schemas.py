"""Folders of schemas, modules generated from them, and a source of schemas in memory."""

import json
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from packhorse.core.clock import SYSTEM_CHANCE
from packhorse.core.errors import PackhorseError, UnknownSchema
from packhorse.schemas.binding import message_type
from packhorse.schemas.folder import Version, load_folder
from packhorse.schemas.generate import generate

SHOP = Path(__file__).parent / "avro"
"""The folder that `tests/support/shop.py` is generated from."""


def record(*fields: Any, name: str = "Made", **more: Any) -> dict[str, Any]:
    """Return a record's schema; a field is (name, type), (name, type, default) or the whole object."""
    made = []
    for field in fields:
        if isinstance(field, dict):
            made.append(field)
        else:
            extra = {"default": field[2]} if len(field) > 2 else {}
            made.append({"name": field[0], "type": field[1], **extra})
    return {"type": "record", "name": name, "namespace": "test", "fields": made, **more}


def write_folder(root: Path, subjects: Mapping[str, Any]) -> Path:
    """Write each subject's versions, one schema or a list of them, as `<subject>/v<N>.avsc` below *root*."""
    for subject, versions in subjects.items():
        for number, schema in enumerate(versions if isinstance(versions, list) else [versions], start=1):
            file = root / subject / f"v{number}.avsc"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(json.dumps(schema), encoding="utf-8")
    return root


def module_of(versions: Iterable[Version]) -> ModuleType:
    """Return a module with the classes generated for *versions*, as an application would import it."""
    module = ModuleType(f"generated_{SYSTEM_CHANCE.token().hex}")
    sys.modules[module.__name__] = module
    exec(compile(generate(versions), module.__name__, "exec"), module.__dict__)
    return module


def message_class(root: Path, *versions: Any) -> Any:
    """Return the class generated for the last of *versions* of the record `test.Made`, in a new folder below *root*."""
    folder = write_folder(root / SYSTEM_CHANCE.token().hex, {"test.things-test.Made": list(versions)})
    return module_of([load_folder(folder).versions[-1]]).Made


def shop_version(subject: str, version: int) -> Version:
    """Return one version of the shop's folder."""
    return next(one for one in load_folder(SHOP).versions if (one.subject, one.version) == (subject, version))


class MemorySource:
    """
    A source of schemas in memory; ids count from 1.

    Attributes:
        asked: The ids that were asked for, in order.
        trouble: Raised by the next calls while it is set.
    """

    def __init__(self, *texts: str) -> None:
        self.texts = dict(enumerate(texts, start=1))
        self.asked: list[int] = []
        self.trouble: PackhorseError | None = None

    def schema_of(self, schema_id: int) -> str:
        self.asked.append(schema_id)
        if self.trouble is not None:
            raise self.trouble
        if schema_id not in self.texts:
            raise UnknownSchema(f"schema {schema_id}: not in this memory")
        return self.texts[schema_id]

    def add(self, cls: type) -> int:
        """Add the schema of a message class and return its id."""
        schema_id = len(self.texts) + 1
        self.texts[schema_id] = message_type(cls).schema
        return schema_id
