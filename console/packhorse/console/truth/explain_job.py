"""Explain where a job stands, what it waits for, what comes next and what a person can do. Pure: no I/O, no clock."""

from dataclasses import replace

from packhorse.console.truth import commands
from packhorse.console.truth.commands import command
from packhorse.console.truth.explain_group import explain_group
from packhorse.console.truth.explain_obstacles import obstacles, tell_crew
from packhorse.console.truth.explanation import Action, Draft, Part
from packhorse.console.truth.jobs import Effect, JobFacts
from packhorse.console.truth.moments import Viewer
from packhorse.console.truth.reasons import reason_text
from packhorse.console.truth.status import Published, Status
from packhorse.core.jobs import JobState
from packhorse.core.text import counted

OVER = "nothing is left to do"
FIRST_EFFECTS = 5
"""Effects in doubt that are told one by one."""


def explain_job(status: Status, facts: JobFacts, viewer: Viewer) -> Part:
    """Return in words how the job of *status* stands."""
    job, draft = facts.job, Draft(about=f"job {facts.job.id}")
    draft.stands.append(
        f"its state is {job.state}, since {viewer.moment(job.changed_at)}, by {job.changed_by}"
    )
    match job.state:
        case JobState.ACCEPTED:
            _accepted(draft, status, facts, viewer)
        case JobState.RUNNING:
            _running(draft, status, facts, viewer)
        case JobState.RETRYING:
            _retrying(draft, status, facts, viewer)
        case JobState.QUARANTINED | JobState.UNCERTAIN:
            _resting(draft, facts, viewer)
        case _:
            _ended(draft, facts, viewer)
    if not job.ended:
        _bounds(draft, facts, viewer)
    return draft.part()


def with_group(status: Status, facts: JobFacts, viewer: Viewer) -> Part:
    """Return how the job stands, with what its message waits for in the group that runs it: for whoever sees nothing else."""
    part = explain_job(status, facts, viewer)
    mine = [each for each in status.groups if (each.group, each.topic) == (facts.job.group, facts.job.topic)]
    told = [explain_group(status, each, viewer) for each in mine]
    waits = dict.fromkeys((*part.waits, *(text for each in told for text in each.waits)))
    comes = dict.fromkeys((*part.next, *(text for each in told for text in each.next)))
    return replace(part, waits=tuple(waits), next=tuple(comes))


def unrecorded(facts: JobFacts) -> str:
    """Return why there is no outbox row of a job's message."""
    if facts.due_at is not None:
        return "not recorded yet: its outbox row is written when the time of its job comes"
    return "no outbox row of it is kept (any more), or it was taken back before one was written"


def _accepted(draft: Draft, status: Status, facts: JobFacts, viewer: Viewer) -> None:
    draft.stands.append(
        "its work has not begun" if not facts.job.attempt else "its work was begun and given back"
    )
    if facts.due_at is not None:
        _due(draft, status, facts, viewer)
    elif facts.message_lost:
        _lost(draft, facts)
    elif status.published is not Published.YES and not status.groups:
        draft.waits.append("for its message to be published: see the message")
        draft.next.append("the relay publishes its message, and a worker begins it")
        _name_taken(draft, facts)
    else:
        draft.next.append("a worker begins it as soon as one has a lane for it")
        _held(draft, status, facts, viewer)
    _cancel(draft, facts)


def _lost(draft: Draft, facts: JobFacts) -> None:
    draft.waits.append(
        "for its message: neither outbox nor inbox know it (any more). It lies unread on its topic, if it is older than the outbox keeps "
        "its rows; else it is lost"
    )
    draft.next.append("nothing, unless it still lies on its topic and a worker reads on to it")
    draft.can.append(
        Action(
            what="send it anew: under the same id, so that the second to come is a duplicate",
            command=command("job", "redrive", facts.job.id, why=commands.WHY),
        )
    )


def _due(draft: Draft, status: Status, facts: JobFacts, viewer: Viewer) -> None:
    due = facts.due_at
    assert due is not None
    draft.next.append(
        "a running processor of its topic writes its outbox row then, the relay publishes it, and a worker begins it"
    )
    if due > viewer.now:
        draft.waits.append(f"for its time: it is not to begin before {viewer.moment(due)}")
        return
    draft.waits.append(f"for a processor of its topic: its time has come {viewer.moment(due)}")
    _crew(draft, status, facts, viewer)


