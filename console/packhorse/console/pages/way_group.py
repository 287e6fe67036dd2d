"""The way of one message in one group: deliveries, attempts, waits, acts and what comes next. Pure: no I/O, no clock."""

from collections.abc import Iterator

from packhorse.console.facts import Act, InboxRow, Outcome
from packhorse.console.pages.offers import Stage
from packhorse.console.pages.steps import Mark, Step, acted, in_order, stamp
from packhorse.console.truth.around import Fate, Retry, mine, run_text
from packhorse.console.truth.groups import GroupStatus, Redrive, last_act
from packhorse.console.truth.reasons import MEANS, reason_text
from packhorse.console.truth.status import Status
from packhorse.core.naming import quarantine_topic
from packhorse.core.text import counted


def steps_of(status: Status, group: GroupStatus) -> tuple[Step, ...]:
    """Return the way of the message in *group*, in its order; what comes next stands last."""
    return (
        *_delivered(group),
        *in_order(
            [
                *_attempts(group),
                *_rested(group),
                *_acts(status, group),
                *_parked(status, group),
                *_runs(status, group),
                *_ended(status, group),
            ]
        ),
        *_next(status, group),
    )


def _delivered(group: GroupStatus) -> Iterator[Step]:
    """Yield the delivery; what is recorded of it was recorded with the first outcome."""
    row = group.inbox
    if row is None:
        return
    said = [f"the record at {row.topic}/{row.partition}/{row.offset}"]
    if row.deliveries > 1:
        said.append(
            f"{row.deliveries} records of it were read: delivered again, copies in tiers, wake-ups of its key"
        )
    yield Step(name="Delivered", at=row.recorded_at, said=tuple(said))


def _attempts(group: GroupStatus) -> Iterator[Step]:
    for each in group.attempts:
        put_off = each.reason == "later"
        yield Step(
            name=f"Attempt {each.attempt} {'was put off by its handler' if put_off else 'failed'}",
            at=each.failed_at,
            said=() if put_off else (reason_text(each.reason, each.error),),
            mark=Mark.PLAIN if put_off else Mark.WARN,
        )


def _rested(group: GroupStatus) -> Iterator[Step]:
    held = group.quarantined
    if held is None:
        return
    said = [f"after {counted(held.attempts, 'attempt')}: {reason_text(held.reason, held.error)}"]
    if held.copy_offset is None:
        said.append(
            "its bytes are safe in the database; its copy on the quarantine topic is not confirmed yet"
        )
    else:
        at = f"{quarantine_topic(held.topic, held.group)}/{held.copy_partition}/{held.copy_offset}"
        said.append(f"its copy stands at {at}")
    name = "Came to quarantine" if not held.redrives else "Came to quarantine, the last time"
    yield Step(name=name, at=held.quarantined_at, said=tuple(said), mark=Mark.WARN)


def _acts(status: Status, group: GroupStatus) -> Iterator[Step]:
    last = last_act(status.acts, group.group, group.topic, "redrive")
    for each in status.acts:
        if (each.group, each.topic) == (group.group, group.topic):
            yield acted(each, stages=stages_of(group, each) if each is last else ())


def stages_of(group: GroupStatus, act: Act | None) -> tuple[Stage, ...]:
    """Return how far the last redrive of *group*, recorded as *act*, is; nothing where there was none."""
    held, row = group.quarantined, group.inbox
    if group.redrive is Redrive.NONE or held is None:
        return ()
    sent = group.redrive in {Redrive.SENT, Redrive.PROVED}
    at = held.redrive_sent_at
    confirmed = "for its attempt has run" if at is None else f"the broker has confirmed the copy {stamp(at)}"
    return (
        Stage(
            name="Asked",
            is_done=True,
            said="the order stands in the database"
            + ("" if act is None else f" since {stamp(act.at)}, by {act.actor}"),
        ),
        Stage(
            name="Sent",
            is_done=sent,
            said=confirmed if sent else "a running processor of the group sends the original bytes",
        ),
        _proof(group, row),
    )


def _proof(group: GroupStatus, row: InboxRow | None) -> Stage:
    if group.redrive is not Redrive.PROVED:
        again = row is not None and group.ran
        said = (
            f"it has failed again; attempt {row.attempt} is next"
            if row is not None and again
            else "by the outcome of its next attempt, good or bad"
        )
        return Stage(name="Proved", is_done=False, said=said)
    if row is None:
        return Stage(name="Proved", is_done=True, said="its outcome is not kept any more")
    outcome = f"{row.outcome.value} since {stamp(row.changed_at)}"
    if row.outcome is Outcome.QUARANTINE:
        return Stage(
            name="Proved",
            is_done=True,
            went_wrong=True,
            said=f"it failed again and is back: {outcome}, {reason_text(row.reason, None)}",
        )
    return Stage(name="Proved", is_done=True, said=outcome)


def _parked(status: Status, group: GroupStatus) -> Iterator[Step]:
    for queued in mine(status.around.queued, group):
        key = status.around.key_of(group.group, group.topic)
        waits = queued.position if key is None else max(key.waiting, queued.position)
        said = [
            f"number {queued.position} of {waits} in the queue of its key; its handler has not run for it"
        ]
        if key is not None and key.head is not None and key.head_open:
            said.append(f"the head is message {key.head} ({key.head_outcome})")
        yield Step(name="Parked behind its key", at=queued.parked_at, said=tuple(said), mark=Mark.WARN)


