"""Pages: one group of failures, and what people know of it."""

from datetime import timedelta
from typing import Annotated

from fastapi import APIRouter, Path, Request
from fastapi.responses import Response

from packhorse.console.api.models.failures import NoteBody, WhyBody
from packhorse.console.pages.deciding import acknowledge_offer, group_at, take_back_offer
from packhorse.console.pages.fastapi.answers import onward, page
from packhorse.console.pages.fastapi.joints import Asking, At, Form, come_back, read
from packhorse.console.pages.resting import DAYS, address, arrivals_of, whole_way
from packhorse.console.quarantine.groups.model import uncounted_line
from packhorse.console.quarantine.groups.render import for_good_line, next_steps
from packhorse.console.quarantine.pages import Filter
from packhorse.core.clock import SYSTEM_CLOCK

router = APIRouter(prefix="/quarantine/failures")
Print = Annotated[str, Path(pattern="^[0-9a-f]{8,32}$")]
SOME = 10
"""Messages of a group that its page shows."""


@router.get("/{failure}")
def group(service: Asking, desk: At, failure: Print) -> Response:
    """Show one group whole: how much of it there is and when it came, what people know of it, and its newest messages."""
    now = SYSTEM_CLOCK.now()
    shown = service.groups.show(failure)
    print_, today = shown.group.name, now.date()
    first = today - timedelta(days=DAYS - 1)
    found = service.quarantine.page(Filter(failure=print_, state=None), after=None, limit=SOME)
    days = {day.day: day.quarantined + day.redriven + day.discarded for day in shown.days}
    return page(
        "quarantine-group.html",
        desk,
        room="/quarantine",
        now=now,
        shown=shown,
        for_good=for_good_line(shown.for_good),
        uncounted_line=uncounted_line,
        arrivals=arrivals_of(days, first, today),
        some=found.messages,
        steps=next_steps(shown.group),
        at=group_at,
        messages=address("/quarantine/messages", failure=print_),
        all_messages=address("/quarantine/messages", failure=print_, state="all"),
        redrive=address("/quarantine/redrive", failure=print_),
        whole_way=whole_way,
    )


@router.post("/{failure}/note")
def note(service: Asking, form: Form, request: Request, failure: Print) -> Response:
    """Write a note about the group, on the record."""
    come_back(request, group_at(failure))
    found, _ = service.groups.note(failure, read(NoteBody, form).text)
    return onward(f"{group_at(found)}#notes")


@router.get("/{failure}/acknowledge")
def offer_to_acknowledge(service: Asking, desk: At, failure: Print) -> Response:
    """Say what it means to acknowledge the group."""
    offer = acknowledge_offer(service.groups.show(failure), may=desk.may_act)
    return page("act.html", desk, room="/quarantine", offer=offer)


@router.post("/{failure}/acknowledge")
def acknowledge(service: Asking, form: Form, request: Request, failure: Print) -> Response:
    """Acknowledge the group, on the record."""
    come_back(request, group_at(failure))
    found, _ = service.groups.acknowledge(failure, why=read(WhyBody, form).why)
    return onward(group_at(found))


@router.get("/{failure}/unacknowledge")
def offer_to_take_back(service: Asking, desk: At, failure: Print) -> Response:
    """Say what it means to take the acknowledgement back."""
    offer = take_back_offer(service.groups.show(failure), may=desk.may_act)
    return page("act.html", desk, room="/quarantine", offer=offer)


@router.post("/{failure}/unacknowledge")
def take_back(service: Asking, form: Form, request: Request, failure: Print) -> Response:
    """Take the acknowledgement back, on the record."""
    come_back(request, group_at(failure))
    found, _ = service.groups.unacknowledge(failure, why=read(WhyBody, form).why)
    return onward(group_at(found))
