"""Pages: what rests in quarantine, by what stopped it and message by message."""

from dataclasses import replace
from datetime import date

from fastapi import APIRouter
from fastapi.responses import Response

from packhorse.console.api.fastapi.joints import behind
from packhorse.console.api.models.failures import FailuresAsked
from packhorse.console.api.models.quarantine import PageAsked, StateAsked
from packhorse.console.facts import State
from packhorse.console.pages.fastapi.answers import page
from packhorse.console.pages.fastapi.joints import Asking, At, Query, read
from packhorse.console.pages.freezing import pick_of
from packhorse.console.pages.resting import (
    MOST_DAYS,
    Arrivals,
    address,
    arrivals_of,
    counts_of,
    days_asked,
    headline_of,
    kin_of,
    messages_of,
    narrows,
    set_of,
    timed,
    totals_of,
    whole_way,
)
from packhorse.console.paging import LOOK
from packhorse.console.quarantine.groups.model import By, group_position_from, uncounted_line
from packhorse.console.quarantine.pages import position_from
from packhorse.console.service import Service
from packhorse.core.clock import SYSTEM_CLOCK

router = APIRouter(prefix="/quarantine")
ROOM = "/quarantine"


@router.get("")
def groups(service: Asking, desk: At, query: Query) -> Response:
    """Show what stops, by what it has in common, the largest group first; and on which days it came."""
    now = SYSTEM_CLOCK.now()
    asked = read(FailuresAsked, query)
    after = behind(asked.after, group_position_from)
    found = service.groups.page(asked.filter(), by=asked.by, after=after, limit=asked.limit)
    by_state = service.groups.page(replace(asked.filter(), state=None), by=By.STATE)
    totals = totals_of(by_state.groups)
    headline, kind = headline_of(totals, is_narrow=narrows(asked), is_counting=bool(by_state.uncounted))
    return page(
        "quarantine.html",
        desk,
        room=ROOM,
        now=now,
        asked=asked,
        query=query,
        page=found,
        totals=totals,
        headline=headline,
        kind=kind,
        arrivals=_arrivals(service, asked, now.date()),
        uncounted_line=uncounted_line,
        is_narrow=narrows(asked),
        choices=tuple(By),
        states=tuple(StateAsked),
        kin_of=kin_of,
        messages=address("/quarantine/messages", **messages_of(asked)),
        redrive=address("/quarantine/redrive", **set_of(asked)),
    )


@router.get("/messages")
def messages(service: Asking, desk: At, query: Query) -> Response:
    """List messages in quarantine, the newest first, from one look at a bounded number of them."""
    now = SYSTEM_CLOCK.now()
    tick = query.pop("tick", None)
    resolved = timed(query, now)
    asked = read(PageAsked, resolved)
    after = behind(asked.after, position_from)
    found = service.quarantine.page(asked.filter(), after=after, limit=asked.limit)
    return page(
        "quarantine-messages.html",
        desk,
        room=ROOM,
        now=now,
        asked=asked,
        query=query,
        resolved={name: value for name, value in resolved.items() if name != "after"},
        page=found,
        look=LOOK,
        states=tuple(StateAsked),
        is_narrow=bool(set(query) - {"after", "limit", "show_key", "state"}),
        whole_way=whole_way,
        redrive=_redrive_of(query),
        pick_of=pick_of,
        can_pick=desk.may_act and any(each.state is State.QUARANTINED for each in found.messages),
        all_ticked=tick == "all",
    )


def _redrive_of(query: dict[str, str]) -> str:
    """Return where the set of what is listed is frozen; an id alone names a set of one."""
    names = ("group", "topic", "type", "reason", "failure", "tenant", "key", "text", "since", "until")
    found = {name: query[name] for name in names if name in query}
    return address("/quarantine/redrive", **found, ids=query.get("id"))


def _arrivals(service: Service, asked: FailuresAsked, today: date) -> Arrivals | None:
    if (span := days_asked(asked, today)) is None:
        return None
    first, last = span
    wanted = replace(asked.filter(), state=None, since=first, until=last)
    found = service.groups.page(wanted, by=By.DAY, limit=MOST_DAYS)
    return arrivals_of(counts_of(found.groups), first, last)
