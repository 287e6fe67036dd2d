"""Explain where one group stands with one message. Pure: no I/O, no clock."""

from packhorse.console.facts import InboxRow, Outcome
from packhorse.console.truth import commands
from packhorse.console.truth.around import Fate, mine
from packhorse.console.truth.commands import command
from packhorse.console.truth.explain_runs import tell_runs
from packhorse.console.truth.explain_waiting import tell_parked, tell_quarantine, tell_redriven, tell_retry
from packhorse.console.truth.explanation import Action, Draft, Part
from packhorse.console.truth.groups import GroupStatus, Redrive, last_act
from packhorse.console.truth.moments import Viewer
from packhorse.console.truth.reasons import MEANS
from packhorse.console.truth.status import Status
from packhorse.core.text import counted

OVER = "nothing is left to do"


def explain_group(status: Status, group: GroupStatus, viewer: Viewer) -> Part:
    """Return in words how *group* stands with the message."""
    draft = Draft(about=f"group {group.group}, topic {group.topic}")
    inbox = group.inbox
    if inbox is None:
        _without_row(draft, status, group)
    elif group.redrive in {Redrive.ASKED, Redrive.SENT}:
        tell_redriven(draft, status, group, inbox, viewer)
    else:
        match inbox.outcome:
            case Outcome.DONE:
                _done(draft, group, inbox, viewer)
            case Outcome.SKIPPED:
                _skipped(draft, inbox, viewer)
            case Outcome.DISCARDED:
                _discarded(draft, status, group, inbox, viewer)
            case Outcome.RETRY:
                tell_retry(draft, status, group, inbox, viewer)
            case Outcome.QUARANTINE:
                tell_quarantine(draft, status, group, inbox, viewer)
            case Outcome.PARKED:
                tell_parked(draft, status, group, inbox, viewer)
            case Outcome.UNCERTAIN:
                _uncertain(draft, inbox, viewer)
    tell_runs(draft, status, group, viewer)
    return draft.part()


def _done(draft: Draft, group: GroupStatus, inbox: InboxRow, viewer: Viewer) -> None:
    redriven = ", after a redrive" if group.redrive is Redrive.PROVED else ""
    draft.stands.append(
        f"it is done since {viewer.moment(inbox.changed_at)}{redriven}: its result and the fact that it is done were committed "
        "together"
    )
    if group.attempts:
        draft.stands.append(f"{counted(len(group.attempts), 'attempt')} failed before")
    if inbox.deliveries > 1:
        draft.stands.append(
            f"{inbox.deliveries} records of it were read (delivered again, copies in tiers, wake-ups of its key); only one had an "
            "effect"
        )
    draft.nothing = OVER


def _skipped(draft: Draft, inbox: InboxRow, viewer: Viewer) -> None:
    if inbox.reason == "expired":
        why = "its expires-at had passed, so no handler was run for it"
    elif inbox.reason in {"cancelled", "job-over", "other-group"}:
        why = f"{MEANS[inbox.reason]}, so nothing was run for it"
    else:
        why = "its handler chose to skip it, and nothing that it wrote was kept"
    draft.stands.append(f"it is skipped since {viewer.moment(inbox.changed_at)}: {why}")
    draft.nothing = OVER


def _discarded(draft: Draft, status: Status, group: GroupStatus, inbox: InboxRow, viewer: Viewer) -> None:
    act = last_act(status.acts, group.group, group.topic, "discard", "edit")
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
        draft.stands.append(
            f"{counted(len(group.attempts), 'attempt')} failed, and no outcome is on record (any more)"
        )
    draft.next.append("what comes of it here is not known")
    draft.can.append(Action(what="see all that is on record", command=command("status", status.id)))
