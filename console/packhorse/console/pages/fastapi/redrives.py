"""Pages: redrives of frozen sets, and the list of all runs."""

from typing import Annotated

from fastapi import APIRouter, Path, Request
from fastapi.responses import Response

from packhorse.console.api.models.failures import WhyBody
from packhorse.console.pages.fastapi.answers import onward, page
from packhorse.console.pages.fastapi.joints import Asked, Asking, At, Form, Query, come_back, read
from packhorse.console.pages.running import (
    Act,
    redrive_acts,
    redrive_offer,
    redrive_segments,
    redrive_stages,
    replay_segments,
)
from packhorse.console.redriving.records import OPEN, RunState
from packhorse.console.redriving.render import standing as standing_of
from packhorse.console.redriving.tallying import Member
from packhorse.console.service import Service

router = APIRouter()
Number = Annotated[int, Path(ge=1, le=2**53)]
ROOM = "/runs"
SHOWN = 50


class RunsAsked(Asked):
    """Which redrives: older than this one."""

    before: Annotated[int, Path(ge=1, le=2**53)] | None = None


class MembersAsked(Asked):
    """Which members: in which state, behind which number."""

    state: Member | None = None
    after: int = 0


@router.get("/runs")
def runs(service: Asking, desk: At, query: Query) -> Response:
    """List redrives and replays, the newest first."""
    asked = read(RunsAsked, query)
    redrives = service.redrives.page(before=asked.before, limit=SHOWN)
    replays = () if asked.before else tuple(service.replays.list(limit=SHOWN))
    return page(
        "runs.html",
        desk,
        room=ROOM,
        redrives=redrives,
        replays=replays,
        before=redrives[-1].id if len(redrives) == SHOWN else None,
        segments=replay_segments,
    )


@router.get("/redrives/{number}")
def redrive(service: Asking, desk: At, number: Number, query: Query) -> Response:
    """Show one redrive: its set, what speaks against it, how far it is, and its members."""
    asked = read(MembersAsked, query)
    row, progress = service.redrives.find(number)
    members = service.redrives.members(number, state=asked.state, after=asked.after, limit=SHOWN)
    return page(
        "redrive.html",
        desk,
        room=ROOM,
        row=row,
        progress=progress,
        standing=standing_of(row),
        stages=redrive_stages(row, progress),
        segments=redrive_segments(progress),
        acts=redrive_acts(row),
        is_live=row.state in OPEN or (row.state is RunState.ENDED and progress.asked > 0),
        members=members,
        states=tuple(Member),
        asked=query,
        state=asked.state,
        following=members[-1].ordinal if len(members) == SHOWN else None,
    )


@router.get("/redrives/{number}/{act}")
def redrive_preview(service: Asking, desk: At, number: Number, act: Act) -> Response:
    """Say what an act on a redrive will do."""
    row, _ = service.redrives.find(number)
    return page("act.html", desk, room=ROOM, offer=redrive_offer(row, act, desk.standing))


@router.post("/redrives/{number}/{act}")
def redrive_act(service: Asking, request: Request, number: Number, act: Act, form: Form) -> Response:
    """Do it, and show how far it is."""
    path = come_back(request, f"/redrives/{number}")
    _do(service, number, act, why=read(WhyBody, form).why)
    return onward(path)


def _do(service: Service, number: int, act: Act, *, why: str) -> None:
    room = service.redrives
    acts = {Act.RUN: room.confirm, Act.PAUSE: room.pause, Act.RESUME: room.resume, Act.ABORT: room.abort}
    acts[act](number, why=why)
