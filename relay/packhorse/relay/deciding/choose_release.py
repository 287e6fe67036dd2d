"""What a release does next, and when a hold that heals by itself is looked at."""

from packhorse.relay.deciding import commands as c
from packhorse.relay.deciding.after_release import blocked
from packhorse.relay.deciding.state import State
from packhorse.relay.holds import Leg
from packhorse.relay.model import Policy


def standing(state: State, *, now: float) -> bool:
    """Tell whether the relay stands still, so that a release can meet it."""
    release = state.release
    return release is not None and release.meeting and not release.broken and now <= release.meet_by


def step(state: State, *, pause: float, now: float, policy: Policy) -> c.Command | None:
    """Return the release's next command; it may wait up to *pause* for confirmations. None: nothing to do now."""
    release = state.release
    if release is None or release.broken:
        return None
    if release.waiting:
        return c.ConfirmHeld(pause)
    if now < release.next_at:
        return c.Wait(min(pause, release.next_at - now)) if pause else None
    if release.batch is not None:
        return c.SendHeld(release.batch.rows[: release.piece])
    if release.leg is None or now < state.database_at:
        return None
    return c.FetchHeld(
        release.scope, Leg(start=release.sent, upto=release.leg.upto), limit=policy.release_rows
    )


def probe(state: State, *, now: float) -> c.Command | None:
    """Return the question whether a hold that heals by itself can be released, when one is due."""
    if state.trouble is not None:
        return None
    due = dict(state.retries)
    for hold in state.holds:
        if (
            hold.fault.heals
            and not hold.releasing
            and now >= due.get(hold.scope, now)
            and not blocked(state, hold)
        ):
            return c.ProbeScope(hold.scope)
    return None
