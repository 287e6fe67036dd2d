"""Find the processor that a command line names as module:app."""

import sys
from importlib import import_module
from pathlib import Path

from packhorse.core.errors import PackhorseError, UsageError
from packhorse.processor.app import Processor
from packhorse.processor.faults import describe


def load(target: str) -> Processor:
    """
    Return the processor *target* names, e.g. "figures.app:app"; the working directory is looked in first.

    Raises:
        UsageError: There is none, it is something else, or its module can't be imported.
    """
    module_name, _, name = target.partition(":")
    if not module_name or not name:
        raise UsageError(f"{target!r} names no processor; write module:app, e.g. figures.app:app")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        module = import_module(module_name)
    except PackhorseError:
        raise
    except Exception as error:  # the application's own fault, told as such
        raise UsageError(
            f"module {module_name} can't be imported: {describe(error, (ImportError,))}"
        ) from error
    found = getattr(module, name, None)
    if not isinstance(found, Processor):
        others = sorted(key for key, value in vars(module).items() if isinstance(value, Processor))
        known = f"; processors there: {', '.join(others)}" if others else ""
        what = f"is {type(found).__name__}" if hasattr(module, name) else "does not exist"
        raise UsageError(f"{target} {what}; a Processor is needed{known}")
    found.check()
    return found
