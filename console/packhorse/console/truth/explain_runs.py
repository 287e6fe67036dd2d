"""Explain in whose hands a message is: the redrives and replays that have to do with it. Pure: no I/O, no clock."""

from packhorse.console.truth.around import Membership, OfRun, mine, run_text
from packhorse.console.truth.commands import command
from packhorse.console.truth.explanation import Action, Draft
from packhorse.console.truth.groups import GroupStatus
from packhorse.console.truth.moments import Viewer
from packhorse.console.truth.replays import Replayed
from packhorse.console.truth.status import Status


def tell_runs(draft: Draft, status: Status, group: GroupStatus, viewer: Viewer) -> None:
    """Write down the redrives and replays that the message is in the hands of."""
    for one in mine(status.around.memberships, group):
        if one.run_state in {"previewed", "running", "paused", "halted"} and one.state in {
            "waiting",
            "asked",
        }:
            _membership(draft, one)
    for replay in mine(status.around.replays, group):
        _replay(draft, replay, viewer)


def _membership(draft: Draft, one: Membership) -> None:
    if not one.as_frozen:
        draft.stands.append(
            f"it was a member of redrive {one.run}, which is {one.run_state}; it has moved since that was frozen, and will "
            "not be redriven by it"
        )
        return
    draft.stands.append(
        f"it is a member of redrive {one.run}, which is {run_text(one)}; here it is {one.state}"
    )
    draft.can.append(_see_to("redrive", one))


def _replay(draft: Draft, replay: Replayed, viewer: Viewer) -> None:
    run = f"the replay is {run_text(replay)}"
    if replay.outcome is not None:
        draft.stands.append(
            f"replay {replay.run} by {replay.planned_by} had it done once more, under the identity {replay.identity}: "
            f"{replay.outcome}; {run}"
        )
        draft.can.append(Action(what="see where that stands", command=command("explain", replay.identity)))
        return
    since = "" if replay.handed_at is None else f" {viewer.away(replay.handed_at)}"
    draft.stands.append(
        f"replay {replay.run} by {replay.planned_by} handed it over{since} and waits for its outcome; {run}"
    )
    draft.can.append(_see_to("replay", replay))


def _see_to(kind: str, one: OfRun) -> Action:
    act = "resume" if one.run_state in {"running", "paused", "halted"} and not one.live else "status"
    return Action(what=f"see to {kind} {one.run}", command=command(kind, act, one.run))
