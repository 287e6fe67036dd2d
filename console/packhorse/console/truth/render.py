"""Lay out what stands around a message: for people as labels and lines, for programs as values."""

from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from packhorse.console.output import at, plain, said, sheet
from packhorse.console.truth.around import MOST_COUNTED, Fate, Key, Membership, Retry, mine, run_text
from packhorse.console.truth.explanation import Explanation, Part
from packhorse.console.truth.groups import GroupStatus, is_open
from packhorse.console.truth.replays import Replayed
from packhorse.console.truth.status import Status

Pairs = list[tuple[str, object]]


def message_pairs(status: Status) -> Pairs:
    """Return what is to be said of the message as a whole besides."""
    pairs: Pairs = []
    if status.around.rows > 1:
        pairs.append(("rows", f"{status.around.rows} outbox rows bear this id; the first is shown"))
    for parent in status.around.parents:
        pairs.append(("edited copy", f"of message {parent.id} in quarantine of group {parent.group}"))
    if (of := status.around.replay_of) is not None:
        pairs.append(
            ("replayed", f"it is message {of.original}, as replay {of.run} hands it to group {of.group}")
        )
    for each in status.awaited:
        pairs.append((f"group {each.group}", each.said))
    return pairs


def group_pairs(status: Status, group: GroupStatus) -> Pairs:
    """Return what is to be said of one group besides."""
    around, pairs = status.around, Pairs()
    pairs += [("next attempt", retry_line(each)) for each in mine(around.retries, group)]
    pairs += [("its key", key_line(each)) for each in mine(around.keys, group)]
    for fate in mine(around.fates, group):
        pairs += _fate(fate)
    pairs += [(f"redrive {each.run}", membership_line(each)) for each in mine(around.memberships, group)]
    pairs += [(f"replay {each.run}", replay_line(each)) for each in mine(around.replays, group)]
    return [*pairs, *(_crew(status, group) if is_open(group) else ())]


def _crew(status: Status, group: GroupStatus) -> Pairs:
    around, pairs = status.around, Pairs()
    inbox = group.inbox
    tier = next((each.tier for each in mine(around.retries, group)), None)
    partition = None if inbox is None else inbox.partition
    if (pause := around.holding(group.group, group.topic, partition, tier=tier)) is not None:
        pairs.append(
            ("paused", f"{pause.what}, by {pause.by} since {at(pause.at)}: {pause.why or 'no reason given'}")
        )
    crew = around.crew(group.group)
    if crew.alive:
        pairs.append(("processors", f"{crew.alive} alive"))
    else:
        since = (
            "none is known"
            if crew.seen_at is None
            else f"none alive, the last was seen at {at(crew.seen_at)}"
        )
        pairs.append(("processors", since))
    pairs += [("stopped", each) for each in crew.stopped]
    return pairs


def retry_line(retry: Retry) -> str:
    """Return tier, due time and copy of a retry."""
    if retry.sent_at is None:
        copy = "its copy is not known to be sent; a running processor sends it"
    else:
        ahead = f", {retry.ahead} before it" if retry.ahead else ""
        copy = f"its copy is sent (partition {retry.sent_partition}, offset {retry.sent_offset}{ahead})"
    return f"{retry.attempt}, in tier {retry.tier}, due {at(retry.due_at)}; {copy}"


def key_line(key: Key) -> str:
    """Return why a key is parked and what waits behind it."""
    why = []
    if key.paused:
        by = (
            ""
            if key.paused_by is None or key.paused_at is None
            else f" by {key.paused_by} since {at(key.paused_at)}"
        )
        why.append(f"paused{by}: {key.paused_why or 'no reason on record'}")
    if key.head is not None and key.head_open:
        reason = "" if key.head_reason is None else f", {key.head_reason}"
        why.append(f"its head is {key.head} ({key.head_outcome}{reason})")
    if key.drainer is not None:
        why.append(f"its followers are run by {key.drainer}")
    if not why:
        why.append("its head is finished; a running processor lets it go on")
    more = "+" if key.waiting >= MOST_COUNTED else ""
    return f"parked since {at(key.parked_at)}: {'; '.join(why)}; {key.waiting}{more} wait behind it"


