"""Lay jobs out for people and programs."""

from collections.abc import Iterable, Iterator
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from packhorse.console.jobs.deciding import Cancelling, Resolution
from packhorse.console.jobs.model import Count, Counts, Kept, Page, Shown
from packhorse.console.output import at, plain, said, sheet, table
from packhorse.console.render import acts_table, leaves
from packhorse.console.truth.jobs import Effect, Job
from packhorse.console.truth.render import part_lines
from packhorse.console.truth.render_jobs import (
    NAMES,
    Pairs,
    job_json,
    job_pairs,
    listed_json,
    name_text,
)
from packhorse.core.jobs import JobState
from packhorse.core.text import counted

HIDDEN = "nothing says which parts are personal; --unmask shows it, on the record"


def page_table(page: Page) -> RenderableType:
    """Return one page of jobs for people."""
    columns = (
        "id",
        "accepted",
        "state",
        "since",
        "type",
        "group",
        "tenant",
        "attempts",
        "progress",
        "reason",
        "error",
    )
    return table(columns, (_row(job) for job in page.jobs))


def _row(job: Job) -> Iterator[object]:
    asked = ", asked to stop" if job.state is JobState.RUNNING and job.cancel_asked_at else ""
    progress = None
    if job.progress_done is not None:
        progress = f"{job.progress_done}/{job.progress_total if job.progress_total is not None else '?'}"
    yield from (job.id, job.accepted_at, f"{job.state}{asked}", job.changed_at, job.type, job.group)
    yield from (job.tenant, job.attempt, progress, job.reason, job.error)


def page_json(page: Page, *, show_key: bool) -> dict[str, Any]:
    """
    Return one page for programs; `next` is the token for --after, null on the last page; `looked_to` says that the page is not
    full because enough were looked at.
    """
    return {
        "jobs": [listed_json(job, show_key=show_key) for job in page.jobs],
        "next": None if page.next is None else page.next.token(),
        "looked_to": page.looked_to,
    }


def counts_table(counts: Counts) -> RenderableType:
    """Return counts by state and type for people."""
    rows = [
        (each.state, each.type or "all types", f"{each.jobs:,}" + _inexact(each)) for each in counts.counts
    ]
    made: list[RenderableType] = [table(("state", "type", "jobs"), rows)]
    return Group(*made, *([] if counts.said is None else [said(counts.said, "dim")]))


def _inexact(each: Count) -> str:
    return "" if each.exact else " about" if each.estimated else "+"


def shown_sheet(shown: Shown, *, show_key: bool) -> RenderableType:
    """Return one job with its history for people."""
    parts: list[RenderableType] = [
        sheet(_pairs(shown, show_key=show_key)),
        Text(""),
        *part_lines(shown.words),
        *_history(shown),
        *_steps(shown),
        *_effects(shown.facts.effects, shown.facts.effect_count),
        *acts_table(shown.status.acts),
        *_section("input", shown.input, shown.input_said),
        *_result(shown),
    ]
    return Group(*parts)


def _pairs(shown: Shown, *, show_key: bool) -> Pairs:
    facts, status = shown.facts, shown.status
    job, now = facts.job, status.around.now
    assert now is not None, "a job is shown with the database's time"
    (_, stands), *rest = job_pairs(facts, now)
    pairs: Pairs = [
        ("job", job.id),
        ("state", said(stands, "bold")),
        *rest,
        ("type", f"{job.type}, schema version {job.version}"),
        ("topic", job.topic),
        ("group", job.group or "none has met it yet"),
        ("accepted", job.accepted_at),
    ]
    named = ("started_at", "finished_at", "not_before", "expires_at", "reason", "error", "priority", "tenant")
    pairs += _named(job, named)
    if job.cancel_asked_at is not None:
        pairs.append(
            (
                "cancel asked",
                f"{at(job.cancel_asked_at)} by {job.cancel_asked_by}: {job.cancel_why or 'no reason given'}",
            )
        )
    pairs += [
        (name.replace("_", " "), name_text(getattr(job, name), show=show_key))
        for name in NAMES
        if getattr(job, name)
    ]
    pairs += _named(job, ("correlation_id", "causation_id", "origin", "traceparent"))
    if shown.kept is not None and shown.kept.actor is not None:
        pairs.append(("actor", shown.kept.actor))
    return [*pairs, ("message", f"published: {status.published} ({status.published_why})")]


def _named(job: Job, names: Iterable[str]) -> Pairs:
    return [
        (name.removesuffix("_at").replace("_", " "), value)
        for name in names
        if (value := getattr(job, name)) is not None
    ]


