"""How far an act on a job has come: asked, sent and proved are three things. Pure: no I/O, no clock."""

from packhorse.console.pages.offers import Stage
from packhorse.console.pages.showing import dated
from packhorse.console.truth.groups import GroupStatus, Redrive, last_act
from packhorse.console.truth.jobs import Effect, JobFacts
from packhorse.console.truth.status import Published, Status
from packhorse.core.jobs import CANCELLABLE, NEEDS_PERSON, JobState


def cancel_stages(facts: JobFacts) -> tuple[Stage, ...]:
    """
    Return how far the cancelling of a job has come.

    One that nobody ran is cancelled in the transaction that asks for it; a worker that was asked has to say that it stopped.
    """
    job = facts.job
    at, by = job.cancel_asked_at, job.cancel_asked_by
    if at is None:
        return (Stage(name="Asked", is_done=False, said="Nobody has asked this job to stop."),)
    why = f": {job.cancel_why}" if job.cancel_why else ""
    asked = Stage(name="Asked", is_done=True, said=dated(at, f"by {by}{why}"))
    if job.state is JobState.CANCELLED:
        return (asked, _cancelled(facts))
    if job.state is JobState.RUNNING:
        waits = "Its worker hears it with its next heartbeat; the job stops where its code asks whether it should."
        return (asked, Stage(name="Proved: it has stopped", is_done=False, said=waits))
    if job.state in CANCELLABLE:
        waits = f"It did not stop in that run, and is {job.state} now; the next run is told at once."
        return (asked, Stage(name="Proved: it has stopped", is_done=False, said=waits))
    ended = dated(job.changed_at, f"the job is {job.state}: it came to that before it stopped")
    return (asked, Stage(name="It did not stop", is_done=True, said=ended, went_wrong=True))


def cancel_title(facts: JobFacts) -> str:
    """Return what a cancelling has come to, in a few words: to be asked to stop is not to be cancelled."""
    if facts.job.cancel_asked_at is None:
        return "Nothing was asked"
    if facts.job.state is not JobState.CANCELLED:
        return "Asked to stop" if not facts.job.ended else "Asked to stop, too late"
    return "Stopped by its worker" if _ran(facts) else "Cancelled at once"


def _ran(facts: JobFacts) -> bool:
    return any(
        each.before is JobState.RUNNING and each.after is JobState.CANCELLED for each in facts.transitions
    )


def _cancelled(facts: JobFacts) -> Stage:
    job = facts.job
    how = "its worker stopped" if _ran(facts) else "at once, in the same transaction: nobody ran it"
    return Stage(name="Proved: it is cancelled", is_done=True, said=dated(job.changed_at, how))


def redrive_stages(status: Status, facts: JobFacts) -> tuple[Stage, ...]:
    """Return how far the redrive of a job has come: what only asks is never said to be sent, nor what is sent to be done."""
    job = facts.job
    mine = next((each for each in status.groups if (each.group, each.topic) == (job.group, job.topic)), None)
    if mine is None or mine.quarantined is None or mine.redrive is Redrive.NONE:
        return (Stage(name="Asked", is_done=False, said="Nobody has asked for a redrive of this job."),)
    return (_asked(status, mine), _sent(mine), _proved(facts, mine))


def _asked(status: Status, mine: GroupStatus) -> Stage:
    act = last_act(status.acts, mine.group, mine.topic, "redrive")
    said = (
        "on record" if act is None else dated(act.at, f"by {act.actor}" + (f": {act.why}" if act.why else ""))
    )
    return Stage(name="Asked", is_done=True, said=said)


def _sent(mine: GroupStatus) -> Stage:
    at = None if mine.quarantined is None else mine.quarantined.redrive_sent_at
    if mine.redrive is Redrive.ASKED:
        waits = f"A running processor of group {mine.group} sends the bytes as they arrived."
        return Stage(name="Sent", is_done=False, said=waits)
    return Stage(
        name="Sent",
        is_done=True,
        said="the attempt has run" if at is None else dated(at, "the broker has it"),
    )


def _proved(facts: JobFacts, mine: GroupStatus) -> Stage:
    job = facts.job
    if job.state is JobState.SUCCEEDED:
        return Stage(name="Proved", is_done=True, said=dated(job.changed_at, "the job has succeeded"))
    if mine.redrive is Redrive.ASKED or job.state in {JobState.RUNNING, JobState.RETRYING, JobState.ACCEPTED}:
        return Stage(name="Proved", is_done=False, said=f"An outcome proves it; the job is {job.state}.")
    again = " again" if job.state in NEEDS_PERSON else ""
    reason = f": {job.reason}" if job.reason else ""
    said = dated(job.changed_at, f"the job is {job.state}{again}{reason}")
    return Stage(name="It did not succeed", is_done=True, said=said, went_wrong=True)


def send_stages(status: Status, facts: JobFacts) -> tuple[Stage, ...]:
    """Return how far the message of a job that was written anew has come."""
    job, row = facts.job, status.recorded
    act = next((each for each in reversed(status.acts) if each.act == "job-send"), None)
    if act is None:
        return (Stage(name="Asked", is_done=False, said="Nobody has written its message anew."),)
    why = f": {act.why}" if act.why else ""
    written = "" if row is None else "; its outbox row is written"
    begun = job.state is not JobState.ACCEPTED
    sent = status.published is Published.YES or begun
    return (
        Stage(name="Asked", is_done=True, said=dated(act.at, f"by {act.actor}{why}{written}")),
        Stage(name="Sent", is_done=sent, said=status.published_why if not begun else "a worker has met it"),
        Stage(
            name="Proved",
            is_done=begun,
            said=dated(job.changed_at, f"the job is {job.state}") if begun else "A worker begins the job.",
            went_wrong=job.state in NEEDS_PERSON,
        ),
    )


def resolve_stages(status: Status, facts: JobFacts, effect: Effect) -> tuple[Stage, ...]:
    """Return what came of what a person said of *effect*: the word on the record, and how far the job goes on by it."""
    if effect.in_doubt:
        return (Stage(name="Said", is_done=False, said="Nobody has said yet what became of it."),)
    why = f": {effect.why}" if effect.why else ""
    words = effect.state.replace("-", " ")
    said = Stage(
        name=f"Said: it {words}" if effect.state != "answered" else "Answered",
        is_done=True,
        said=dated(effect.changed_at, f"by {effect.changed_by}{why}"),
    )
    if left := [each.key for each in facts.in_doubt]:
        waits = f"Still in doubt: {', '.join(left[:5])}" + (
            f" and {len(left) - 5} more" if len(left) > 5 else ""
        )
        return (said, Stage(name="Asked: the job goes on", is_done=False, said=waits))
    return (said, *redrive_stages(status, facts)) if _went_on(status, effect) else (said,)


def _went_on(status: Status, effect: Effect) -> bool:
    """Return whether a redrive was ordered along with, or after, what was said of *effect*; acts are in their order."""
    names = [(each.act, each.detail.get("effect")) for each in status.acts]
    if ("job-resolve", effect.key) not in names:
        return False
    last = len(names) - 1 - names[::-1].index(("job-resolve", effect.key))
    return any(name == "redrive" for name, _ in names[last:])


def is_open(stages: tuple[Stage, ...]) -> bool:
    """Return whether something is waited for yet."""
    return not all(each.is_done for each in stages)
