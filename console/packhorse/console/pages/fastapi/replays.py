"""Pages: replays of ranges, from the plan to the proof."""

from typing import Annotated

from fastapi import APIRouter, Path, Request
from fastapi.responses import Response
from pydantic import Field

from packhorse.console.api.models.base import Count, Key, Name
from packhorse.console.api.models.replays import Offset, ResumeReplayBody
from packhorse.console.pages.fastapi.answers import onward, page
from packhorse.console.pages.fastapi.joints import Asked, Asking, At, Form, Query, come_back, read
from packhorse.console.pages.running import Act, replay_acts, replay_offer, replay_segments, replay_stages
from packhorse.console.replaying.wanted import MOST_RATE, Wanted
from packhorse.console.service import Service
from packhorse.core.clock import SYSTEM_CLOCK
from packhorse.core.moments import span_from
from packhorse.core.rights import Right

router = APIRouter()
Number = Annotated[int, Path(ge=1, le=2**63 - 1)]
ROOM = "/runs"
_OPEN = frozenset({"running", "paused", "halted"})
_Flag = Annotated[bool, Field()]


class ReplayForm(Asked):
    """
    What the form of a plan asks; lists are parted by blanks, commas or lines.

    Attributes:
        since, until: As a person types a time.
        again: Also what is done is done once more.
    """

    group: Name
    topic: Name
    partition: Count | None = None
    from_offset: Offset | None = None
    to_offset: Offset | None = None
    since: Annotated[str, Field(max_length=100)] | None = None
    until: Annotated[str, Field(max_length=100)] | None = None
    types: Annotated[str, Field(max_length=10_000)] = ""
    keys: Annotated[str, Field(max_length=100_000)] = ""
    again: _Flag = False
    with_discarded: _Flag = False
    beyond: _Flag = False
    handler: Name | None = None
    rate: Annotated[float, Field(ge=0.1, le=MOST_RATE)] = 500.0
    most_failures: Count = 10

    def wanted(self) -> Wanted:
        """Return what the service is asked for. Raises UsageError."""
        since, until = span_from(self.since, self.until, now=SYSTEM_CLOCK.now())
        return Wanted(
            group=self.group,
            topic=self.topic,
            partitions=() if self.partition is None else (self.partition,),
            from_offset=self.from_offset,
            to_offset=self.to_offset,
            since=since,
            until=until,
            types=tuple(self.types.replace(",", " ").split()),
            keys=tuple(line for line in self.keys.splitlines() if line),
            again=self.again,
            with_discarded=self.with_discarded,
            beyond=self.beyond,
            handler=self.handler,
            rate=self.rate,
            most_failures=self.most_failures,
        )


class NewAsked(Asked):
    """What the form begins with."""

    group: Key | None = None
    topic: Key | None = None
    partition: Count | None = None
    from_offset: Offset | None = None


@router.get("/replays/new")
def new(desk: At, query: Query) -> Response:
    """Ask what is to be replayed."""
    return page(
        "replay-new.html",
        desk,
        room=ROOM,
        asked=read(NewAsked, query),
        may=desk.may_act,
        needs=Right.ACT.value,
    )


@router.post("/replays/new")
def plan(service: Asking, request: Request, form: Form) -> Response:
    """Read the range once, keep the plan for an hour, and show it; nothing is replayed."""
    come_back(request, "/replays/new")
    service.people.me().check(Right.ACT, doing="plan a replay")  # before a broker is asked for its records
    made = service.replays.plan(read(ReplayForm, form).wanted(), tell=_unheard)
    return onward(f"/replays/{made.run}")


@router.get("/replays/{number}")
def replay(service: Asking, desk: At, number: Number) -> Response:
    """Show one replay: the range, what a person should know, how far it is."""
    run = service.replays.show(number)
    return page(
        "replay.html",
        desk,
        room=ROOM,
        run=run,
        now=run.progress,
        stages=replay_stages(run),
        segments=replay_segments(run),
        acts=replay_acts(run),
        is_live=run.state in _OPEN or run.progress.unproved > 0,
    )


@router.get("/replays/{number}/{act}")
def replay_preview(service: Asking, desk: At, number: Number, act: Act) -> Response:
    """Say what an act on a replay will do."""
    return page(
        "act.html", desk, room=ROOM, offer=replay_offer(service.replays.show(number), act, desk.standing)
    )


@router.post("/replays/{number}/{act}")
def replay_act(service: Asking, request: Request, number: Number, act: Act, form: Form) -> Response:
    """Do it, and show how far it is."""
    path = come_back(request, f"/replays/{number}")
    _do(service, number, act, why=read(ResumeReplayBody, form).why)
    return onward(path)


def _do(service: Service, number: int, act: Act, *, why: str) -> None:
    room = service.replays
    acts = {Act.RUN: room.confirm, Act.PAUSE: room.pause, Act.RESUME: room.resume, Act.STOP: room.stop}
    acts[act](number, why=why)


def _unheard(text: str) -> None:
    del text