def _history(shown: Shown) -> list[RenderableType]:
    rows = [
        (f"  {at(each.at)}", each.before, each.after, each.actor, each.attempt, each.reason)
        for each in shown.facts.transitions
    ]
    return [Text("\nhistory", style="bold"), table(("  at", "from", "to", "by", "attempt", "reason"), rows)]


def _steps(shown: Shown) -> list[RenderableType]:
    facts = shown.facts
    if not facts.steps:
        return []
    rows = [(f"  {each.name}", each.at, each.attempt, _bytes(each.result_bytes)) for each in facts.steps]
    more = "" if len(rows) == facts.step_count else f", the newest {len(rows)} of {facts.step_count}"
    return [Text(f"\nsteps{more}", style="bold"), table(("  step", "done", "attempt", "result"), rows)]


def _effects(effects: tuple[Effect, ...], count: int) -> list[RenderableType]:
    if not effects:
        return []
    more = "" if len(effects) == count else f", {len(effects)} of {count}, those in doubt first"
    columns = ("  effect", "state", "called", "the last time", "idempotency key", "by", "why", "answer")
    return [
        Text(f"\noutside effects{more}", style="bold"),
        table(columns, (_effect_row(each) for each in effects)),
    ]


def _effect_row(each: Effect) -> Iterator[object]:
    yield f"  {each.key}"
    yield said(each.state, "bold red" if each.in_doubt else "")
    yield counted(each.calls, "time")
    yield from (each.intended_at, each.idempotency_key, each.changed_by, each.why, _bytes(each.answer_bytes))


def _bytes(size: int | None) -> str:
    return "none" if size is None else counted(size, "byte")


def _section(name: str, value: object | None, otherwise: str | None) -> list[RenderableType]:
    heading = Text(f"\n{plain(name)}", style="bold")
    if value is None:
        return [heading, said(f"  {otherwise or 'none'}")]
    return [heading, sheet(leaves(value, ""), indent=2)]


def _result(shown: Shown) -> list[RenderableType]:
    job, kept = shown.facts.job, shown.kept
    size, gone = job.result_bytes, None if job.purged_at is None else f"none: erased at {at(job.purged_at)}"
    if kept is None:
        return _section("result", None, gone if size is None else f"{counted(size, 'byte')}; {HIDDEN}")
    parts = _section("result", kept.result, gone if size is None else "null")
    found = (("checkpoint", kept.checkpoint), ("results of steps", kept.results), ("answers", kept.answers))
    for name, value in found:
        parts += _section(name, value, None) if value else []
    return parts


def shown_json(shown: Shown, *, show_key: bool) -> dict[str, Any]:
    """Return one job for programs; what was put into it only if it was unmasked."""
    status, kept = shown.status, shown.kept
    return {
        **job_json(shown.facts, show_key=show_key),
        "standing": status.standing,
        "published": status.published,
        "published_why": status.published_why,
        "acts": status.acts,
        "waits": shown.words.waits,
        "next": shown.words.next,
        "can": shown.words.can,
        "input": shown.input,
        "input_said": shown.input_said,
        "unmasked": kept is not None,
        "kept": None if kept is None else _kept_json(kept),
    }


def _kept_json(kept: Kept) -> dict[str, Any]:
    return {name: getattr(kept, name) for name in kept.__slots__ if name != "input"}


def cancelling_line(done: Cancelling) -> str:
    """Return what came of a cancelling for people."""
    if done.state is JobState.CANCELLED:
        return f"cancelled at {at(done.at)}"
    first = "asked to stop" if done.is_new else f"was asked to stop before, by {done.by}"
    return (
        f"{first} at {at(done.at)}; its worker hears it within a second or so, and the job stops where its code asks: "
        f"packhorse job show {done.id}"
    )


def effect_sheet(effect: Effect) -> RenderableType:
    """Return an effect in doubt for somebody who is about to say whether it has happened."""
    return sheet(
        (
            ("effect", effect.key),
            ("state", said(effect.state, "bold")),
            ("called", f"{counted(effect.calls, 'time')}, the last time {at(effect.intended_at)}"),
            ("idempotency key", effect.idempotency_key),
        )
    )


def resolution_line(done: Resolution) -> str:
    """Return what came of a decision for people."""
    told = f"on the record at {at(done.at)}: effect {done.effect} {_verdict(done)}"
    if done.redriven:
        return f"{told}; no effect is in doubt any more, and the job goes on by itself: packhorse job show {done.id}"
    if done.left:
        return f"{told}; still in doubt: {', '.join(done.left)}"
    return f"{told}; the job is {done.state}: packhorse job show {done.id} says what can be done"


def _verdict(done: Resolution) -> str:
    return "has happened" if done.verdict == "happened" else "has not happened"
