"""Pages: acts on one job, each from its preview to what proves it."""

import json
from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Request
from fastapi.responses import Response
from pydantic import BeforeValidator, Field

from packhorse.console.api.fastapi.joints import checked_order
from packhorse.console.api.models.base import NO_NUL, WHOLE, Count, Why
from packhorse.console.api.models.quarantine import OrderBody
from packhorse.console.jobs.deciding import Verdict, chosen_effect
from packhorse.console.jobs.model import Shown
from packhorse.console.pages import job_offers, job_stages
from packhorse.console.pages.fastapi.answers import Desk, onward, page
from packhorse.console.pages.fastapi.jobs import shown_values
from packhorse.console.pages.fastapi.joints import Asked, Asking, At, Form, Query, come_back, read
from packhorse.console.pages.offers import Stage
from packhorse.console.service import Service
from packhorse.console.truth.jobs import Effect
from packhorse.console.truth.moments import utc
from packhorse.core.errors import UsageError
from packhorse.core.jobs import JobState

router = APIRouter(prefix="/jobs/{job_id}")
EffectKey = Annotated[str, Field(min_length=1, max_length=2_000, pattern=NO_NUL), WHOLE]


def _value(text: object) -> object:
    """Return the value that *text* is in JSON; what is no JSON is not repeated."""
    try:
        return json.loads(text, parse_constant=_no_number) if isinstance(text, str) else text
    except (ValueError, RecursionError):
        raise ValueError('it is no JSON: write it as {"charge": "ch_17"} or "ok"') from None


def _no_number(text: str) -> object:
    raise ValueError(text)


class WhyForm(Asked):
    """Why the act is done."""

    why: Why


class CancelForm(WhyForm):
    """The state in which the job was when the person was told what to cancel it means."""

    seen: JobState


class RedriveForm(OrderBody):
    """The order of the preview, and the reason."""

    why: Why


class ResolveForm(WhyForm):
    """What is known of an effect in doubt, which had been called so often when it was looked at."""

    verdict: Verdict
    effect: EffectKey
    calls: Count
    answer: Annotated[Any, BeforeValidator(_value)] = None


class EffectAsked(Asked):
    """Which effect of the job; may be left out where one alone is in doubt."""

    effect: EffectKey | None = None


@router.get("/cancel")
def preview_cancel(service: Asking, desk: At, request: Request, job_id: UUID) -> Response:
    """Say what it would do to cancel the job."""
    shown, now = _looked(service, request, job_id)
    offer = job_offers.cancel_offer(shown.facts, now, desk.standing)
    return page("act.html", desk, room="/jobs", offer=offer)


@router.post("/cancel")
def cancel(service: Asking, request: Request, job_id: UUID, form: Form) -> Response:
    """Take the job back, or ask its worker to stop: whichever of the two was shown."""
    back = _back(request, job_id)
    given = read(CancelForm, form)
    service.jobs.cancel(job_id, why=given.why, seen=given.seen)
    return onward(f"{back}/cancel/asked")


@router.get("/cancel/asked")
def cancel_asked(service: Asking, desk: At, request: Request, job_id: UUID) -> Response:
    """Show how far the cancelling has come."""
    shown, _ = _looked(service, request, job_id)
    facts = shown.facts
    return _how_far(desk, shown, job_stages.cancel_stages(facts), job_stages.cancel_title(facts))


@router.get("/redrive")
def preview_redrive(service: Asking, desk: At, request: Request, job_id: UUID) -> Response:
    """Say what a redrive of the job would do."""
    shown, _ = _looked(service, request, job_id)
    offer = job_offers.redrive_offer(shown.facts, service.jobs.preview(job_id), desk.standing)
    return page("act.html", desk, room="/jobs", offer=offer)


@router.post("/redrive")
def redrive(service: Asking, request: Request, job_id: UUID, form: Form) -> Response:
    """Order exactly the redrive that was shown."""
    back = _back(request, job_id)
    given = read(RedriveForm, form)
    order = OrderBody(**given.model_dump(exclude={"why"})).order()
    service.jobs.redrive(checked_order(order, job_id), why=given.why)
    return onward(f"{back}/redrive/asked")


@router.get("/redrive/asked")
def redrive_asked(service: Asking, desk: At, request: Request, job_id: UUID) -> Response:
    """Show how far the redrive has come."""
    shown, _ = _looked(service, request, job_id)
    return _how_far(desk, shown, job_stages.redrive_stages(shown.status, shown.facts), "Redrive of one job")


