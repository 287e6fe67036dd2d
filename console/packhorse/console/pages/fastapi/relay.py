"""Pages: the relay, what it holds, and orders to release a hold or give up a row."""

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Request
from fastapi.responses import Response
from pydantic import Field

from packhorse.console.api.models.base import Cursor, Why
from packhorse.console.pages.charts import Chart, chart_of
from packhorse.console.pages.fastapi.answers import Desk, onward, page
from packhorse.console.pages.fastapi.joints import Asked, Asking, At, Form, Query, come_back, read
from packhorse.console.pages.holding import (
    headline_of,
    next_said,
    orders_from,
    orders_text,
    scope_said,
    stages_of,
    standing_of,
)
from packhorse.console.pages.offers import Offer
from packhorse.console.pages.showing import moment, number
from packhorse.console.relaying.model import COUNTED, GivenUp, HoldOrder, order_of
from packhorse.console.top.flowing import Flow, along
from packhorse.console.top.view import LATE, About, View
from packhorse.core.errors import UsageError
from packhorse.core.rights import Right
from packhorse.core.text import counted
from packhorse.relay.orders.model import HoldView

router = APIRouter()
FIRST_HOLDS = 20
"""Holds that the relay's page names."""


class HoldsAsked(Asked):
    """Which holds: the open ones, or those that are over too."""

    ended: bool = False
    after: Cursor | None = None


class HoldAsked(Asked):
    """Whether the key is shown."""

    show_key: bool = False


class ReleaseAsked(Asked):
    """Which holds, by their numbers, parted by commas."""

    ids: Annotated[str, Field(max_length=4_000, pattern="^[0-9]{1,19}(,[0-9]{1,19})*$")]


class RowAsked(Asked):
    """Which row is to be given up."""

    row: UUID


class ReleaseForm(Asked):
    """A release that was previewed, and what was shown of each hold."""

    orders: Annotated[str, Field(max_length=50_000)]
    rate: Annotated[int | None, Field(ge=1, le=10_000_000)] = None
    why: Why


class DiscardForm(Asked):
    """A row that was previewed, and what was shown of its hold."""

    orders: Annotated[str, Field(max_length=1_000)]
    row: UUID
    why: Why


@router.get("/relay")
def relay(service: Asking, desk: At, request: Request) -> Response:
    """Show shards, who carries them, what waits, and what is held."""
    desk.standing.check(Right.SEE, doing="look")
    flow: Flow = request.app.state.flow
    view = flow.view(service.top)
    relays = service.relaying.relays()
    troubles = [each for each in view.troubles if each.about is About.RELAY]
    headline, kind = headline_of(relays, troubles)
    written, waits = _charts(flow, view)
    return page(
        "relay.html",
        desk,
        room="/relay",
        view=view,
        relays=relays,
        troubles=troubles,
        headline=headline,
        kind=kind,
        holds=service.relaying.holds(limit=FIRST_HOLDS),
        written=written,
        waits=waits,
        counted=COUNTED,
        late=LATE.total_seconds(),
        scope=scope_said,
        standing=standing_of,
    )


@router.get("/relay/holds")
def holds(service: Asking, desk: At, query: Query) -> Response:
    """Show what is held, in pages."""
    desk.standing.check(Right.SEE, doing="look")
    asked = read(HoldsAsked, query)
    return page(
        "relay_holds.html",
        desk,
        room="/relay",
        asked=asked,
        query=query,
        found=service.relaying.holds(ended=asked.ended, after=asked.after),
        scope=scope_said,
        standing=standing_of,
    )


@router.get("/relay/holds/release")
def release_preview(service: Asking, desk: At, query: Query) -> Response:
    """Show what a release would send."""
    desk.standing.check(Right.SEE, doing="look")
    ids = [int(id_) for id_ in read(ReleaseAsked, query).ids.split(",")]
    views = service.relaying.release_preview(ids)
    return page(
        "relay_release.html",
        desk,
        room="/relay",
        offer=_release_offer(desk, views),
        views=views,
        scope=scope_said,
        waiting=service.relaying.hold(views[0].id).waiting if len(views) == 1 else None,
    )


@router.post("/relay/holds/release")
def release(service: Asking, form: Form, request: Request) -> Response:
    """Order the release of what was previewed."""
    asked = read(ReleaseForm, form)
    orders = orders_from(asked.orders)
    path = come_back(request, _after(orders))
    service.relaying.release(orders, why=asked.why, rate=asked.rate)
    return onward(path)


