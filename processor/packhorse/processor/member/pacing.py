"""How many jobs of a type that declares nothing about it may share a claim: as many as take a moment together; pure."""

from dataclasses import dataclass, field

from packhorse.processor.partition.events import Took

MOMENT = 0.01
"""Seconds that the bodies of jobs which share a claim may take together, by what was seen of their type."""
CALM = 50
"""Bodies of a type that must be quick one after another before any share a claim; and before twice as many do."""
MOST = 64
"""Most jobs of such a chunk: beyond it a job costs no less."""


@dataclass(slots=True)
class _Pace:
    """What was seen of one type: bodies since the last slow one, and the seconds that one takes."""

    calm: int = 0
    mean: float = 0.0


@dataclass(slots=True)
class Paces:
    """Learn how long bodies take, by the names of their handlers; for one thread."""

    _known: dict[str, _Pace] = field(default_factory=dict)

    def most(self, name: str) -> int:
        """
        Return how many jobs of the handler *name* may share a claim.

        A type is taken for a slow one until it has shown otherwise, and again after each body that was: what is grouped and then
        takes long is handed on (see `Hands`), which costs the others some ten milliseconds.

        >>> paces = Paces()
        >>> paces.learn("quick", Took(bodies=3 * CALM, seconds=0.01, longest=0.001))
        >>> paces.most("quick"), paces.most("new")
        (8, 1)
        """
        pace = self._known.get(name)
        if pace is None or pace.calm < CALM:
            return 1
        most = min(1 << min(pace.calm // CALM, 16), MOST)
        return max(1, min(most, int(MOMENT / pace.mean))) if pace.mean > 0 else most

    def learn(self, name: str, took: Took) -> None:
        """Take that bodies of the handler *name* have run."""
        pace = self._known.setdefault(name, _Pace())
        if took.longest > MOMENT:
            self._known[name] = _Pace()
            return
        each = took.seconds / took.bodies
        pace.mean = each if not pace.calm else 0.8 * pace.mean + 0.2 * each
        pace.calm += took.bodies