@router.get("/send")
def preview_send(service: Asking, desk: At, request: Request, job_id: UUID) -> Response:
    """Say what it would do to write the job's message anew."""
    shown, _ = _looked(service, request, job_id)
    offer = job_offers.send_offer(shown.facts, desk.standing)
    return page("act.html", desk, room="/jobs", offer=offer)


@router.post("/send")
def send(service: Asking, request: Request, job_id: UUID, form: Form) -> Response:
    """Write the job's message anew."""
    back = _back(request, job_id)
    service.jobs.send(job_id, why=read(WhyForm, form).why)
    return onward(f"{back}/send/asked")


@router.get("/send/asked")
def send_asked(service: Asking, desk: At, request: Request, job_id: UUID) -> Response:
    """Show how far the message that was written anew has come."""
    shown, _ = _looked(service, request, job_id)
    return _how_far(desk, shown, job_stages.send_stages(shown.status, shown.facts), "Message written anew")


@router.get("/resolve")
def preview_resolve(service: Asking, desk: At, request: Request, job_id: UUID, query: Query) -> Response:
    """Ask what became of an effect in doubt, and say what follows from each answer."""
    shown, now = _looked(service, request, job_id)
    effect = _meant(shown, read(EffectAsked, query).effect)
    return page(
        "jobs-resolve.html",
        desk,
        room="/jobs",
        offer=job_offers.resolve_offer(shown.facts, effect, desk.standing),
        effect=effect,
        no_before=job_offers.no_before(shown.facts, effect, now),
    )


@router.post("/resolve")
def resolve(service: Asking, request: Request, job_id: UUID, form: Form) -> Response:
    """Put on the record what became of the effect, if it was not called since it was shown."""
    _back(request, job_id)
    given = read(ResolveForm, form)
    if given.answer is not None and given.verdict is not Verdict.HAPPENED:
        raise UsageError("what has not happened was not answered: leave the answer out; nothing was done")
    done = service.jobs.resolve(
        job_id, given.verdict, effect=given.effect, calls=given.calls, answer=given.answer, why=given.why
    )
    return onward(job_offers.said_path(done.id, done.effect))


@router.get("/resolve/asked")
def resolve_asked(service: Asking, desk: At, request: Request, job_id: UUID, query: Query) -> Response:
    """Show what was said of the effect, and how far the job goes on by it."""
    shown, _ = _looked(service, request, job_id)
    effect = _named(shown, read(EffectAsked, query).effect)
    stages = job_stages.resolve_stages(shown.status, shown.facts, effect)
    return _how_far(desk, shown, stages, f"What became of effect {effect.key}")


@router.get("/unmask")
def preview_unmask(service: Asking, desk: At, request: Request, job_id: UUID) -> Response:
    """Say what it means to see all that was put into the job."""
    shown, _ = _looked(service, request, job_id)
    offer = job_offers.unmask_offer(shown.facts, desk.standing)
    return page("act.html", desk, room="/jobs", offer=offer)


@router.post("/unmask")
def unmask(service: Asking, desk: At, request: Request, job_id: UUID, form: Form) -> Response:
    """Show all that was put into the job, on the record; this is the answer itself, for no address leads to it."""
    _back(request, job_id)
    why = read(WhyForm, form).why
    shown = service.jobs.unmask(job_id, why=why, local=utc)
    return page("jobs-unmasked.html", desk, **shown_values(shown), why=why)


def _back(request: Request, job_id: UUID) -> str:
    return come_back(request, f"/jobs/{job_id}")


def _looked(service: Service, request: Request, job_id: UUID) -> tuple[Shown, Any]:
    """Return the job as it is, and the database's time; whatever can't be done now leads back to its page."""
    shown = service.jobs.show(job_id, local=utc)
    _back(request, job_id)
    return shown, shown.status.around.now


def _meant(shown: Shown, key: str | None) -> Effect:
    """Return the effect in doubt that is meant; raises UnknownId, UsageError or OwnershipLost as `chosen_effect`."""
    facts = shown.facts
    named = next((each for each in facts.effects if each.key == key), None)
    return chosen_effect(facts.job.id, facts.in_doubt, named, key)


def _named(shown: Shown, key: str | None) -> Effect:
    """Return the effect of *key*, in doubt or not; raises UnknownId."""
    found = next((each for each in shown.facts.effects if each.key == key), None)
    return found or chosen_effect(shown.facts.job.id, (), None, key or "")


def _how_far(desk: Desk, shown: Shown, stages: tuple[Stage, ...], title: str) -> Response:
    return page(
        "jobs-asked.html",
        desk,
        **shown_values(shown),
        stages=stages,
        title=title,
        waits=job_stages.is_open(stages),
    )
