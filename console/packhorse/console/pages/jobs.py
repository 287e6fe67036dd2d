"""Jobs as pages show them: sums of counts, the way of one job, and how its effects stand. Pure: no I/O, no clock."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from packhorse.console.facts import Act
from packhorse.console.jobs.model import Counts
from packhorse.console.truth.jobs import Effect, JobFacts, job_standing
from packhorse.core.jobs import JobState
from packhorse.producer.jobs.reading import Transition

_KINDS = {
    JobState.SUCCEEDED: "good",
    JobState.QUARANTINED: "warn",
    JobState.RETRYING: "warn",
    JobState.UNCERTAIN: "bad",
}
_ACTS = {
    "job-cancel": "Cancelled, or asked to stop, by",
    "job-send": "Its message was written anew by",
    "job-resolve": "An effect was decided by",
    "redrive": "Redriven by",
    "discard": "Given up by",
    "restore": "Restored by",
    "unmask": "Looked at unmasked by",
    "purge": "Erased by",
}
"""Acts of people on a job and its message, as its way tells them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sum:
    """How many jobs are in a state, of all types; `exact` is False where there are at least so many, or about so many."""

    state: JobState
    jobs: int
    exact: bool
    estimated: bool = False

    @property
    def kind(self) -> str:
        """Return how it is coloured: what waits for a person stands out."""
        return {JobState.UNCERTAIN: "bad", JobState.QUARANTINED: "warn"}.get(self.state, "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """
    Counts of jobs, added up.

    Attributes:
        sums: By state, in the order of a job's life.
        types: Each type with its numbers in the order of `states`; None: it has none there.
        states: Those that the table of types has a column of.
        said: How numbers that are not exact came about.
    """

    sums: tuple[Sum, ...]
    types: tuple[tuple[str, tuple[tuple[int, bool] | None, ...]], ...]
    states: tuple[JobState, ...]
    said: str | None


def tally_of(counts: Counts) -> Tally:
    """Return *counts* by state, and by type and state."""
    states = tuple(dict.fromkeys(each.state for each in counts.counts))
    sums = []
    for state in states:
        mine = [each for each in counts.counts if each.state is state]
        sums.append(
            Sum(
                state=state,
                jobs=sum(each.jobs for each in mine),
                exact=all(each.exact for each in mine),
                estimated=any(each.estimated for each in mine),
            )
        )
    cells = {
        (each.type, each.state): (each.jobs, each.exact) for each in counts.counts if each.type is not None
    }
    shown = tuple(state for state in states if any(state is cell[1] for cell in cells))
    types = tuple(
        (kind, tuple(cells.get((kind, state)) for state in shown))
        for kind in sorted({cell[0] for cell in cells})
    )
    return Tally(sums=tuple(sums), types=types, states=shown, said=counts.said)


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """
    One thing that happened on the way of a job.

    Attributes:
        kind: How it is marked: good, warn, bad, person; empty: as it should be.
        said: More of it, a line each.
    """

    at: datetime
    kind: str
    title: str
    said: tuple[str, ...] = ()


def way_of(facts: JobFacts, acts: tuple[Act, ...]) -> tuple[Event, ...]:
    """Return what happened to the job in order: changes of its state, and what people did."""
    events = [*map(_change, facts.transitions), *map(_act, acts)]
    return tuple(sorted(events, key=lambda each: each.at))


def _change(each: Transition) -> Event:
    said = [f"by {each.actor}" + (f", attempt {each.attempt}" if each.attempt else "")]
    if each.after is JobState.RUNNING and each.worker is not None:
        said.append(f"worker {each.worker}")
    title = each.after.capitalize()
    if each.before is JobState.RUNNING and each.after is JobState.RUNNING:
        title = "Taken over by another worker"
    reason = f": {each.reason}" if each.reason and each.reason != each.after else ""
    return Event(at=each.at, kind=_KINDS.get(each.after, ""), title=title + reason, said=tuple(said))


def _act(each: Act) -> Event:
    title = f"{_ACTS.get(each.act, f'{each.act} by')} {each.actor}"
    effect, verdict = each.detail.get("effect"), each.detail.get("verdict")
    decided = () if effect is None else (f"effect {effect}: {str(verdict).replace('-', ' ')}",)
    return Event(
        at=each.at, kind="person", title=title, said=(*decided, *(() if each.why is None else (each.why,)))
    )


_STANDS = {JobState.UNCERTAIN: "bad", JobState.QUARANTINED: "warn", JobState.RUNNING: "busy"}


def headline_of(facts: JobFacts, now: datetime) -> tuple[str, str]:
    """
    Return in one line how a job stands, and how that is coloured.

    What waits for a person, and what nobody gives signs of life of, stands out; accepted is never called done.
    """
    text = job_standing(facts, now).removeprefix("job ")
    kind = _STANDS.get(facts.job.state, "")
    if facts.lease_over(now) or facts.message_lost:
        kind = "bad"
    if facts.message_lost:
        text += ", its message is not known any more"
    return text[:1].upper() + text[1:], kind or ("idle" if facts.job.state is not JobState.SUCCEEDED else "")


def stands_of(effect: Effect, facts: JobFacts) -> tuple[str, str]:
    """
    Return in words how an outside effect stands, and how that is coloured: one in doubt that no worker deals with is bad.

    A call that has begun in a job that runs is no person's business yet.
    """
    if not effect.in_doubt:
        words = {"did-not-happen": "did not happen"}.get(effect.state, effect.state)
        return words, "good" if effect.state in {"answered", "happened"} else ""
    if facts.job.state is JobState.RUNNING:
        return "called, no answer on record yet", "busy"
    return "in doubt", "bad"


def decidable(facts: JobFacts) -> bool:
    """Return whether a person may say what became of the job's effects in doubt: while a worker has it, it deals with them."""
    return facts.job.state is not JobState.RUNNING and bool(facts.in_doubt)


def share_of(facts: JobFacts) -> float | None:
    """Return which part of its work the job says is done, from 0 to 1; None: it does not say."""
    job = facts.job
    if not job.progress_total or job.progress_done is None:
        return None
    return min(max(job.progress_done / job.progress_total, 0.0), 1.0)


def progress_words(facts: JobFacts) -> Iterator[str]:
    """Yield what the job says of how far it is."""
    job = facts.job
    if job.progress_done is not None:
        of = "" if job.progress_total is None else f" of {job.progress_total}"
        share = share_of(facts)
        yield f"{job.progress_done}{of}" + ("" if share is None else f" ({share:.0%})")
    if job.progress_text is not None:
        yield job.progress_text