def membership_line(one: Membership) -> str:
    """Return how far a redrive is with a member, and who is behind it."""
    people = f"previewed by {one.previewed_by}" + (
        "" if one.confirmed_by is None else f", confirmed by {one.confirmed_by}"
    )
    said = "" if one.said is None else f" ({one.said})"
    moved = "" if one.as_frozen else ", has moved since it was frozen and will not be redriven by it"
    return f"{one.state}{said}{moved}; the run is {run_text(one)}, {people}"


def replay_line(replay: Replayed) -> str:
    """Return how far a replay is with a message, and who is behind it."""
    run = f"the replay, by {replay.planned_by}, is {run_text(replay)}"
    if replay.outcome is not None:
        return f"{replay.outcome}, under the identity {replay.identity}; {run}"
    since = "" if replay.handed_at is None else f" at {at(replay.handed_at)}"
    return f"handed over{since}, no outcome counted yet; {run}"


def _fate(fate: Fate) -> Pairs:
    pairs: Pairs = []
    if fate.discarded_at is not None:
        until = (
            "restorable while its bytes are kept"
            if fate.restorable_until is None
            else f"restorable until {at(fate.restorable_until)}"
        )
        if fate.edited_as is not None:
            until = "its edited copy stands in its place"
        gone = "its bytes are erased" if fate.purged_at is not None else until
        pairs.append(("discarded", f"{at(fate.discarded_at)}; {gone}"))
    if fate.purged_at is not None:
        pairs.append(("erased", f"key, payload and headers, {at(fate.purged_at)}; it cannot be sent again"))
    if fate.edited_as is not None:
        pairs.append(("edited as", fate.edited_as))
    return pairs


def explanation_sheet(explanation: Explanation) -> RenderableType:
    """Return an explanation for people: what is so, what it waits for, what comes next, what can be done."""
    parts: list[RenderableType] = []
    for part in explanation.parts:
        parts.append(Text(("\n" if parts else "") + plain(part.about), style="bold"))
        parts += part_lines(part, stands=True)
    return Group(*parts)


def part_lines(part: Part, *, stands: bool = False) -> list[RenderableType]:
    """Return what a part waits for, what comes next and what can be done; with *stands* also where it stands."""
    lines: list[RenderableType] = [sheet(_part(part, stands=stands), indent=2)]
    for action in part.can:
        lines.append(said(f"  you can  {action.what}" + (":" if action.command else "")))
        if action.command is not None:
            # whole, however narrow the terminal is: it is there to be copied
            lines.append(Text(f"    {plain(action.command)}", style="bold", no_wrap=True, overflow="ignore"))
    return lines


def _part(part: Part, *, stands: bool) -> Pairs:
    pairs: Pairs = []
    for label, texts in (
        ("stands", part.stands if stands else ()),
        ("waits", part.waits),
        ("next", part.next),
    ):
        pairs += [(label if n == 0 else "", text) for n, text in enumerate(texts)]
    return [*pairs, *([] if part.can else [("you can", part.nothing)])]


def explanation_json(explanation: Explanation) -> dict[str, Any]:
    """Return an explanation for programs."""
    return {"known": explanation.known, "standing": explanation.standing, "parts": explanation.parts}


def message_json(status: Status) -> dict[str, Any]:
    """Return what is known of the message as a whole besides."""
    return {
        "now": status.around.now,
        "outbox_rows": status.around.rows,
        "edited_copy_of": status.around.parents,
        "replay_of": status.around.replay_of,
        "awaited": status.awaited,
        "relay": status.around.carrier,
    }


def group_json(status: Status, group: GroupStatus) -> dict[str, Any]:
    """Return what is known of one group besides."""
    around, inbox = status.around, group.inbox
    retry = next(mine(around.retries, group), None)
    partition, tier = None if inbox is None else inbox.partition, None if retry is None else retry.tier
    return {
        "retry": retry,
        "parked_key": next(mine(around.keys, group), None),
        "queue": next(mine(around.queued, group), None),
        "pause": around.holding(group.group, group.topic, partition, tier=tier),
        "processors": around.crew(group.group),
        "fate": next(mine(around.fates, group), None),
        "redrives": list(mine(around.memberships, group)),
        "replays": list(mine(around.replays, group)),
    }
