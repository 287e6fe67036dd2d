"""Where an act on the record leads: to the page that tells how what was acted on stands now. Pure: no I/O."""

from collections.abc import Sequence
from urllib.parse import quote

from packhorse.console.audit.pages import Entry
from packhorse.console.pages.deciding import group_at
from packhorse.console.pages.resting import address, whole_way

_NUMBERED = {"set": "redrives", "replay": "replays", "hold": "relay/holds"}
"""Names in the detail of an act, and the pages of what has that number."""


def stands_at(done: Sequence[Entry]) -> str:
    """Return the page that tells how it stands what *done*, the acts of one form, were about: the job's, or of several the last one's."""
    job = next((one for one in done if one.act.startswith("job-") or one.detail.get("job")), None)
    if job is not None and job.message_id is not None:
        return f"/jobs/{job.message_id}"
    one = done[-1]
    for name, room in _NUMBERED.items():
        if (number := one.detail.get(name)) is not None:
            return "/relay" if name == "hold" and len(done) > 1 else f"/{room}/{number}"
    if one.act.startswith("operators-"):
        return "/people"
    if one.act in {"pause", "resume"} and one.group is not None:
        return _paused(one, one.group)
    if (failure := one.detail.get("failure")) is not None:
        return group_at(str(failure))
    if one.message_id is None:
        return "/audit"
    return whole_way(one.message_id, one.group, one.topic)


def _paused(one: Entry, group: str) -> str:
    if (key_hash := one.detail.get("key_hash")) is not None:
        return address("/keys", group=group, topic=one.topic, key_hash=key_hash, asked=one.act)
    return address(
        f"/groups/{quote(group, safe='')}/paused", topic=one.topic, partition=one.detail.get("partition")
    )
