"""How many lanes types of jobs may have at once, so that long ones leave lanes for the others; pure."""

from collections import Counter
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, field
from types import MappingProxyType

from packhorse.processor.handlers import Handler


@dataclass(frozen=True, slots=True, kw_only=True)
class Ration:
    """
    How many lanes handlers may have at once, by their names; of one that is not named there is no limit.

    Attributes:
        each: What one may have.
        together: Those that share a limit beside that.
        most: What they may have together.
    """

    each: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    together: Set[str] = frozenset()
    most: int = 0


NO_RATION = Ration()
"""Nobody has a limit."""


def job_lanes(handlers: Iterable[Handler], lanes: int) -> Ration:
    """
    Return how many of *lanes* types of jobs may have at once.

    What a type declares counts. Those that declare nothing may run for hours: together they have all lanes but one where there is
    work that is short (handlers of messages, quick jobs), and each of them all but one where there are others of their kind.
    """
    handlers = list(handlers)
    long = [one for one in handlers if one.job is not None and not one.job.quick]
    free = frozenset(one.name for one in long if one.job is not None and one.job.lanes is None)
    but_one = max(lanes - 1, 1)
    each = {
        one.name: min(one.job.lanes, lanes)
        for one in long
        if one.job is not None and one.job.lanes is not None
    }
    if len(long) < len(handlers):
        return Ration(each=each, together=free, most=but_one)
    return Ration(each=each | (dict.fromkeys(free, but_one) if len(long) > 1 else {}))


class Rations:
    """Count the lanes of types of jobs by the numbers of their chunks; for one thread."""

    def __init__(self, ration: Ration) -> None:
        self._ration = ration
        self._of: dict[int, str] = {}
        self._count: Counter[str] = Counter()
        self.full: frozenset[str] = frozenset()

    def begun(self, number: int, gate: str | None) -> None:
        """Take that the chunk *number* of the handler *gate* has a lane."""
        if gate is None or not (gate in self._ration.each or gate in self._ration.together):
            return
        self._of[number] = gate
        self._count[gate] += 1
        self.full = self._full()

    def ended(self, number: int) -> bool:
        """Take that the chunk *number* has left its lane; return whether a handler may have one more from now on."""
        gate = self._of.pop(number, None)
        if gate is None:
            return False
        self._count[gate] -= 1
        before, self.full = self.full, self._full()
        return self.full < before

    def _full(self) -> frozenset[str]:
        ration = self._ration
        full = {gate for gate, most in ration.each.items() if self._count[gate] >= most}
        if ration.together and sum(self._count[gate] for gate in ration.together) >= ration.most:
            full |= ration.together
        return frozenset(full)
