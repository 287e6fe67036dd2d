"""Pages: pause and resume a group, a topic or a partition; and whether its processes follow."""

from fastapi import APIRouter, Request
from fastapi.responses import Response

from packhorse.console.api.models.base import Count, Moment, Name, Why
from packhorse.console.pages.fastapi.answers import Desk, onward, page
from packhorse.console.pages.fastapi.groups import group_path
from packhorse.console.pages.fastapi.joints import Asked, Asking, At, Form, Query, come_back, read
from packhorse.console.pages.grouping import stages_of_pause, stages_of_resume
from packhorse.console.pages.offers import Offer
from packhorse.console.pages.showing import ago, worded
from packhorse.console.pausing.render import named
from packhorse.console.processing.follows import Following
from packhorse.core.errors import OwnershipLost
from packhorse.core.rights import Right
from packhorse.core.text import counted
from packhorse.processor.pausing.pauses import Scope

router = APIRouter()


class Place(Asked):
    """What is paused: without a topic the whole group, without a partition the whole topic."""

    topic: Name | None = None
    partition: Count | None = None

    def scope(self) -> Scope:
        """Return what the service is asked for."""
        return Scope(topic=self.topic, partition=self.partition)


class PauseForm(Place):
    """A pause that was previewed."""

    why: Why


class ResumeForm(Place):
    """A resume that was previewed, and when what it ends was paused."""

    since: Moment
    why: Why


@router.get("/groups/{group:path}/pause")
def pause_preview(service: Asking, desk: At, group: str, query: Query) -> Response:
    """Show what a pause would do."""
    desk.standing.check(Right.SEE, doing="look")
    place = read(Place, query)
    scope = place.scope()
    service.pausing.check(group, scope)
    found = service.processing.following(group, scope)
    if found.pause is not None:
        return onward(_path(group, place))
    return page("act.html", desk, room="/groups", offer=_pause_offer(desk, group, place, found))


@router.post("/groups/{group:path}/pause")
def pause(service: Asking, group: str, form: Form, request: Request) -> Response:
    """Pause it, on the record."""
    asked = read(PauseForm, form)
    path = come_back(request, _path(group, asked))
    if not service.pausing.pause(group, asked.scope(), why=asked.why):
        raise OwnershipLost(f"{named(asked.scope(), group)} was paused already; nothing was done now")
    return onward(path)


@router.get("/groups/{group:path}/resume")
def resume_preview(service: Asking, desk: At, group: str, query: Query) -> Response:
    """Show what a resume would do."""
    desk.standing.check(Right.SEE, doing="look")
    place = read(Place, query)
    found = service.processing.following(group, place.scope())
    if found.pause is None:
        return onward(_path(group, place))
    return page("act.html", desk, room="/groups", offer=_resume_offer(desk, group, place, found))


@router.post("/groups/{group:path}/resume")
def resume(service: Asking, group: str, form: Form, request: Request) -> Response:
    """Let it go on, on the record, if it is the pause that was previewed."""
    asked = read(ResumeForm, form)
    path = come_back(request, _path(group, asked))
    if not service.pausing.resume(group, asked.scope(), why=asked.why, since=asked.since).done:
        raise OwnershipLost(f"{named(asked.scope(), group)} is not paused any more; nothing was done now")
    return onward(path)


@router.get("/groups/{group:path}/paused")
def following(service: Asking, desk: At, group: str, query: Query) -> Response:
    """Show whether it is paused, by whom, and whether the processes follow."""
    desk.standing.check(Right.SEE, doing="look")
    place = read(Place, query)
    found = service.processing.following(group, place.scope())
    return page(
        "group_paused.html",
        desk,
        room="/groups",
        group=group,
        name=named(place.scope(), group),
        found=found,
        stages=stages_of_resume(found) if found.pause is None else stages_of_pause(found),
        resume=group_path(group, "/resume", topic=place.topic, partition=place.partition),
        pause=group_path(group, "/pause", topic=place.topic, partition=place.partition),
        link=group_path,
    )


def _path(group: str, place: Place) -> str:
    return group_path(group, "/paused", topic=place.topic, partition=place.partition)


def _pause_offer(desk: Desk, group: str, place: Place, found: Following) -> Offer:
    scope = place.scope()
    name = named(scope, group)
    warnings = [f"{row.told}: that holds it, or a part of it, already" for row in found.others[:5]]
    if scope.topic is None:
        warnings.insert(0, "It is all of the group: every source topic and tier that it reads stands.")
    return Offer(
        title=f"Pause {name}",
        happens=(
            "The pause goes on the record, with your name and why.",
            "Its processes follow within about a second: what runs ends, nothing new begins. Retries of it wait too.",
            "It stays paused through restarts and rebalances, until somebody resumes it. Offsets and watermarks stay where they are.",
        ),
        action=group_path(group, "/pause"),
        hidden={"topic": place.topic, "partition": place.partition},
        button=f"Pause {scope.what}",
        back=group_path(group),
        may=desk.may_act,
        needs=Right.ACT,
        facts=(("What", name), ("Now", _now(found))),
        warnings=tuple(warnings),
    )


def _resume_offer(desk: Desk, group: str, place: Place, found: Following) -> Offer:
    scope, pause = place.scope(), found.pause
    assert pause is not None
    name = named(scope, group)
    return Offer(
        title=f"Resume {name}",
        happens=(
            "The resume goes on the record, with your name and why.",
            "Its processes follow within about a second, and go on exactly where they were.",
            *(f"{row.told}: that goes on holding it, or a part of it." for row in found.others[:5]),
        ),
        action=group_path(group, "/resume"),
        hidden={"topic": place.topic, "partition": place.partition, "since": pause.at.isoformat()},
        button=f"Resume {scope.what}",
        back=group_path(group),
        may=desk.may_act,
        needs=Right.ACT,
        facts=(
            ("What", name),
            ("Paused", worded("by {}, {}", pause.by, ago(pause.at, found.at))),
            ("Why", pause.why or "no reason on record"),
            ("Now", _now(found)),
        ),
    )


def _now(found: Following) -> str:
    if not found.processes:
        return "no process of the group is alive"
    places = sum(each.partitions for each in found.processes)
    return (
        f"{counted(len(found.concerned), 'living process has', 'living processes have')} {counted(places, 'partition')} of it, "
        f"with {counted(found.in_hand, 'chunk')} in work"
    )
