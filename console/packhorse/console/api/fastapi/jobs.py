"""Routes: how jobs stand, and acts on one."""

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Query

from packhorse.console.api.fastapi.answers import JsonAnswer
from packhorse.console.api.fastapi.joints import Asking, behind, checked_order, needs
from packhorse.console.api.models.failures import WhyBody
from packhorse.console.api.models.jobs import (
    CancellingAnswer,
    JobCountsAnswer,
    JobsAnswer,
    JobsAsked,
    JobSentAnswer,
    JobShowAsked,
    JobShownAnswer,
    ResolutionAnswer,
    ResolveBody,
)
from packhorse.console.api.models.quarantine import ActBody, PreviewAnswer, RedriveAnswer
from packhorse.console.jobs.deciding import Verdict
from packhorse.console.jobs.model import position_from
from packhorse.console.jobs.render import page_json, shown_json
from packhorse.console.render import preview_json
from packhorse.console.truth.moments import utc
from packhorse.core.errors import UsageError
from packhorse.core.rights import Right

router = APIRouter(prefix="/jobs", tags=["jobs"])


@router.get("", response_model=JobsAnswer, openapi_extra=needs(Right.SEE))
def jobs(service: Asking, asked: Annotated[JobsAsked, Query()]) -> JsonAnswer:
    """List jobs, the newest first, in pages."""
    page = service.jobs.page(asked.filter(), after=behind(asked.after, position_from), limit=asked.limit)
    return JsonAnswer(page_json(page, show_key=asked.show_key))


@router.get("/counts", response_model=JobCountsAnswer, openapi_extra=needs(Right.SEE))
def job_counts(service: Asking) -> JsonAnswer:
    """Count jobs by state and type, at a cost that millions of finished ones do not raise; says which numbers are not exact."""
    return JsonAnswer(service.jobs.counts())


@router.get("/{job_id}", response_model=JobShownAnswer, openapi_extra=needs(Right.SEE))
def job_show(service: Asking, job_id: UUID, asked: Annotated[JobShowAsked, Query()]) -> JsonAnswer:
    """Show one job: how it stands, what it waits for, progress, lease, history, steps, outside effects, error."""
    shown = service.jobs.show(job_id, local=utc, with_input=asked.input)
    return JsonAnswer(shown_json(shown, show_key=asked.show_key))


@router.post("/{job_id}/unmask", response_model=JobShownAnswer, openapi_extra=needs(Right.PERSONAL))
def job_unmask(service: Asking, job_id: UUID, body: WhyBody) -> JsonAnswer:
    """Show one job with input, result, steps' results and answers as they are; that is on record before anything of it is decoded."""
    return JsonAnswer(shown_json(service.jobs.unmask(job_id, why=body.why, local=utc), show_key=True))


@router.post("/{job_id}/cancel", response_model=CancellingAnswer, openapi_extra=needs(Right.ACT))
def job_cancel(service: Asking, job_id: UUID, body: WhyBody) -> JsonAnswer:
    """Take a job back, on the record: at once where nobody runs it, else its worker is asked to stop."""
    return JsonAnswer(service.jobs.cancel(job_id, why=body.why))


@router.post("/{job_id}/redrive/preview", response_model=PreviewAnswer, openapi_extra=needs(Right.SEE))
def job_redrive_preview(service: Asking, job_id: UUID) -> JsonAnswer:
    """Say what a redrive of a job would do; its `order` goes into the act. Changes nothing."""
    return JsonAnswer(preview_json(service.jobs.preview(job_id)))


@router.post("/{job_id}/redrive", response_model=RedriveAnswer, openapi_extra=needs(Right.ACT))
def job_redrive(service: Asking, job_id: UUID, body: ActBody) -> JsonAnswer:
    """Send a job back that failed for good or is uncertain: exactly what was previewed, once, on the record."""
    order = checked_order(body.order.order(), job_id)
    actor = service.people.actor()
    at = service.jobs.redrive(order, why=body.why)
    return JsonAnswer({"state": "asked", "asked_at": at, "actor": actor})


@router.post("/{job_id}/send", response_model=JobSentAnswer, openapi_extra=needs(Right.ACT))
def job_send(service: Asking, job_id: UUID, body: WhyBody) -> JsonAnswer:
    """Write the message of an accepted job anew, on the record, where neither outbox nor inbox know it; an old copy is a duplicate."""
    actor = service.people.actor()
    return JsonAnswer(
        {"state": "sent anew", "sent_at": service.jobs.send(job_id, why=body.why), "actor": actor}
    )


@router.post("/{job_id}/resolve", response_model=ResolutionAnswer, openapi_extra=needs(Right.ACT))
def job_resolve(service: Asking, job_id: UUID, body: ResolveBody) -> JsonAnswer:
    """
    Say whether an outside effect in doubt has happened, on the record.

    What has happened is not called again, what has not is called with the same idempotency key; when no effect of an uncertain job
    is in doubt any more, it goes on by itself.
    """
    if body.answer is not None and body.verdict is not Verdict.HAPPENED:
        raise UsageError("what has not happened was not answered: leave the answer out; nothing was done")
    done = service.jobs.resolve(
        job_id, body.verdict, effect=body.effect, calls=body.calls, answer=body.answer, why=body.why
    )
    return JsonAnswer(done)
