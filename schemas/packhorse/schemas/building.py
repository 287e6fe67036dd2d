"""Make message classes of dicts of their fields, without their constructor where that would do nothing else."""

import dataclasses
from collections.abc import Callable, Mapping
from types import FunctionType, MemberDescriptorType
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
    parameters, init = own.get("__dataclass_params__"), own.get("__init__")
    # Of a class that isn't frozen the constructor goes through its `__setattr__`, which may have something to say.
    if type(cls) is not type or parameters is None or not parameters.frozen or type(init) is not FunctionType:
        return False
    if hasattr(cls, "__post_init__") or any("__new__" in kind.__dict__ for kind in cls.__mro__[:-1]):
        return False
    # An `__init__` of the class's own is kept by dataclass; what it writes itself, it writes inside such a function.
    if not init.__code__.co_qualname.startswith("__create_fn__."):
        return False
    fields = dataclasses.fields(cls)
    return all(field.init and type(own.get(field.name)) is MemberDescriptorType for field in fields)
