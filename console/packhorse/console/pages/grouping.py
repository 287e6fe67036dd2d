"""What pages of groups show first, and how far a pause or resume is. Pure: no I/O, no clock."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from packhorse.console.pages.charts import Chart, chart_of
from packhorse.console.pages.offers import Stage
from packhorse.console.pages.showing import ago, moment, worded
from packhorse.console.processing.follows import Following
from packhorse.console.top.flowing import Point, along
from packhorse.console.top.places import PlaceView
from packhorse.console.top.view import LATE, GroupView, Trouble
from packhorse.core.text import counted

MOST_PLACES = 60
"""Partitions that a page names, those with something to see first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicLine:
    """
    One source topic of a group.

    Attributes:
        lag: Offsets behind; None: not known of all of its partitions.
        still: How long the partition with lag that stands longest has not moved; None: none has lag.
    """

    topic: str
    partitions: int
    lag: int | None
    still: timedelta | None

    @property
    def is_late(self) -> bool:
        """Return whether something of it does not move."""
        return self.still is not None and self.still > LATE


def topics_of(places: Iterable[PlaceView]) -> tuple[TopicLine, ...]:
    """Return the source topics that *places* are of, by name."""
    by_topic: dict[str, list[PlaceView]] = {}
    for place in places:
        by_topic.setdefault(place.topic, []).append(place)
    return tuple(_line(topic, by_topic[topic]) for topic in sorted(by_topic))


def places_shown(places: Iterable[PlaceView], topic: str | None = None) -> tuple[PlaceView, ...]:
    """Return the partitions that are worth a line, of *topic* if one is given: those with most lag first, MOST_PLACES at most."""
    wanted = [place for place in places if topic is None or place.topic == topic]
    return tuple(
        sorted(wanted, key=lambda place: (-(place.lag or 0), place.topic, place.partition))[:MOST_PLACES]
    )


def headline_of(group: GroupView, troubles: Sequence[Trouble], *, paused: bool) -> tuple[str, str]:
    """Return how a group stands in a few words, and how that is coloured."""
    if troubles:
        return f"{group.group}: {counted(len(troubles), 'thing')} to look at", "bad"
    if paused:
        return f"{group.group}: paused by a person", "warn"
    if group.quarantined:
        text = counted(group.quarantined, "message in quarantine waits", "messages in quarantine wait")
        return f"{group.group}: flows; {text} for a person", "warn"
    if not group.partitions:
        return f"{group.group}: reads nothing yet", ""
    return f"{group.group}: all is well", ""


def done_of(past: Iterable[Point], group: str, now: datetime) -> Chart:
    """Return the chart of what *group* has done."""
    return chart_of([("done", [(along(point, now), point.done_of.get(group)) for point in past])])


def lag_of(past: Iterable[Point], group: str, now: datetime) -> Chart:
    """Return the chart of how far *group* was behind."""
    return chart_of([("behind", [(along(point, now), point.lag_of.get(group)) for point in past])])


def stages_of_pause(found: Following) -> tuple[Stage, ...]:
    """Return how far the pause that stands is: on record, followed by the processes, and nothing in work any more."""
    assert found.pause is not None
    said = worded("on record, by {}, {}", found.pause.by, ago(found.pause.at, found.at))
    return (
        Stage(name="Recorded", is_done=True, said=said),
        _followed(found),
        Stage(name="At rest", is_done=_is_followed(found) and not found.in_hand, said=_rest_said(found)),
    )


def stages_of_resume(found: Following) -> tuple[Stage, ...]:
    """Return how far the resume is that was ordered last: on record, and followed by the processes."""
    assert found.pause is None
    last = found.last
    said = (
        worded("on record, by {}, {}", last.actor, ago(last.at, found.at))
        if last is not None and last.act == "resume"
        else worded("nothing is paused by just that name")
    )
    return (Stage(name="Recorded", is_done=True, said=said), _followed(found))


def _line(topic: str, places: Sequence[PlaceView]) -> TopicLine:
    lags = [place.lag for place in places if place.lag is not None]
    return TopicLine(
        topic=topic,
        partitions=len(places),
        lag=sum(lags) if len(lags) == len(places) else None,
        still=max((place.still for place in places if place.lag), default=None),
    )


def _is_followed(found: Following) -> bool:
    return bool(found.concerned) and len(found.following) == len(found.concerned)


def _followed(found: Following) -> Stage:
    concerned, following = len(found.concerned), len(found.following)
    if not found.processes:
        said = worded("no process of the group is alive; whoever starts next follows from the beginning")
    elif not concerned:
        said = worded(
            "no living process says that it has a partition of it; whoever is assigned one follows from the beginning"
        )
    elif following < concerned:
        waits = next(each for each in found.concerned if each not in found.following)
        said = worded(
            "{} of {} say so; process {} on {} wrote last {}: they follow within a second and write every five",
            following,
            counted(concerned, "process", "processes"),
            waits.pid,
            waits.host,
            moment(waits.seen_at, "clock"),
        )
    else:
        said = worded(
            "{} with partitions of it say so themselves", counted(concerned, "process", "processes")
        )
    return Stage(name="Followed", is_done=_is_followed(found), said=said)


def _rest_said(found: Following) -> str:
    if found.in_hand:
        return f"{counted(found.in_hand, 'chunk is', 'chunks are')} still in work; what runs ends"
    if not _is_followed(found):
        return "once the processes follow, what runs ends and nothing new begins"
    return "nothing of it is in work"
