"""What `packhorse relay cdc-setup` found and did, as values and as text."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from packhorse.relay.cdc.stream import OtherSlot, SlotState


class Done(StrEnum):
    """What became of a step."""

    FINE = "fine"
    MADE = "made"
    PLANNED = "would be made"
    WARNING = "warning"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """
    One step of the set-up.

    Attributes:
        what: Names the thing.
        done: What became of it.
        text: How it stands; of a refused one also the next step.
    """

    what: str
    done: Done
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """All steps, in the order in which they were taken."""

    steps: Sequence[Step]

    @property
    def refused(self) -> bool:
        """Return True when something stands in the way."""
        return any(step.done is Done.REFUSED for step in self.steps)

    def as_dict(self) -> dict[str, Any]:
        """Return what `--json` prints."""
        steps = [{"what": step.what, "done": step.done.value, "text": step.text} for step in self.steps]
        return {"ready": not self.refused, "steps": steps}


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """
    One slot of ours, for `--list`.

    Attributes:
        held_bytes: Log that the server keeps for it; None when it keeps none any more.
        used: A shard of this installation streams, or would stream, from it.
    """

    name: str
    active: bool
    held_bytes: int | None
    wal_status: str | None
    used: bool

    def as_dict(self) -> dict[str, Any]:
        """Return what `--json` prints."""
        return {name: getattr(self, name) for name in self.__slots__}


def listed(used: Sequence[SlotState], others: Sequence[OtherSlot]) -> list[Listed]:
    """Return our slots: those in use first, then those that nobody needs, each group by what it holds."""
    ours = [
        Listed(
            name=slot.name,
            active=slot.active_pid is not None,
            held_bytes=slot.held_bytes,
            wal_status=slot.wal_status,
            used=True,
        )
        for slot in used
        if slot.exists
    ]
    known = {slot.name for slot in used}
    rest = [
        Listed(name=slot.name, active=slot.active, held_bytes=slot.held_bytes, wal_status=None, used=False)
        for slot in others
        if slot.name not in known
    ]
    return sorted(ours + rest, key=lambda slot: (not slot.used, -(slot.held_bytes or 0), slot.name))


def size(count: int | None) -> str:
    """
    Return a number of bytes for people.

    >>> [size(count) for count in (None, 0, 1023, 5 * 1024**2, 3 * 1024**3)]
    ['nothing', '0 B', '1023 B', '5.0 MiB', '3.0 GiB']
    """
    if count is None:
        return "nothing"
    value, units = float(count), ["B", "KiB", "MiB", "GiB", "TiB"]
    while value >= 1024 and len(units) > 1:
        value, units = value / 1024, units[1:]
    return f"{count} B" if units[0] == "B" else f"{value:.1f} {units[0]}"
