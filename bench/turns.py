"""Several contestants in turns, so that what the machine does meanwhile falls on all of them alike."""

import sys
import time
from collections.abc import Callable, Sequence
from typing import TypeVar

Result = TypeVar("Result")


def rounds(
    names: Sequence[str], count: int, run: Callable[[str], Result], show: Callable[[Result], str]
) -> dict[str, list[Result | None]]:
    """Give everybody *count* turns; who fails once has a gap there, and the round goes on."""
    found: dict[str, list[Result | None]] = {name: [] for name in names}
    for number in range(count):
        turn: int = number % len(names)
        # Each round begins with another one, so that nobody always follows the same neighbour.
        for name in [*names[turn:], *names[:turn]]:
            try:
                result = run(name)
            except Exception as error:  # whatever one meets, the others have their turns
                print(f"round {number + 1}: {name} failed: {error}", file=sys.stderr, flush=True)
                found[name].append(None)
                continue
            found[name].append(result)
            print(f"round {number + 1}  {time.strftime('%H:%M:%S')}  {name:<26}  {show(result)}", flush=True)
    return found
