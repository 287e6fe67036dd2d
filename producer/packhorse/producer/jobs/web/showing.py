"""How a job is shown to those who may see it: its state and what goes with it, never its input. Pure: no I/O."""

import hashlib
import math
import re
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from packhorse.core.jobs import CANCELLABLE, NEEDS_PERSON, JobState
from packhorse.core.text import inert
from packhorse.producer.jobs.drafts import JobHandle
from packhorse.producer.jobs.reading import Job
from packhorse.producer.jobs.web.answers import Answer, json_bytes

_CODE: Final = re.compile(r"[a-z][a-z0-9-]{0,63}\Z")
_MOST_TEXT = 500
_ASKED_FOR_PERSON = 60
_MOST_RETRY = 30
_MOST_UNTIL_DUE = 3600


def shown_job(job: Job, *, late: bool, links: Mapping[str, str]) -> dict[str, Any]:
    """
    Return what is shown of *job*, as JSON has it.

    Who acted and in what words stays inside: of a reason its code is shown, and nothing that a person wrote; of an error the text
    that was declared safe, and not where in the code it was.
    """
    succeeded = job.state is JobState.SUCCEEDED
    return {
        "id": str(job.id),
        "type": job.type,
        "state": job.state.value,
        "over": job.finished_at is not None,
        "needs_person": job.state in NEEDS_PERSON,
        "late": late,
        "cancel_asked": job.cancel_asked_at is not None,
        "attempt": job.attempt,
        "progress": _progress(job),
        "reason": job.reason if job.reason and _CODE.match(job.reason) else None,
        "error": None if succeeded or job.error is None else safe_text(job.error),
        "result": job.result if succeeded else None,
        "correlation_id": job.correlation_id,
        "accepted_at": _time(job.accepted_at),
        "changed_at": _time(job.changed_at),
        "started_at": _time(job.started_at),
        "finished_at": _time(job.finished_at),
        "not_before": _time(job.not_before),
        "expires_at": _time(job.expires_at),
        "links": dict(links),
    }


def safe_text(error: str) -> str | None:
    """
    Return the text of an error that the application declared safe; None for one that has none, or is of Packhorse itself.

    >>> safe_text("shop.NoStock at shop/work.py:7 in pack: nothing left"), safe_text("ValueError at shop/work.py:9 in pack")
    ('nothing left', None)
    """
    about, _, text = error.partition(": ")
    return inert(text, limit=_MOST_TEXT) if text and not about.startswith("packhorse.") else None


def refusal(job: Job) -> str:
    """Return why *job* can't be cancelled."""
    if job.state in NEEDS_PERSON:
        return f"the job is {job.state} and waits for a person, who decides what becomes of it"
    return f"the job is {job.state}; there is nothing to cancel"


def links_of(job: Job, base: str, more: Mapping[str, str]) -> dict[str, str]:
    """Return the addresses that belong to *job* below *base*; `result` of *more* once it has succeeded, not before."""
    found = {"self": f"{base}/{job.id}"}
    if job.state in CANCELLABLE or (job.state is JobState.RUNNING and job.cancel_asked_at is None):
        found["cancel"] = f"{base}/{job.id}/cancel"
    return found | {
        name: address for name, address in more.items() if name != "result" or job.state is JobState.SUCCEEDED
    }


def is_late(job: Job, *, after: float | None, now: datetime) -> bool:
    """Return whether *job* is on its way for longer than *after* seconds since it was submitted or due; None: never."""
    if after is None or job.rests:
        return False
    return now - max(job.accepted_at, job.not_before or job.accepted_at) > timedelta(seconds=after)


def retry_after(job: Job, *, now: datetime) -> int | None:
    """
    Return the seconds after which it is worth while to ask again; None when nothing more is to come.

    A tenth of the time that it has taken so far: who waits for a quick job hears of it at once, and a slow one isn't asked for
    all the time.
    """
    if job.state in NEEDS_PERSON:
        return _ASKED_FOR_PERSON
    if job.rests:
        return None
    if job.not_before is not None and job.not_before > now and job.state is not JobState.RUNNING:
        return min(_MOST_UNTIL_DUE, math.ceil((job.not_before - now).total_seconds()))
    return max(1, min(_MOST_RETRY, round((now - job.accepted_at).total_seconds() / 10)))


def accepted_answer(handle: JobHandle[Any], base: str) -> Answer:
    """Return the answer to a request that has made a job."""
    return _accepted(handle.id, handle.type, JobState.ACCEPTED, base, over=False, retry=1)


def again_answer(job: Job, base: str, retry: int | None) -> Answer:
    """Return the answer to a request that has made *job* before: the same, with the state that it is in by now."""
    return _accepted(job.id, job.type, job.state, base, over=job.finished_at is not None, retry=retry)


def _accepted(
    job_id: UUID, kind: str, state: JobState, base: str, *, over: bool, retry: int | None
) -> Answer:
    links = {"self": f"{base}/{job_id}", "cancel": f"{base}/{job_id}/cancel"}
    value = {"id": str(job_id), "type": kind, "state": state.value, "over": over, "links": links}
    headers = {"location": links["self"]} | _retry_header(retry)
    return Answer(status=202, headers={**headers, "content-type": "application/json"}, body=json_bytes(value))


def job_answer(
    status: int, value: Mapping[str, Any], retry: int | None, *, known: str | None = None
) -> Answer:
    """Return *value* with its tag; 304 without it when *known*, an If-None-Match, names that tag."""
    body = json_bytes(value)
    headers = {"etag": tag_of(body)} | _retry_header(retry)
    if status == 200 and matches(known, headers["etag"]):
        return Answer(status=304, headers=headers)
    return Answer(status=status, headers={**headers, "content-type": "application/json"}, body=body)


def tag_of(body: bytes) -> str:
    """Return the entity tag of *body*."""
    return f'"{hashlib.sha256(body).hexdigest()[:32]}"'


def matches(known: str | None, tag: str) -> bool:
    """
    Return whether the If-None-Match *known* names *tag*; a weak one counts too, since our bodies have but one form.

    >>> matches('W/"a", "b"', '"a"'), matches("*", '"a"'), matches('"b"', '"a"'), matches(None, '"a"')
    (True, True, False, False)
    """
    if known is None:
        return False
    return known.strip() == "*" or tag in {one.strip().removeprefix("W/") for one in known.split(",")}


def _retry_header(seconds: int | None) -> dict[str, str]:
    return {} if seconds is None else {"retry-after": str(seconds)}


def _progress(job: Job) -> dict[str, Any] | None:
    said = job.progress
    if said is None:
        return None
    text = None if said.text is None else inert(said.text, limit=_MOST_TEXT)
    return {"done": said.done, "total": said.total, "text": text, "at": _time(said.at)}


def _time(at: datetime | None) -> str | None:
    return None if at is None else at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
