"""Explain where one group stands with one message. Pure: no I/O, no clock."""

from packhorse.console.facts import Act, InboxRow, Outcome
from packhorse.console.truth import commands
from packhorse.console.truth.around import Fate, Retry, mine
from packhorse.console.truth.commands import command
from packhorse.console.truth.explain_obstacles import obstacles, tell_key, waiting_text
from packhorse.console.truth.explanation import Action, Draft, Part
from packhorse.console.truth.groups import GroupStatus, Redrive
from packhorse.console.truth.moments import Viewer
from packhorse.console.truth.status import Status

OVER = "nothing is left to do"
NOT_EDITABLE = {"undecodable", "unknown-schema", "no-tombstone-handler"}
"""Reasons of messages that `packhorse quarantine edit` refuses: they have no payload that can be read."""
MEANS = {
    "failed": "the handler raised an error that may pass",
    "contention": "it kept losing to other transactions",
    "connection-lost": "its runs ended the database connection again and again while the database was well",
    "timeout": "it outlasted the handler's time-out",
    "crashed": "the process died during each of its runs",
    "down": "a system behind the handler is down",
    "later": "the handler put it off",
    "id-reused": "its id is in the inbox already, for another payload",
    "broken-transaction": "the handler ended the transaction that it was given",
    "attempts-exhausted": "all its attempts failed",
    "budget-exhausted": "the time for its attempts is used up",
    "permanent": "the handler declares errors of this class as permanent",
    "refused": "a database or server refuses its values, whatever anybody else does",
    "undecodable": "its bytes cannot be decoded",
    "unknown-schema": "the registry does not know its schema",
    "unknown-type": "no handler of the group takes its type",
    "no-tombstone-handler": "it is a tombstone, and no handler takes those",
    "expired": "its expires-at had passed",
}


def explain_group(status: Status, group: GroupStatus, viewer: Viewer) -> Part:
    """Return in words how *group* stands with the message."""
    draft = Draft(about=f"group {group.group}, topic {group.topic}")
    inbox = group.inbox
    if inbox is None:
        _without_row(draft, status, group)
    elif group.redrive in {Redrive.ASKED, Redrive.SENT}:
        _redriven(draft, status, group, inbox, viewer)
    else:
        match inbox.outcome:
            case Outcome.DONE:
                _done(draft, group, inbox, viewer)
            case Outcome.SKIPPED:
                _skipped(draft, inbox, viewer)
            case Outcome.DISCARDED:
                _discarded(draft, status, group, inbox, viewer)
            case Outcome.RETRY:
                _retry(draft, status, group, inbox, viewer)
            case Outcome.QUARANTINE:
                _quarantine(draft, status, group, inbox, viewer)
            case Outcome.PARKED:
                _parked(draft, status, group, inbox, viewer)
            case Outcome.UNCERTAIN:
                _uncertain(draft, inbox, viewer)
    _runs(draft, status, group, viewer)
    return draft.part()


def _done(draft: Draft, group: GroupStatus, inbox: InboxRow, viewer: Viewer) -> None:
    redriven = ", after a redrive" if group.redrive is Redrive.PROVED else ""
    draft.stands.append(
        f"it is done since {viewer.moment(inbox.changed_at)}{redriven}: its result and the fact that it is done were committed "
        "together"
    )
    failed = len(group.attempts)
    if failed:
        draft.stands.append(f"{failed} {_plural('attempt', failed)} failed before")
    if inbox.deliveries > 1:
        draft.stands.append(
            f"{inbox.deliveries} records of it were read (delivered again, copies in tiers, wake-ups of its key); only one had an "
            "effect"
        )
    draft.nothing = OVER


def _skipped(draft: Draft, inbox: InboxRow, viewer: Viewer) -> None:
    why = (
        "its expires-at had passed, so no handler was run for it"
        if inbox.reason == "expired"
        else "its handler chose to skip it, and nothing that it wrote was kept"
    )
    draft.stands.append(f"it is skipped since {viewer.moment(inbox.changed_at)}: {why}")
    draft.nothing = OVER


