"""What a person is told of a report, stage by stage. `static/report.js` finds the stage by the same rules."""

from collections.abc import Mapping
from typing import Any, Final

WORDS: Final[Mapping[str, tuple[str, str]]] = {
    "waiting": ("is on its way", "It waits for its turn. You can close this page and come back."),
    "running": ("is being made", "You can close this page and come back."),
    "retrying": ("is tried again", "Something went wrong, and it is tried again by itself."),
    "late": ("is late", "It takes longer than it should. It is not lost, and you need do nothing."),
    "stopping": ("is being stopped", "It was cancelled while it was made, and stops as soon as it can."),
    "ready": ("is ready", "Here it is:"),
    "failed": ("could not be made", "Somebody looks into it. Ask for a new one, or come back later."),
    "cancelled": ("was cancelled", "Nothing more happens."),
    "expired": ("was not made in time", "Ask for a new one."),
    "discarded": ("was given up", "Somebody looked into it, and it can't be made."),
}
"""By stage: how its headline goes on after the report's name, and what else there is to say."""
_ENDED: Final = {
    "succeeded": "ready",
    "cancelled": "cancelled",
    "expired": "expired",
    "discarded": "discarded",
}


def stage_of(job: Mapping[str, Any]) -> str:
    """
    Return the stage of *job*, as `GET /jobs/<id>` answers.

    >>> stage_of({"state": "running", "needs_person": False, "cancel_asked": False, "late": True})
    'late'
    """
    if job["state"] in _ENDED:
        return _ENDED[job["state"]]
    if job["needs_person"]:
        return "failed"
    if job["cancel_asked"]:
        return "stopping"
    if job["late"]:
        return "late"
    return {"running": "running", "retrying": "retrying"}.get(job["state"], "waiting")
