"""The partitions that groups read, and how far they are. Pure: no I/O, no clock."""

from dataclasses import dataclass
from datetime import timedelta

from packhorse.console.top.facts import Ends, Look


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaceView:
    """
    One partition that a group reads.

    Attributes:
        end, lag: Where its topic ends, and how far that is from the watermark; None: not known.
        still: How long its watermark has not moved.
    """

    topic: str
    partition: int
    watermark: int
    end: int | None
    lag: int | None
    still: timedelta


def places_of(look: Look, ends: Ends) -> dict[str, tuple[PlaceView, ...]]:
    """Return each partition that *look* knows, by group."""
    found: dict[str, list[PlaceView]] = {}
    for mark in look.marks:
        end = ends.of.get((mark.topic, mark.partition))
        place = PlaceView(
            topic=mark.topic,
            partition=mark.partition,
            watermark=mark.offset,
            end=end,
            lag=None if end is None else max(0, end - mark.offset),
            still=look.at - mark.moved_at,
        )
        found.setdefault(mark.group, []).append(place)
    return {group: tuple(places) for group, places in found.items()}