def _discarded(draft: Draft, status: Status, group: GroupStatus, inbox: InboxRow, viewer: Viewer) -> None:
    act = _last_act(status, group, "discard", "edit")
    by = "" if act is None else f" by {act.actor}: {act.why or 'no reason given'}"
    if inbox.reason == "purged":
        by = " by a purge, which erased what was kept of its subject"
    draft.stands.append(
        f"it was given up {viewer.moment(inbox.changed_at)}{by}; its effect never comes about in this group"
    )
    fate = next(mine(status.around.fates, group), None)
    if fate is not None and fate.purged_at is not None:
        draft.stands.append("its key, payload and headers are erased, so it cannot be had back")
        draft.nothing = OVER
    elif fate is not None and fate.edited_as is not None:
        draft.stands.append(f"its edited copy, message {fate.edited_as}, stands in its place")
        draft.nothing = OVER
    elif fate is not None:
        _restorable(draft, status, group, fate, viewer)
    else:
        draft.stands.append("its bytes are no longer kept, so it cannot be had back")
        draft.nothing = OVER


def _restorable(draft: Draft, status: Status, group: GroupStatus, fate: Fate, viewer: Viewer) -> None:
    until = (
        "while its bytes are kept"
        if fate.restorable_until is None
        else f"it is kept until {viewer.moment(fate.restorable_until)}, or longer"
    )
    draft.can.append(
        Action(what=f"have it back ({until})", command=commands.restore(status.id, group.group, group.topic))
    )


def _retry(draft: Draft, status: Status, group: GroupStatus, inbox: InboxRow, viewer: Viewer) -> None:
    retry = next(mine(status.around.retries, group), None)
    if inbox.reason == "later":
        draft.stands.append(f"its handler put it off; attempt {inbox.attempt} is next")
    else:
        draft.stands.append(f"attempt {inbox.attempt - 1} failed: {_reason(inbox.reason, inbox.error)}")
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


def _redriven(draft: Draft, status: Status, group: GroupStatus, inbox: InboxRow, viewer: Viewer) -> None:
    act = _last_act(status, group, "redrive")
    by = "" if act is None else f" by {act.actor} {viewer.away(act.at)}"
    if group.redrive is Redrive.ASKED:
        draft.stands.append(
            f"a redrive was asked for{by}; the order stands in the database, and the copy is not sent yet"
        )
        draft.next.append(
            "a running processor of the group sends the original bytes within a second or two; then the handler runs"
        )
    elif group.standing.startswith("redriven and failed"):
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


def _quarantine(draft: Draft, status: Status, group: GroupStatus, inbox: InboxRow, viewer: Viewer) -> None:
    held = group.quarantined
    reason = inbox.reason or (None if held is None else held.reason)
    if held is None:
        draft.stands.append(
            f"it is in quarantine: {_reason(reason, inbox.error)}; but its bytes are not in the table"
        )
        draft.next.append("nothing")
        draft.nothing = "nothing is safe to do: the tables contradict each other; do not change them by hand"
        return
    draft.stands.append(
        f"it rests in quarantine since {viewer.moment(held.quarantined_at)}, after {held.attempts} "
        f"{_plural('attempt', held.attempts)}: {_reason(reason, held.error)}"
    )
    if held.redrives:
        draft.stands.append(
            f"it was redriven {held.redrives} {_plural('time', held.redrives)} and failed again"
        )
    if held.copy_offset is None:
        draft.stands.append(
            "its bytes are safe in the database; its copy on the quarantine topic is not confirmed yet"
        )
    _behind(draft, status, group)
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


def _parked(draft: Draft, status: Status, group: GroupStatus, inbox: InboxRow, viewer: Viewer) -> None:
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