@router.get("/relay/holds/{hold}/discard")
def discard_preview(service: Asking, desk: At, hold: int, query: Query) -> Response:
    """Show which row would be given up."""
    desk.standing.check(Right.SEE, doing="look")
    found = service.relaying.discard_preview(hold, read(RowAsked, query).row)
    return page("act.html", desk, room="/relay", offer=_discard_offer(desk, found))


@router.post("/relay/holds/{hold}/discard")
def discard(service: Asking, hold: int, form: Form, request: Request) -> Response:
    """Give up the row that was previewed, and order the release of its hold without it."""
    path = come_back(request, f"/relay/holds/{hold}")
    asked = read(DiscardForm, form)
    orders = orders_from(asked.orders)
    if [order.id for order in orders] != [hold]:
        raise UsageError("the order is of another hold; nothing was done, preview it again")
    service.relaying.discard(orders[0], asked.row, why=asked.why)
    return onward(path)


@router.get("/relay/holds/{hold}")
def hold(service: Asking, desk: At, hold: int, query: Query) -> Response:
    """Show one hold whole, and how far the order about it is."""
    desk.standing.check(Right.SEE, doing="look")
    asked = read(HoldAsked, query)
    found = service.relaying.hold(hold)
    return page(
        "relay_hold.html",
        desk,
        room="/relay",
        found=found,
        hold=found.view,
        stages=stages_of(found),
        scope=scope_said(found.view),
        standing=standing_of(found.view),
        next=next_said(found.view),
        show_key=asked.show_key,
    )


def _after(orders: list[HoldOrder]) -> str:
    return f"/relay/holds/{orders[0].id}" if len(orders) == 1 else "/relay"


def _release_offer(desk: Desk, views: list[HoldView]) -> Offer:
    one = len(views) == 1
    what = f"hold {views[0].id}" if one else counted(len(views), "hold")
    unowned = sorted({view.shard for view in views if not view.owned})
    warnings = []
    if any(not view.hold.fault.heals for view in views):
        warnings.append(
            "Mend the reason first: what can't be sent for the same reason is held again, and the order counts as failed."
        )
    if unowned:
        warnings.append(
            f"No relay owns shard {', '.join(map(str, unowned))}: the order stands, and nothing is sent until one runs."
        )
    return Offer(
        title=f"Release {what}",
        happens=(
            "The order goes on the record, with your name and why. It is an order: only the relay's owner sends.",
            "The owner begins within seconds: what waited leaves in its order, and nothing of the same key overtakes it.",
            "The hold ends where it meets the relay; new rows flow then. If it fails again, it is held again, and says why.",
        ),
        action="/relay/holds/release",
        hidden={"orders": orders_text([order_of(view) for view in views])},
        button=f"Release {what}",
        back=_after([order_of(view) for view in views]),
        may=desk.may_act,
        needs=Right.ACT,
        warnings=tuple(warnings),
    )


def _discard_offer(desk: Desk, found: GivenUp) -> Offer:
    view, row = found.view, found.row
    return Offer(
        title="Give up one row of the outbox",
        happens=(
            "The row is never published: no group will ever see this message. That can't be taken back.",
            f"Hold {view.id} is released without it: what stands behind it leaves in order, sent by the relay's owner alone.",
            "The row stays in the outbox until its day is removed, and the record says who gave it up, and why.",
        ),
        action=f"/relay/holds/{view.id}/discard",
        hidden={"orders": orders_text([order_of(view)]), "row": row.id},
        button="Give up this row",
        back=f"/relay/holds/{view.id}",
        may=desk.may_act,
        needs=Right.ACT,
        is_danger=True,
        facts=(
            ("Row", row.id),
            ("Seq", number(row.seq)),
            ("Type", row.type),
            ("Written", "an unknown time" if row.created_at is None else moment(row.created_at)),
            ("Hold", f"{view.id}: {scope_said(view)}"),
            ("Reason", f"{view.hold.fault.code}: {view.hold.fault.reason}"),
        ),
    )


def _charts(flow: Flow, view: View) -> tuple[Chart, Chart]:
    past = flow.past()
    at = [along(point, view.at) for point in past]
    return (
        chart_of(
            [
                ("written", list(zip(at, [point.written for point in past], strict=True))),
                ("published", list(zip(at, [point.published for point in past], strict=True))),
            ]
        ),
        chart_of([("oldest row", list(zip(at, [point.oldest for point in past], strict=True)))]),
    )