def _held(draft: Draft, status: Status, facts: JobFacts, viewer: Viewer) -> None:
    """Write down what keeps a worker from it: another job of its name, or nobody at work."""
    _name_taken(draft, facts)
    _crew(draft, status, facts, viewer)


def _name_taken(draft: Draft, facts: JobFacts) -> None:
    if facts.runs_instead is not None:
        draft.waits.append(f"for another job of its name, of which one alone may run: {facts.runs_instead}")
        draft.can.append(
            Action(what="see where that one stands", command=command("explain", facts.runs_instead))
        )


def _crew(draft: Draft, status: Status, facts: JobFacts, viewer: Viewer) -> None:
    if facts.group is None:
        draft.waits.append(
            f"for a processor that runs jobs of type {facts.job.type}: none has ever said so in this database"
        )
        draft.can.append(
            Action(
                what="start one, with the application's name", command="packhorse processor run MODULE:APP"
            )
        )
        return
    if (facts.group, facts.job.topic) not in {(each.group, each.topic) for each in status.groups}:
        obstacles(draft, status.around, facts.group, facts.job.topic, None, viewer)
    if not draft.waits:
        draft.waits.append(f"for a worker of group {facts.group} with room for it")


def _running(draft: Draft, status: Status, facts: JobFacts, viewer: Viewer) -> None:
    job = facts.job
    draft.stands.append(f"attempt {job.attempt}, by worker {job.worker}")
    _progress(draft, facts, viewer)
    begun = [each for each in facts.effects if each.state == "intended"]
    draft.stands += [
        f"the call of effect {each.key} has begun {viewer.moment(each.intended_at)}, and its answer is not on record"
        for each in begun[:FIRST_EFFECTS]
    ]
    if facts.lease_over(viewer.now):
        since = "" if job.lease_until is None else f" since {viewer.moment(job.lease_until)}"
        draft.waits.append(
            f"for another worker: its lease is over{since}, so the one that had it is dead or stuck"
        )
        draft.next.append(
            "its message is delivered again when the broker misses its process, and whoever meets it takes it over; what the old "
            "worker writes after that is refused"
        )
        if facts.group is not None:
            tell_crew(draft, status.around.crew(facts.group), job.topic, None, viewer)
    else:
        assert job.lease_until is not None
        draft.next.append(
            f"it goes on; its lease, which its heartbeats renew, lasts until {viewer.moment(job.lease_until)}"
        )
    if job.cancel_asked_at is None:
        _cancel(draft, facts)
        return
    why = f": {job.cancel_why}" if job.cancel_why else ""
    draft.stands.append(f"{job.cancel_asked_by} asked it to stop {viewer.moment(job.cancel_asked_at)}{why}")
    draft.next.append(
        "it stops where its code asks whether it should; what runs to its end before that has its effect"
    )


def _progress(draft: Draft, facts: JobFacts, viewer: Viewer) -> None:
    job = facts.job
    if job.progress_at is not None:
        of = "" if job.progress_total is None else f" of {job.progress_total}"
        text = "" if job.progress_text is None else f", {job.progress_text}"
        draft.stands.append(f"progress: {job.progress_done}{of}{text}, said {viewer.moment(job.progress_at)}")
    if facts.step_count:
        draft.stands.append(f"{counted(facts.step_count, 'step')} of it are done and are not run again")


def _retrying(draft: Draft, status: Status, facts: JobFacts, viewer: Viewer) -> None:
    job = facts.job
    if job.reason == "redriven":
        draft.stands.append("a person has sent it back; it keeps its steps, its checkpoint and its effects")
    elif job.reason is not None:
        draft.stands.append(f"attempt {job.attempt} ended: {reason_text(job.reason, job.error)}")
    _progress(draft, facts, viewer)
    draft.waits.append("for its next attempt")
    draft.next.append("a worker runs that attempt when it is due")
    _held(draft, status, facts, viewer)
    _cancel(draft, facts)


def _cancel(draft: Draft, facts: JobFacts) -> None:
    what = "have it stopped" if facts.job.state is JobState.RUNNING else "take it back"
    draft.can.append(Action(what=what, command=command("job", "cancel", facts.job.id, why=commands.WHY)))


