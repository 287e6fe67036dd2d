"""
Jobs over HTTP: a plain ASGI application that another one mounts, closed until it is told who may do what.

>>> from packhorse.producer.jobs.web import Caller, JobsApp

Everything is imported when it is first used; it needs no web framework.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from packhorse.producer.jobs.web.app import JobsApp
    from packhorse.producer.jobs.web.model import Act, Asked, Caller, Order

__all__ = ["Act", "Asked", "Caller", "JobsApp", "Order"]

_HOMES = {"Act": "model", "Asked": "model", "Caller": "model", "JobsApp": "app", "Order": "model"}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
