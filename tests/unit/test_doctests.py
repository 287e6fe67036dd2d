"""The examples in docstrings run."""

import doctest
import importlib
import pkgutil
from types import ModuleType

import pytest

PARTS = ("core", "schemas", "producer", "relay", "processor", "testing", "console", "local", "cli")


def modules() -> list[str]:
    packages = [importlib.import_module(f"packhorse.{part}") for part in PARTS]
    names = [i.name for p in packages for i in pkgutil.walk_packages(p.__path__, f"{p.__name__}.")]
    return [name for name in names if "migrations" not in name and not name.endswith("__main__")]


def examples(module: ModuleType) -> int:
    return sum(len(test.examples) for test in doctest.DocTestFinder().find(module))


@pytest.mark.parametrize("name", modules())
def test_examples(name: str) -> None:
    module = importlib.import_module(name)
    if not examples(module):
        return
    assert doctest.testmod(module).failed == 0
