"""Explain what a message waits for in one group: its next attempt, a redrive, its turn behind its key, a person. Pure: no I/O, no clock."""

from packhorse.console.facts import InboxRow
from packhorse.console.truth import commands
from packhorse.console.truth.around import Retry, mine
from packhorse.console.truth.explain_obstacles import obstacles, tell_key, waiting_text
from packhorse.console.truth.explanation import Action, Draft
from packhorse.console.truth.groups import GroupStatus, Redrive, last_act
from packhorse.console.truth.moments import Viewer
from packhorse.console.truth.reasons import NOT_EDITABLE, reason_text
from packhorse.console.truth.status import Status
from packhorse.core.text import counted


def tell_retry(draft: Draft, status: Status, group: GroupStatus, inbox: InboxRow, viewer: Viewer) -> None:
    """Write down when the next attempt of a message that failed, or was put off, runs."""
    retry = next(mine(status.around.retries, group), None)
    if inbox.reason == "later":
        draft.stands.append(f"its handler put it off; attempt {inbox.attempt} is next")
    else:
        draft.stands.append(f"attempt {inbox.attempt - 1} failed: {reason_text(inbox.reason, inbox.error)}")
    _copy(draft, retry)
    _behind(draft, status, group)
    due = inbox.due_at if retry is None else retry.due_at
    if due is None:
        draft.next.append(f"attempt {inbox.attempt}; when it is due is not on record")
    elif due > viewer.now:
        draft.waits.append(f"for its time: attempt {inbox.attempt} is due {viewer.moment(due)}")
        when = (
            "once nothing above holds it" if _held(status, group, inbox, retry) else "then, or shortly after"
        )
        draft.next.append(f"a processor of the group runs attempt {inbox.attempt} {when}")
    else:
        draft.waits.append(f"for a processor: attempt {inbox.attempt} is due since {viewer.moment(due)}")
        draft.next.append(f"a processor of the group runs attempt {inbox.attempt} once nothing holds it")
    draft.next.append(
        "if that fails, it waits in a tier again, or goes to quarantine when its attempts are used up"
    )
    tier = None if retry is None else retry.tier
    obstacles(draft, status.around, group.group, group.topic, inbox.partition, viewer, tier=tier)


def _held(status: Status, group: GroupStatus, inbox: InboxRow, retry: Retry | None) -> bool:
    """Say whether more than time holds the next attempt."""
    tier = None if retry is None else retry.tier
    pause = status.around.holding(group.group, group.topic, inbox.partition, tier=tier)
    return pause is not None or not status.around.crew(group.group).alive


def _copy(draft: Draft, retry: Retry | None) -> None:
    if retry is None:
        return
    if retry.sent_at is None:
        draft.stands.append(
            f"its bytes are in the database; its copy in tier {retry.tier} is not known to be sent, and a running processor "
            "sends it"
        )
        return
    ahead = f", with {retry.ahead} before it" if retry.ahead else ""
    draft.stands.append(f"its copy stands in tier {retry.tier}{ahead}")


def _behind(draft: Draft, status: Status, group: GroupStatus) -> None:
    key = status.around.key_of(group.group, group.topic)
    if key is not None and key.head == status.id and key.waiting:
        draft.stands.append(f"it is the head of its key: {waiting_text(key.waiting)} behind it")


def tell_redriven(draft: Draft, status: Status, group: GroupStatus, inbox: InboxRow, viewer: Viewer) -> None:
    """Write down how far a redrive is that no outcome proves yet."""
    act = last_act(status.acts, group.group, group.topic, "redrive")
    by = "" if act is None else f" by {act.actor} {viewer.away(act.at)}"
    if group.redrive is Redrive.ASKED:
        draft.stands.append(
            f"a redrive was asked for{by}; the order stands in the database, and the copy is not sent yet"
        )
        draft.next.append(
            "a running processor of the group sends the original bytes within a second or two; then the handler runs"
        )
    elif group.ran:
        draft.stands.append(f"it was redriven{by} and failed; attempt {inbox.attempt} is next")
        _copy(draft, next(mine(status.around.retries, group), None))
        if inbox.due_at is not None:
            draft.waits.append(f"for its time: attempt {inbox.attempt} is due {viewer.moment(inbox.due_at)}")
        draft.next.append(f"a processor of the group runs attempt {inbox.attempt}")
    else:
        draft.stands.append(f"a redrive was asked for{by} and its copy is sent; no outcome proves it yet")
        draft.next.append(
            f"a processor of the group runs attempt {inbox.attempt}; its outcome proves the redrive"
        )
    _behind(draft, status, group)
    obstacles(draft, status.around, group.group, group.topic, inbox.partition, viewer, tier="0s")


