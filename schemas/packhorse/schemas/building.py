"""Make message classes of dicts of their fields, without their constructor where that would do nothing else."""

import dataclasses
from collections.abc import Callable, Mapping
from types import MemberDescriptorType
from typing import Any

Build = Callable[[Mapping[str, Any]], Any]


def builder_of(cls: type) -> Build:
    """
    Return what makes a *cls* of a mapping that holds all its fields, and nothing else.

    A frozen class with slots, as `packhorse schemas generate` writes them, has its slots set directly: its own constructor,
    which goes through `object.__setattr__`, takes more than twice as long. A class that has anything to say to how it is made
    is called.
    """
    if not _only_sets_fields(cls):
        return lambda values: cls(**values)
    setters = [(field.name, cls.__dict__[field.name].__set__) for field in dataclasses.fields(cls)]
    make = object.__new__

    def build(values: Mapping[str, Any]) -> Any:
        made: Any = make(cls)
        for name, put in setters:
            put(made, values[name])
        return made

    return build


def _only_sets_fields(cls: type) -> bool:
    """Return whether making a *cls* sets its slots and does nothing else: its `__init__` is the one that `dataclass` wrote."""
    own = cls.__dict__
    if type(cls) is not type or "__dataclass_params__" not in own or "__init__" not in own:
        return False
    if hasattr(cls, "__post_init__") or any("__new__" in kind.__dict__ for kind in cls.__mro__[:-1]):
        return False
    # What dataclass writes comes from no file; an `__init__` of the class's own is kept by it.
    if own["__init__"].__code__.co_filename != "<string>":
        return False
    fields = dataclasses.fields(cls)
    return all(field.init and type(own.get(field.name)) is MemberDescriptorType for field in fields)