def _uncertain(draft: Draft, inbox: InboxRow, viewer: Viewer) -> None:
    draft.stands.append(
        f"it is uncertain since {viewer.moment(inbox.changed_at)}: an outside effect may or may not have happened"
    )
    draft.waits.append("for a person: nothing is called again by itself")
    draft.next.append("nothing, until somebody has looked at the outside system")
    draft.can.append(
        Action(what="ask the outside system whether the effect is there, by its idempotency key")
    )


def _without_row(draft: Draft, status: Status, group: GroupStatus) -> None:
    if group.quarantined is not None:
        draft.stands.append(
            f"it is in the quarantine's table as {group.quarantined.state}, and the inbox has no row of it (any more)"
        )
    else:
        failed = len(group.attempts)
        draft.stands.append(
            f"{failed} {_plural('attempt', failed)} failed, and no outcome is on record (any more)"
        )
    draft.next.append("what comes of it here is not known")
    draft.can.append(Action(what="see all that is on record", command=command("status", status.id)))


def _runs(draft: Draft, status: Status, group: GroupStatus, viewer: Viewer) -> None:
    """Write down the redrives and replays that it is in the hands of."""
    for one in mine(status.around.memberships, group):
        if one.run_state in {"previewed", "running", "paused", "halted"} and one.state in {
            "waiting",
            "asked",
        }:
            if not one.as_frozen:
                draft.stands.append(
                    f"it was a member of redrive {one.run}, which is {one.run_state}; it has moved since that was frozen, and will "
                    "not be redriven by it"
                )
                continue
            runner = "" if one.live or one.run_state != "running" else ", but nobody runs it"
            draft.stands.append(
                f"it is a member of redrive {one.run}, which is {one.run_state}{runner}; here it is {one.state}"
            )
            act = "resume" if one.run_state in {"running", "paused", "halted"} and not one.live else "status"
            draft.can.append(
                Action(what=f"see to redrive {one.run}", command=command("redrive", act, one.run))
            )
    for replay in mine(status.around.replays, group):
        runner = "" if replay.live or replay.run_state != "running" else ", but nobody runs it"
        run = f"the replay is {replay.run_state}{runner}"
        if replay.outcome is not None:
            draft.stands.append(
                f"replay {replay.run} by {replay.planned_by} had it done once more, under the identity {replay.identity}: "
                f"{replay.outcome}; {run}"
            )
            draft.can.append(
                Action(what="see where that stands", command=command("explain", replay.identity))
            )
            continue
        since = "" if replay.handed_at is None else f" {viewer.away(replay.handed_at)}"
        draft.stands.append(
            f"replay {replay.run} by {replay.planned_by} handed it over{since} and waits for its outcome; {run}"
        )
        act = (
            "resume" if replay.run_state in {"running", "paused", "halted"} and not replay.live else "status"
        )
        draft.can.append(
            Action(what=f"see to replay {replay.run}", command=command("replay", act, replay.run))
        )


def _reason(reason: str | None, error: str | None) -> str:
    """
    Return a reason code with its meaning, and the error's class and place.

    >>> _reason("permanent", "ValueError at handlers.py:12"), _reason("no-seat", None), _reason(None, None)
    ('permanent (the handler declares errors of this class as permanent), ValueError at handlers.py:12', 'no-seat', 'no reason on record')
    """
    if reason is None:
        return error or "no reason on record"
    means = f" ({MEANS[reason]})" if reason in MEANS else ""
    told = MEANS[reason] if reason == "failed" else f"{reason}{means}"
    return told + (f", {error}" if error else "")


def _last_act(status: Status, group: GroupStatus, *names: str) -> Act | None:
    acts = [
        act
        for act in status.acts
        if (act.group, act.topic) == (group.group, group.topic) and act.act in names
    ]
    return acts[-1] if acts else None


def _plural(word: str, number: int) -> str:
    return word if number == 1 else f"{word}s"
