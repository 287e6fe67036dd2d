"""How many lanes a type of jobs may have at once, so that a busy one leaves lanes for the others; pure."""

from collections import Counter
from collections.abc import Iterable, Mapping

from packhorse.processor.handlers import Handler


def job_lanes(handlers: Iterable[Handler], lanes: int) -> dict[str, int]:
    """
    Return how many of *lanes* each type of jobs may have at once, by the name of its handler; of others there is no limit.

    What a type declares counts. One that declares nothing has all but one where there are other handlers: they may run for hours,
    and a message of a millisecond is not to wait for that.
    """
    handlers = list(handlers)
    most = lanes - 1 if len(handlers) > 1 and lanes > 1 else lanes
    return {
        one.name: min(one.job.lanes or most, lanes)
        for one in handlers
        if one.job is not None and not one.job.quick
    }


class Rations:
    """Count the lanes of types of jobs by the numbers of their chunks; for one thread."""

    def __init__(self, most: Mapping[str, int]) -> None:
        self._most = most
        self._of: dict[int, str] = {}
        self._count: Counter[str] = Counter()
        self.full: frozenset[str] = frozenset()

    def begun(self, number: int, gate: str | None) -> None:
        """Take that the chunk *number* of the handler *gate* has a lane."""
        if gate is None or gate not in self._most:
            return
        self._of[number] = gate
        self._count[gate] += 1
        if self._count[gate] >= self._most[gate]:
            self.full |= {gate}

    def ended(self, number: int) -> bool:
        """Take that the chunk *number* has left its lane; return whether its handler may have one more from now on."""
        gate = self._of.pop(number, None)
        if gate is None:
            return False
        self._count[gate] -= 1
        was_full = gate in self.full
        if self._count[gate] < self._most[gate]:
            self.full -= {gate}
        return was_full