def _resting(draft: Draft, facts: JobFacts, viewer: Viewer) -> None:
    job, doubt = facts.job, facts.in_doubt
    if job.state is JobState.QUARANTINED:
        draft.stands.append(f"it failed for good: {reason_text(job.reason, job.error)}")
    _progress(draft, facts, viewer)
    draft.stands += [_doubt(each, viewer) for each in doubt[:FIRST_EFFECTS]]
    if len(doubt) > FIRST_EFFECTS:
        draft.stands.append(
            f"and so are {len(doubt) - FIRST_EFFECTS} more effects: packhorse job show {job.id}"
        )
    if job.state is JobState.UNCERTAIN:
        draft.waits.append("for a person, who knows or finds out whether the effect has happened")
        draft.next.append(
            "once that is said of each effect in doubt, it goes on by itself: what has happened is not called again, what has not "
            "is called with the same idempotency key"
        )
    else:
        draft.waits.append("for a person: nothing happens by itself")
        draft.next.append("nothing, until somebody redrives it or gives it up")
    if doubt:
        draft.can += _resolving(facts, doubt)
    again = "let it ask the outside system once more" if doubt else "send it back, once the cause is mended"
    draft.can += [
        Action(what=again, command=command("job", "redrive", job.id, why=commands.WHY)),
        Action(what="or give it up", command=command("quarantine", "discard", job.id, why=commands.WHY)),
    ]


def _doubt(each: Effect, viewer: Viewer) -> str:
    return (
        f"effect {each.key} is in doubt: called {counted(each.calls, 'time')}, the last time {viewer.moment(each.intended_at)}, with "
        f"the idempotency key {each.idempotency_key}; no answer is on record"
    )


def _resolving(facts: JobFacts, doubt: tuple[Effect, ...]) -> list[Action]:
    words: tuple[object, ...] = ("job", "resolve", facts.job.id)
    effect = doubt[0].key if len(doubt) > 1 else None
    return [
        Action(what="ask the outside system whether the effect is there, by its idempotency key"),
        Action(
            what="say that it has happened",
            command=command(*words, "--happened", effect=effect, why=commands.WHY),
        ),
        Action(
            what="or that it has not",
            command=command(*words, "--did-not-happen", effect=effect, why=commands.WHY),
        ),
    ]


def _ended(draft: Draft, facts: JobFacts, viewer: Viewer) -> None:
    job, draft.nothing = facts.job, OVER
    match job.state:
        case JobState.SUCCEEDED if job.result_bytes is not None:
            draft.stands.append(
                f"its result ({counted(job.result_bytes, 'byte')}) and the fact that it is done were committed together"
            )
        case JobState.SUCCEEDED:
            gone = "" if job.purged_at is None else f" (any more: erased {viewer.moment(job.purged_at)})"
            draft.stands.append(f"it is done and has no result{gone}")
        case JobState.CANCELLED:
            by = "" if job.cancel_asked_by is None else f"{job.cancel_asked_by} took it back"
            draft.stands.append(f"{by or 'it was taken back'}: {job.cancel_why or 'no reason given'}")
        case JobState.EXPIRED:
            draft.stands.append("its time had passed before its work was done")
        case _:
            draft.stands.append("a person gave it up; its work is not done")
            draft.can.append(
                Action(
                    what="have it back", command=command("quarantine", "restore", job.id, why=commands.WHY)
                )
            )
    if facts.in_doubt:
        draft.stands += [_doubt(each, viewer) for each in facts.in_doubt[:FIRST_EFFECTS]]
        draft.can += _resolving(facts, facts.in_doubt)


def _bounds(draft: Draft, facts: JobFacts, viewer: Viewer) -> None:
    if facts.job.expires_at is not None and facts.job.state in {JobState.ACCEPTED, JobState.RETRYING}:
        draft.next.append(
            f"it is not begun any more after {viewer.moment(facts.job.expires_at)}: it expires then"
        )
    if facts.contact is not None and facts.job.state in {JobState.QUARANTINED, JobState.UNCERTAIN}:
        draft.stands.append(f"its contact is {facts.contact}")
