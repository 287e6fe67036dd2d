"""Find the processor that a command line names as module:app."""

import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

from packhorse.core.errors import PackhorseError, UsageError
from packhorse.processor.app import Processor
from packhorse.processor.running.faults import describe


def load(target: str) -> Processor:
    """
    Return the processor *target* names, e.g. "figures.app:app"; the working directory is looked in first.

    Raises:
        UsageError: There is none, it is something else, or its module can't be imported.
    """
    module_name, _, name = target.partition(":")
    if not name.isidentifier() or not all(part.isidentifier() for part in module_name.split(".")):
        raise UsageError(f"{target!r} names no processor; write module:app, e.g. figures.app:app")
    if module_name.endswith(".py"):
        raise UsageError(
            f"{target!r} names a file; write the module: {module_name.removesuffix('.py')}:{name}"
        )
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    module = _imported(module_name, here)
    found = getattr(module, name, None)
    if not isinstance(found, Processor):
        others = sorted(key for key, value in vars(module).items() if isinstance(value, Processor))
        known = f"; processors there: {', '.join(others)}" if others else ""
        what = f"is {type(found).__name__}" if hasattr(module, name) else "does not exist"
        raise UsageError(f"{target} {what}; a Processor is needed{known}")
    found.check()
    return found


def _imported(name: str, here: str) -> ModuleType:
    try:
        return import_module(name)
    except PackhorseError:
        raise
    except Exception as error:  # the application's own fault, told as such
        if isinstance(error, ModuleNotFoundError) and error.name and f"{name}.".startswith(f"{error.name}."):
            why = f"there is no module {error.name} in {here} or on this Python's path; run it from the folder it lies in"
        elif isinstance(error, SyntaxError):
            why = f"SyntaxError in {error.filename}, line {error.lineno}"
        else:
            why = f"{describe(error, (ImportError,))}; python -c 'import {name}' shows all of it"
        raise UsageError(f"module {name} can't be imported: {why}") from error
