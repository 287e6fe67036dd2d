"""Pages: how everything flows, on one screen."""

from collections.abc import Sequence
from datetime import datetime
from urllib.parse import quote

from fastapi import APIRouter, Request
from fastapi.responses import Response

from packhorse.console.pages.charts import Chart, chart_of
from packhorse.console.pages.fastapi.answers import page
from packhorse.console.pages.fastapi.joints import Asking, At
from packhorse.console.top.facts import COUNTED
from packhorse.console.top.flowing import Flow, Point, along
from packhorse.console.top.view import About, Trouble, View
from packhorse.core.rights import Right
from packhorse.core.text import counted

router = APIRouter()


@router.get("/")
def overview(service: Asking, desk: At, request: Request) -> Response:
    """Show what flows, and what is wrong first."""
    desk.standing.check(Right.SEE, doing="look")
    flow: Flow = request.app.state.flow
    view = flow.view(service.top)
    headline, kind = headline_of(view)
    abouts = {each.about for each in view.troubles}
    past = flow.past()
    return page(
        "overview.html",
        desk,
        room="/",
        view=view,
        headline=headline,
        kind=kind,
        counted=COUNTED,
        where=where_of,
        resting=sum(group.quarantined for group in view.groups),
        done=_sum([group.done for group in view.groups]),
        lag=_sum([group.lag for group in view.groups]),
        holds=sum(shard.holds for shard in view.shards),
        relay_is_bad=About.RELAY in abouts,
        groups_are_bad=About.GROUP in abouts,
        failing=sorted(
            (each for group in view.groups for each in group.failing), key=lambda each: -each.messages
        )[:8],
        rates=_rates(past, view.at),
        waits=_waits(past, view.at),
    )


def headline_of(view: View) -> tuple[str, str]:
    """Return the state of everything in a few words, and how it is coloured."""
    resting = sum(group.quarantined for group in view.groups)
    if view.troubles:
        return f"{counted(len(view.troubles), 'thing')} to look at", "bad"
    if resting:
        return (
            f"All flows; {counted(resting, 'message')} in quarantine {'wait' if resting > 1 else 'waits'} for a person",
            "warn",
        )
    return "All is well", ""


def where_of(trouble: Trouble) -> str:
    """Return the page that says more about *trouble*."""
    match trouble.about:
        case About.RELAY:
            return "/relay"
        case About.GROUP:
            return f"/groups/{quote(trouble.name, safe='')}"
        case About.JOBS:
            return "/jobs?stuck=true" if trouble.name == "stuck" else f"/jobs?state={trouble.name}"
        case About.REDRIVE | About.REPLAY:
            return f"/{trouble.about}s/{trouble.name}"


def _sum(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _rates(past: tuple[Point, ...], now: datetime) -> Chart:
    at = [along(point, now) for point in past]
    return chart_of(
        [
            ("written", list(zip(at, [point.written for point in past], strict=True))),
            ("published", list(zip(at, [point.published for point in past], strict=True))),
            ("done", list(zip(at, [point.done for point in past], strict=True))),
        ]
    )


def _waits(past: tuple[Point, ...], now: datetime) -> Chart:
    return chart_of([("all groups", [(along(point, now), point.lag) for point in past])])