def _runs(status: Status, group: GroupStatus) -> Iterator[Step]:
    for one in mine(status.around.memberships, group):
        if one.run_state == "previewed":
            continue  # nothing of it has happened
        said = f"redrive {one.run}, which is {run_text(one)}; here it is {one.state}"
        moved = () if one.as_frozen else ("it has moved since it was frozen, and will not be redriven by it",)
        yield Step(
            name="Member of a redrive",
            at=one.asked_at,
            said=(said + ("" if one.said is None else f": {one.said}"), *moved),
            mark=Mark.PERSON,
            by=one.confirmed_by or one.previewed_by,
        )
    for each in mine(status.around.replays, group):
        result = each.outcome or "no outcome counted yet"
        yield Step(
            name="Done once more by a replay" if each.outcome else "Handed over by a replay",
            at=each.handed_at,
            said=(
                f"replay {each.run}, which is {run_text(each)}, under the identity {each.identity}: {result}",
            ),
            mark=Mark.PERSON,
            by=each.planned_by,
        )


def _ended(status: Status, group: GroupStatus) -> Iterator[Step]:
    """Yield the outcome that is there for good, or that nobody knows."""
    row = group.inbox
    fate = next(mine(status.around.fates, group), None)
    match None if row is None else row.outcome:
        case Outcome.DONE if row is not None:
            after = ", after a redrive" if group.redrive is Redrive.PROVED else ""
            yield Step(
                name=f"Done{after}",
                at=row.changed_at,
                said=("its result and the fact that it is done were committed together",),
                mark=Mark.GOOD,
            )
        case Outcome.SKIPPED if row is not None:
            why = MEANS.get(row.reason or "", "its handler chose to; nothing that it wrote was kept")
            yield Step(name="Skipped", at=row.changed_at, said=(why,), mark=Mark.GOOD)
        case Outcome.DISCARDED if row is not None:
            yield Step(name="Discarded", at=row.changed_at, said=tuple(_gone(fate)))
        case Outcome.UNCERTAIN if row is not None:
            said = ("an outside effect may or may not have happened",)
            yield Step(name="Uncertain", at=row.changed_at, said=said, mark=Mark.BAD)
        case _:
            pass
    if fate is not None and fate.purged_at is not None:
        yield Step(
            name="Erased",
            at=fate.purged_at,
            said=("key, payload and headers are gone; it cannot be sent again",),
        )


def _gone(fate: Fate | None) -> Iterator[str]:
    yield "its effect never comes about in this group"
    if fate is None or fate.purged_at is not None:
        return
    if fate.edited_as is not None:
        yield f"its edited copy, message {fate.edited_as}, stands in its place"
    elif fate.restorable_until is not None:
        yield f"it may be had back until {stamp(fate.restorable_until)}, or longer"


def _next(status: Status, group: GroupStatus) -> Iterator[Step]:
    row = group.inbox
    if row is None:
        if group.quarantined is None:
            yield Step(
                name="No outcome on record", said=("what comes of it here is not known",), mark=Mark.NEXT
            )
        return
    match row.outcome:
        case Outcome.RETRY:
            yield _attempt(status, group, row)
        case Outcome.PARKED:
            yield _turn(status, group)
        case Outcome.QUARANTINE | Outcome.UNCERTAIN:
            yield _decision(status, group)
        case _:
            pass


def _attempt(status: Status, group: GroupStatus, row: InboxRow) -> Step:
    retry = next(mine(status.around.retries, group), None)
    due = row.due_at if retry is None else retry.due_at
    said = [] if retry is None else [_copy(retry)]
    tier = None if retry is None else retry.tier
    pause = status.around.holding(group.group, group.topic, row.partition, tier=tier)
    if pause is not None:
        said.append(f"{pause.what} is paused by {pause.by}: {pause.why or 'no reason was given'}")
    if group.redrive is Redrive.ASKED:
        said.append("a running processor of the group sends its copy, then the handler runs")
    elif group.redrive is Redrive.SENT and not group.ran:
        said.append("its outcome proves the redrive")
    if not status.around.crew(group.group).alive:
        said.append("no processor of the group is alive")
    return Step(name=f"Attempt {row.attempt}", at=due, said=tuple(said), mark=Mark.NEXT)


def _copy(retry: Retry) -> str:
    """
    Return where the copy of a message that waits stands.

    >>> from datetime import datetime
    >>> _copy(Retry(group="g", topic="a.b", attempt=2, tier="5m", due_at=datetime.min))
    'in tier 5m; its copy is not known to be sent, a running processor sends it'
    """
    if retry.sent_at is None:
        return f"in tier {retry.tier}; its copy is not known to be sent, a running processor sends it"
    ahead = "" if not retry.ahead else f", {retry.ahead} before it"
    return f"in tier {retry.tier}; its copy is at {retry.sent_partition}/{retry.sent_offset}{ahead}"


def _turn(status: Status, group: GroupStatus) -> Step:
    key = status.around.key_of(group.group, group.topic)
    if key is None:
        said = "its key is not parked any more: a running processor runs it at its next look"
    elif key.paused:
        said = "once somebody lets its key go on"
    elif key.head is not None and key.head_open:
        said = f"when the head, message {key.head}, is finished, and what waits before it"
    elif key.drainer is not None:
        said = f"{key.drainer} runs the followers of its key now, in order"
    else:
        said = "the head is finished: a running processor looks, mostly within seconds"
    return Step(name="Its turn", said=(said,), mark=Mark.NEXT)


def _decision(status: Status, group: GroupStatus) -> Step:
    run = next((one for one in mine(status.around.memberships, group) if one.run_state == "running"), None)
    if run is not None and run.state == "waiting" and run.as_frozen:
        said = (f"redrive {run.run} orders its next attempt when its turn comes",)
        return Step(name="Its turn in a redrive", said=said, mark=Mark.NEXT)
    return Step(name="A person decides", said=("nothing happens by itself",), mark=Mark.NEXT)