def tell_parked(draft: Draft, status: Status, group: GroupStatus, inbox: InboxRow, viewer: Viewer) -> None:
    """Write down where a message stands behind its key, and what comes of it."""
    key, queued = (
        status.around.key_of(group.group, group.topic),
        next(mine(status.around.queued, group), None),
    )
    if key is None or queued is None:
        draft.stands.append(
            "it was parked behind an earlier message of its key; that key is not parked any more"
        )
        draft.next.append("a running processor runs it at its next look at the key")
    else:
        draft.stands.append(
            f"it is parked since {viewer.moment(queued.parked_at)}, number {queued.position} of "
            f"{max(key.waiting, queued.position)} behind its key; its handler has not run for it"
        )
        tell_key(draft, key, viewer, position=queued.position)
    obstacles(draft, status.around, group.group, group.topic, inbox.partition, viewer)


def tell_quarantine(
    draft: Draft, status: Status, group: GroupStatus, inbox: InboxRow, viewer: Viewer
) -> None:
    """Write down why a message rests in quarantine, and what a person can do."""
    held = group.quarantined
    reason = inbox.reason or (None if held is None else held.reason)
    if held is None:
        draft.stands.append(
            f"it is in quarantine: {reason_text(reason, inbox.error)}; but its bytes are not in the table"
        )
        draft.next.append("nothing")
        draft.nothing = "nothing is safe to do: the tables contradict each other; do not change them by hand"
        return
    draft.stands.append(
        f"it rests in quarantine since {viewer.moment(held.quarantined_at)}, after "
        f"{counted(held.attempts, 'attempt')}: {reason_text(reason, held.error)}"
    )
    if held.redrives:
        draft.stands.append(f"it was redriven {counted(held.redrives, 'time')} and failed again")
    if held.copy_offset is None:
        draft.stands.append(
            "its bytes are safe in the database; its copy on the quarantine topic is not confirmed yet"
        )
    _behind(draft, status, group)
    if status.job is not None:
        draft.nothing = "see the job, above"
        return
    run = next((one for one in mine(status.around.memberships, group) if one.run_state == "running"), None)
    if run is not None and run.state == "waiting" and run.as_frozen:
        draft.waits.append(f"for its turn in redrive {run.run}")
        draft.next.append(
            f"redrive {run.run} orders its next attempt when its turn comes, unless somebody acts on it before"
        )
        return
    draft.waits.append("for a person: nothing happens by itself")
    _decide(draft, status, group, reason)


def _decide(draft: Draft, status: Status, group: GroupStatus, reason: str | None) -> None:
    fate = next(mine(status.around.fates, group), None)
    names = (status.id, group.group, group.topic)
    if fate is not None and fate.purged_at is not None:
        draft.stands.append("its key, payload and headers are erased, so it cannot be sent again")
        draft.next.append("nothing, until somebody gives it up")
        draft.can.append(
            Action(what="give it up, so that what waits behind it goes on", command=commands.discard(*names))
        )
        return
    draft.next.append("nothing, until somebody redrives it or gives it up")
    cause = (
        "once what is deployed or registered can read it"
        if reason in {"undecodable", "unknown-schema", "unknown-type", "no-tombstone-handler"}
        else "once the cause is mended"
    )
    draft.can += [
        Action(what="look at it, with its attempts", command=commands.show(*names)),
        Action(what=f"send its original bytes again, {cause}", command=commands.redrive(*names)),
        Action(what="or give it up", command=commands.discard(*names)),
    ]
    if reason not in NOT_EDITABLE:
        draft.can.append(
            Action(
                what="or send an edited copy in its place, which needs a right of its own",
                command=commands.edit(*names),
            )
        )
