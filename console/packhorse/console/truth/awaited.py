"""Groups that read a message's topic and have no row of it: what their watermarks say. Pure: no I/O, no clock."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from packhorse.console.facts import Forgotten, Place
from packhorse.console.truth.around import Around, Mark
from packhorse.core.text import counted


@dataclass(frozen=True, slots=True, kw_only=True)
class Awaited:
    """
    A group that reads the topic and has no row of the message.

    Attributes:
        partition, offset: Where the record stands; None when that is not known.
        watermark: The group's of that partition; None when it has none, or the partition is not known.
        below: The record stands below it, so the group is through with it; None when that is not known.
        said: What is so, and what it rests on.
        short: The same in a few words.
    """

    group: str
    topic: str
    partition: int | None
    offset: int | None
    watermark: int | None
    below: bool | None
    said: str
    short: str


def awaited_of(
    around: Around,
    place: Place | None,
    known: Collection[tuple[str, str]],
    forgotten: Sequence[Forgotten],
) -> tuple[Awaited, ...]:
    """Return what is to be said of each group that reads a topic of the message and is not among those *known* by a row."""
    pairs = sorted({(mark.group, mark.topic) for mark in around.marks} - set(known))
    days = {each.group: each.days for each in forgotten}
    return tuple(_awaited(around.marks, group, topic, place, days.get(group)) for group, topic in pairs)


def _awaited(marks: Sequence[Mark], group: str, topic: str, place: Place | None, days: int | None) -> Awaited:
    if place is None or place.topic != topic:
        return Awaited(
            group=group,
            topic=topic,
            partition=None,
            offset=None,
            watermark=None,
            below=None,
            said="no row; where the record stands is not known here, so nobody can say whether the watermark is past it; "
            "--search looks for it",
            short="no row, and its place is not known",
        )
    at = f"{place.partition}"
    mark = next(
        (
            each
            for each in marks
            if (each.group, each.topic, each.partition) == (group, topic, place.partition)
        ),
        None,
    )
    if mark is None:
        below, short = False, "not delivered yet"
        said = (
            f"not delivered yet: the group has no watermark of partition {at}, so it has never read it here"
        )
    elif place.offset >= mark.offset:
        below, short = False, "not delivered yet"
        said = (
            f"not delivered yet, or not done yet: the watermark of partition {at} stands at {mark.offset}, "
            f"{counted(place.offset - mark.offset, 'offset')} before it"
        )
    else:
        below, short = True, "below the watermark: done before, or its row is gone"
        kept = "" if days is None else f"; the inbox keeps rows for {days} days"
        said = f"{short}: the watermark of partition {at} stands at {mark.offset}, beyond it{kept}"
    return Awaited(
        group=group,
        topic=topic,
        partition=place.partition,
        offset=place.offset,
        watermark=None if mark is None else mark.offset,
        below=below,
        said=said,
        short=short,
    )
