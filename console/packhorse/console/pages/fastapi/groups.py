"""Pages: groups, and one from inside."""

from typing import Annotated, Any
from urllib.parse import quote, urlencode

from fastapi import APIRouter, Request
from fastapi.responses import Response
from pydantic import Field

from packhorse.console.api.models.base import Cursor, Name
from packhorse.console.pages.fastapi.answers import page
from packhorse.console.pages.fastapi.joints import Asked, Asking, At, Query, read
from packhorse.console.pages.grouping import done_of, headline_of, lag_of, places_shown, topics_of
from packhorse.console.processing.model import DUE_FIRST, KEYS
from packhorse.console.top.facts import COUNTED, Waiting
from packhorse.console.top.flowing import Flow
from packhorse.console.top.view import LATE, About, GroupView, View
from packhorse.core.errors import SettingsError
from packhorse.core.rights import Right

router = APIRouter()
FIRST_KEYS = 8
"""Parked keys that the page of a group names."""


class GroupAsked(Asked):
    """Which partitions are shown: without `topic`, those with most lag."""

    topic: Name | None = None


class ParkedAsked(Asked):
    """Which page of the parked keys."""

    after: Cursor | None = None


class OffsetsAsked(Asked):
    """Of which source topic."""

    topic: Annotated[Name, Field()]


@router.get("/groups")
def groups(service: Asking, desk: At, request: Request) -> Response:
    """Show all groups, and what is wrong with them first."""
    desk.standing.check(Right.SEE, doing="look")
    flow: Flow = request.app.state.flow
    view = flow.view(service.top)
    troubles = [each for each in view.troubles if each.about is About.GROUP]
    return page(
        "groups.html",
        desk,
        room="/groups",
        view=view,
        troubles=troubles,
        troubled={each.name for each in troubles},
        paused={each.group for each in view.paused},
        topics={group.group: topics_of(view.places.get(group.group, ())) for group in view.groups},
        counted=COUNTED,
        link=group_path,
    )


@router.get("/groups/{group:path}/parked")
def parked(service: Asking, desk: At, group: str, query: Query) -> Response:
    """Show the keys that are parked, those that are for longest first."""
    asked = read(ParkedAsked, query)
    inside = service.processing.inside(group)
    return page(
        "group_parked.html",
        desk,
        room="/groups",
        group=group,
        inside=inside,
        found=service.processing.parked(group, after=asked.after),
        asked=query,
        most=KEYS,
        link=group_path,
    )


@router.get("/groups/{group:path}/offsets")
def offsets(service: Asking, desk: At, group: str, query: Query) -> Response:
    """Show where the group stands in one topic by watermark, by committed offset, and by what the topic holds."""
    desk.standing.check(Right.SEE, doing="look")
    asked = read(OffsetsAsked, query)
    found, said = [], None
    try:
        found = service.offsets.show(group, asked.topic)
    except SettingsError as error:  # no broker: what can't be asked is said in the place where it would stand
        said = str(error)
    return page(
        "group_offsets.html",
        desk,
        room="/groups",
        group=group,
        topic=asked.topic,
        found=found,
        said=said,
        link=group_path,
    )


@router.get("/groups/{group:path}")
def group(service: Asking, desk: At, group: str, query: Query, request: Request) -> Response:
    """Show one group from inside."""
    asked = read(GroupAsked, query)
    inside = service.processing.inside(group)
    flow: Flow = request.app.state.flow
    view = flow.view(service.top)
    own = next((each for each in view.groups if each.group == group), None) or _new(group)
    troubles = [each for each in view.troubles if each.about is About.GROUP and each.name == group]
    headline, kind = headline_of(own, troubles, paused=bool(inside.pauses))
    few = own.waiting.parked_keys < COUNTED
    places = view.places.get(group, ())
    return page(
        "group.html",
        desk,
        room="/groups",
        view=view,
        group=own,
        inside=inside,
        headline=headline,
        kind=kind,
        troubles=troubles,
        topics=topics_of(places),
        places=places_shown(places, asked.topic),
        places_of=len(places) if asked.topic is None else sum(place.topic == asked.topic for place in places),
        asked=asked,
        keys=service.processing.parked(group, limit=FIRST_KEYS).keys
        if few and own.waiting.parked_keys
        else (),
        paused={(row.topic, row.partition) for row in inside.pauses},
        charts=_charts(flow, view, group),
        counted=COUNTED,
        due_first=DUE_FIRST,
        late=LATE,
        link=group_path,
    )


def group_path(group: str, behind: str = "", **query: object) -> str:
    """
    Return the address of a group's page, or of the one *behind* it.

    >>> group_path("a/b", "/pause", topic="x", partition=None)
    '/groups/a%2Fb/pause?topic=x'
    """
    given = {name: value for name, value in query.items() if value is not None}
    return f"/groups/{quote(group, safe='')}{behind}" + (f"?{urlencode(given)}" if given else "")


def _charts(flow: Flow, view: View, group: str) -> Any:
    past = flow.past()
    return done_of(past, group, view.at), lag_of(past, group, view.at)


def _new(group: str) -> GroupView:
    """Return a group that the last look did not know."""
    return GroupView(
        group=group,
        partitions=0,
        lag=None,
        lag_said="not known yet",
        done=None,
        still=None,
        behind=(),
        overdue=None,
        waiting=Waiting(group=group),
        quarantined=0,
        failing=(),
        alive=0,
        dead=0,
        versions=(),
        stalls=(),
        stopped=(),
        unwell=(),
    )
