"""The way of one message as a timeline, from its status: what was, in its order, and what comes next. Pure: no I/O, no clock."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from packhorse.console.facts import Act, Outcome
from packhorse.console.pages.steps import Mark, Step, acted, in_order
from packhorse.console.pages.way_group import steps_of
from packhorse.console.truth.awaited import Awaited
from packhorse.console.truth.explaining import FOREIGN
from packhorse.console.truth.groups import GroupStatus, Redrive, is_open
from packhorse.console.truth.jobs import JobFacts
from packhorse.console.truth.status import Published, Status
from packhorse.core.jobs import JobState

MOVING, RESTING = 2, 10
"""Seconds between two looks at a message that moves by itself, and at one that waits for somebody."""


class Mood(StrEnum):
    """How a standing is coloured: the classes of a verdict."""

    GOOD = ""
    BUSY = "busy"
    WARN = "warn"
    BAD = "bad"
    IDLE = "idle"


@dataclass(frozen=True, slots=True, kw_only=True)
class Branch:
    """
    The way in one group that has a row of the message, or reads its topic.

    Attributes:
        stands: In a few words.
        status: None: the group has no row of it.
    """

    group: str
    topic: str
    stands: str
    mood: Mood
    steps: tuple[Step, ...]
    status: GroupStatus | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """
    The whole of it.

    Attributes:
        trunk: What is of the message itself, up to its topic.
        branches: What each group did with it.
        look_again: Seconds after which another look may show more; None: it is over.
    """

    trunk: tuple[Step, ...]
    branches: tuple[Branch, ...]
    mood: Mood
    look_again: int | None


def way_of(status: Status) -> Way:
    """Return the way of the message of *status*; of an id that nobody knows it is empty."""
    branches = (
        *(_branch(status, group) for group in status.groups),
        *(_awaited(each) for each in status.awaited),
    )
    return Way(
        trunk=tuple(_trunk(status)) if status.known else (),
        branches=branches,
        mood=_mood(status, branches),
        look_again=_look_again(status, branches),
    )


def _branch(status: Status, group: GroupStatus) -> Branch:
    return Branch(
        group=group.group,
        topic=group.topic,
        stands=_short(group),
        mood=_group_mood(group),
        steps=steps_of(status, group),
        status=group,
    )


def _short(group: GroupStatus) -> str:
    if group.redrive in {Redrive.ASKED, Redrive.SENT}:
        return "retry" if group.ran else f"redrive {group.redrive}"
    if group.inbox is not None:
        return group.inbox.outcome.value
    return "quarantine" if group.quarantined is not None else "no outcome on record"


def _group_mood(group: GroupStatus) -> Mood:
    if group.redrive in {Redrive.ASKED, Redrive.SENT}:
        return Mood.BUSY
    match None if group.inbox is None else group.inbox.outcome:
        case Outcome.DONE | Outcome.SKIPPED:
            return Mood.GOOD
        case Outcome.UNCERTAIN:
            return Mood.BAD
        case Outcome.DISCARDED:
            return Mood.IDLE
        case _:
            return Mood.WARN


def _awaited(each: Awaited) -> Branch:
    """Return the way in a group without a row: what its watermark says of it."""
    if each.below:
        return Branch(
            group=each.group,
            topic=each.topic,
            stands="below the watermark",
            mood=Mood.GOOD,
            steps=(Step(name="Read before", said=(each.said,)),),
        )
    known = each.below is False
    return Branch(
        group=each.group,
        topic=each.topic,
        stands="not delivered yet" if known else "not known",
        mood=Mood.BUSY if known else Mood.IDLE,
        steps=(
            Step(name="Delivery" if known else "Whether it was delivered", said=(each.said,), mark=Mark.NEXT),
        ),
    )


def _mood(status: Status, branches: Iterable[Branch]) -> Mood:
    if not status.known:
        return Mood.IDLE
    moods = {branch.mood for branch in branches}
    if status.hold is not None and not status.hold.heals:
        moods.add(Mood.BAD)
    if status.job is not None and not status.job.job.ended:
        resting = {JobState.UNCERTAIN: Mood.BAD, JobState.QUARANTINED: Mood.WARN}
        moods.add(resting.get(status.job.job.state, Mood.BUSY))
    if not moods:
        busy = status.published is Published.NOT_YET
        return Mood.BUSY if busy else Mood.IDLE
    return next(mood for mood in (Mood.BAD, Mood.WARN, Mood.BUSY, Mood.IDLE, Mood.GOOD) if mood in moods)


def _look_again(status: Status, branches: Sequence[Branch]) -> int | None:
    job = status.job
    if not status.known:
        return RESTING  # its transaction may be open
    if status.published is Published.NOT_YET:
        return MOVING if status.hold is None else RESTING
    if job is not None:
        rests = job.job.state in {JobState.UNCERTAIN, JobState.QUARANTINED}
        return None if job.job.ended else RESTING if rests else MOVING
    open_ = [branch for branch in branches if branch.status is None or is_open(branch.status)]
    retries = (each.status is not None and each.stands == Outcome.RETRY for each in open_)
    if any(branch.mood is Mood.BUSY for branch in open_) or any(retries):
        return MOVING
    if any(branch.mood is not Mood.GOOD for branch in open_):
        return RESTING
    return None if branches or status.published is Published.NEVER else RESTING


def _trunk(status: Status) -> Iterator[Step]:
    for parent in status.around.parents:
        yield Step(
            name="Made as an edited copy",
            said=(f"of message {parent.id}, in whose place it stands in group {parent.group}",),
            mark=Mark.PERSON,
        )
    of = status.around.replay_of
    if of is not None:
        yield Step(
            name="Handed over by a replay",
            said=(f"it is message {of.original}, under the identity that it has in replay {of.run}",),
            mark=Mark.PERSON,
        )
    elif not status.around.parents:
        yield _recorded(status)
    yield from in_order(acted(each) for each in status.acts if _is_of_no_branch(each, status))
    yield from _publication(status)


def _recorded(status: Status) -> Step:
    row = status.recorded
    if row is not None:
        twice = status.around.rows > 1
        said = [f"as {row.type}, in the transaction of whoever wrote it"]
        if twice:
            said.append(
                f"{status.around.rows} outbox rows bear this id; groups take the later ones as duplicates"
            )
        return Step(
            name="Recorded", at=row.created_at, said=tuple(said), mark=Mark.WARN if twice else Mark.GOOD
        )
    job = status.job
    if job is not None:
        return _of_job(job)
    foreign = status.id.version == FOREIGN
    return Step(
        name="Not recorded here",
        said=(
            "its id is of the kind that is made for a record of another producer, from its place on the topic"
            if foreign
            else "another database wrote it, or its day is no longer kept in the outbox",
        ),
    )


def _of_job(job: JobFacts) -> Step:
    if job.due_at is not None:
        return Step(
            name="Outbox row", at=job.due_at, said=("written when the time of its job comes",), mark=Mark.NEXT
        )
    return Step(
        name="Accepted as a job",
        at=job.job.accepted_at,
        said=("no outbox row of its message is kept (any more)",),
    )


def _publication(status: Status) -> Iterator[Step]:
    hold, gone = status.hold, status.discard
    match status.published:
        case Published.YES:
            place = status.place
            said = () if place is None else (f"stands at {place.topic}/{place.partition}/{place.offset}",)
            yield Step(name="Published", said=(status.published_why, *said)[-1:], mark=Mark.GOOD)
        case Published.NEVER if gone is not None:
            yield Step(
                name="Given up before it was published",
                at=gone.at,
                said=(f"{gone.way}; it will never be published",),
                mark=Mark.PERSON,
                by=gone.actor,
                why=gone.why,
            )
        case Published.NOT_YET if hold is not None:
            yield Step(
                name=f"Kept back by hold {hold.id}",
                at=hold.since,
                said=(f"of its {hold.scope}: {hold.code}, {hold.reason}", *_again(status.published_why)),
                mark=Mark.WARN if hold.heals else Mark.BAD,
            )
            yield Step(name="Release of the hold", said=(_release(status),), mark=Mark.NEXT)
        case Published.NOT_YET if status.job is not None and status.job.due_at is not None:
            yield Step(name="Publication", mark=Mark.NEXT)
        case Published.NOT_YET:
            yield Step(name="Publication", said=(status.published_why,), mark=Mark.NEXT)
        case _ if status.recorded is not None:
            yield Step(name="Whether it is published is not known", said=(status.published_why,))


def _again(why: str) -> Iterator[str]:
    if "published before" in why:
        yield "it may have been published before"


def _release(status: Status) -> str:
    hold = status.hold
    assert hold is not None
    if hold.state == "releasing" or hold.asked or hold.heals:
        return hold.next
    return "nothing, until a person orders the release or gives it up"


def _is_of_no_branch(act: Act, status: Status) -> bool:
    return all((act.group, act.topic) != (group.group, group.topic) for group in status.groups)
