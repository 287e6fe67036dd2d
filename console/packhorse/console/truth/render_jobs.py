"""Lay a job out: for people as labels and lines, for programs as values. Names that an application gave are shown only where asked for."""

from datetime import datetime
from typing import Any

from packhorse.console.doctor.findings import span
from packhorse.console.output import at, plain
from packhorse.console.truth.jobs import Effect, Job, JobFacts, job_standing
from packhorse.core.jobs import JobState

Pairs = list[tuple[str, object]]
NAMES = ("request_key", "one_waiting", "one_running")
"""What an application calls a job or a group of them by; it may say who somebody is."""


def name_text(name: str | None, *, show: bool) -> str:
    """
    Return what to show of a name.

    >>> name_text("order-17", show=False), name_text(None, show=True), name_text("order-17", show=True)
    ('hidden, 8 characters; --show-key shows it', 'none', 'order-17')
    """
    if name is None:
        return "none"
    return plain(name) if show else f"hidden, {len(name)} characters; --show-key shows it"


def listed_json(job: Job, *, show_key: bool) -> dict[str, Any]:
    """Return how a job stands for programs; names only if *show_key*."""
    shown = {name: getattr(job, name) for name in job.__slots__ if name not in NAMES}
    has = {f"has_{name}": getattr(job, name) is not None for name in NAMES}
    return shown | has | {name: getattr(job, name) if show_key else None for name in NAMES}


def job_json(facts: JobFacts, *, show_key: bool) -> dict[str, Any]:
    """Return a job with its history for programs; names only if *show_key*."""
    return {
        **listed_json(facts.job, show_key=show_key),
        "transitions": facts.transitions,
        "steps": facts.steps,
        "step_count": facts.step_count,
        "effects": [effect_json(each) for each in facts.effects],
        "effect_count": facts.effect_count,
        "due_at": facts.due_at,
        "runs_instead": facts.runs_instead,
        "contact": facts.contact,
        "declared_by": facts.declared_by,
        "message_lost": facts.message_lost,
    }


def effect_json(effect: Effect) -> dict[str, Any]:
    """Return an effect for programs."""
    return {name: getattr(effect, name) for name in effect.__slots__} | {"in_doubt": effect.in_doubt}


def job_pairs(facts: JobFacts, now: datetime) -> Pairs:
    """Return how the job stands, in a few lines: for the status of its message."""
    job = facts.job
    pairs: Pairs = [
        (
            "job",
            f"{job_standing(facts, now).removeprefix('job ')}, since {at(job.changed_at)} by {job.changed_by}",
        ),
        ("attempts", job.attempt),
    ]
    if job.state is JobState.RUNNING:
        pairs.append(("lease", lease_line(facts, now)))
    if job.progress_at is not None:
        pairs.append(("progress", progress_line(facts)))
    if facts.in_doubt:
        pairs.append(("in doubt", ", ".join(f"effect {each.key}" for each in facts.in_doubt[:5])))
    return pairs


def lease_line(facts: JobFacts, now: datetime) -> str:
    """Return whether whoever runs the job gives signs of life."""
    job = facts.job
    if job.lease_until is None:
        return "none"
    if facts.lease_over(now):
        return f"over since {at(job.lease_until)} ({span(now - job.lease_until)} ago): worker {job.worker} is dead or stuck"
    return f"of worker {job.worker}, until {at(job.lease_until)}"


def progress_line(facts: JobFacts) -> str:
    """Return how far the job says that it is."""
    job = facts.job
    of = "" if job.progress_total is None else f" of {job.progress_total}"
    part = (
        f" ({job.progress_done / job.progress_total:.0%})" if job.progress_done and job.progress_total else ""
    )
    text = "" if job.progress_text is None else f", {job.progress_text}"
    said = "" if job.progress_at is None else f", said {at(job.progress_at)}"
    return f"{job.progress_done}{of}{part}{text}{said}"
