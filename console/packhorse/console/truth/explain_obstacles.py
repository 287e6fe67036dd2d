"""What keeps a group from going on: pauses, stopped handlers, no process alive, a parked key. Pure: no I/O, no clock."""

from packhorse.console.truth import commands
from packhorse.console.truth.around import MOST_COUNTED, Around, Crew, Key, Pause
from packhorse.console.truth.commands import WHY, command
from packhorse.console.truth.explanation import Action, Draft
from packhorse.console.truth.moments import Viewer
from packhorse.processor.watching.stall import QUIET


def obstacles(
    draft: Draft,
    around: Around,
    group: str,
    topic: str,
    partition: int | None,
    viewer: Viewer,
    *,
    tier: str | None = None,
) -> None:
    """Write down what keeps *partition* of *topic*, or its *tier*, from being worked on in *group*."""
    pause = around.holding(group, topic, partition, tier=tier)
    if pause is not None:
        tell_pause(draft, pause, viewer)
    tell_crew(draft, around.crew(group), topic, partition, viewer)


def tell_pause(draft: Draft, pause: Pause, viewer: Viewer) -> None:
    """Write down that a person has paused what it needs."""
    why = f": {pause.why}" if pause.why else "; no reason was given"
    draft.waits.append(
        f"{pause.what} is paused by {pause.by} since {viewer.moment(pause.at)}{why}; it holds until somebody resumes it"
    )
    draft.can.append(
        Action(
            what="let it go on",
            command=command(
                "processor",
                "resume",
                group=pause.group,
                topic=pause.topic or None,
                partition=None if pause.partition < 0 else pause.partition,
                why=WHY,
            ),
        )
    )


def tell_crew(draft: Draft, crew: Crew, topic: str, partition: int | None, viewer: Viewer) -> None:
    """Write down that nobody works, that a handler is stopped, or that the partition stands still."""
    if not crew.alive:
        seen = (
            f"the last was seen {viewer.away(crew.seen_at)}"
            if crew.seen_at is not None
            else "none has written itself down here lately"
        )
        draft.waits.append(f"for a processor of group {crew.group}: none is alive, {seen}")
        draft.can.append(
            Action(
                what="start one, with the application's name", command="packhorse processor run MODULE:APP"
            )
        )
    for stopped in crew.stopped:
        draft.waits.append(
            f"perhaps for a stopped handler ({stopped}): while brake or breaker has it, one message at a time is tried, and it "
            "goes on by itself when one goes well"
        )
    for where, number, cause in crew.stalls:
        mine = where == topic or where.startswith(f"{topic}.{crew.group}.retry.")
        if mine and number == partition and cause not in QUIET:  # those are told elsewhere
            draft.waits.append(f"its partition, {where}[{number}], does not move: {cause}")
            draft.can.append(
                Action(what="see what holds it", command=command("processor", "status", group=crew.group))
            )


def tell_key(draft: Draft, key: Key, viewer: Viewer, *, position: int | None) -> None:
    """Write down why a key is parked, and what comes of what stands behind it; *position* of the one that asks."""
    ahead = "it" if position is None or position <= 1 else f"the {position - 1} before it, and then it,"
    run = "it runs" if ahead == "it" else f"{ahead} run"
    if key.paused:
        tell_paused_key(draft, key, viewer)
        draft.next.append(f"once the key is resumed and its head is finished, {run}, in order")
        return
    if key.head is not None and key.head_open:
        _tell_head(draft, key, viewer, run)
        return
    if key.drainer is not None:
        draft.waits.append(f"for its turn: {key.drainer} runs the followers of its key now, in order")
        draft.next.append(f"{run} as soon as what is before it has ended")
        return
    draft.waits.append("for a processor to look at its key, whose head is finished")
    draft.next.append(f"{run} when a running processor looks, mostly within seconds, at the latest a minute")


def _tell_head(draft: Draft, key: Key, viewer: Viewer, run: str) -> None:
    head = f"the head of its key, message {key.head}"
    draft.can += head_actions(key)
    match key.head_outcome:
        case "retry":
            due = "" if key.head_due_at is None else f", due {viewer.moment(key.head_due_at)}"
            draft.waits.append(f"for {head}: it failed and waits for its next attempt{due}")
            draft.next.append(f"when the head has ended well, {run}, in order")
        case "quarantine":
            reason = "" if key.head_reason is None else f" ({key.head_reason})"
            draft.waits.append(f"for {head}: it rests in quarantine{reason} until a person decides")
            draft.next.append(
                f"nothing until then; when the head is redriven and ends well, or is given up, {run}, in order"
            )
        case _:
            draft.waits.append(f"for {head}, whose outcome is {key.head_outcome}")
            draft.next.append(f"when the head is finished, {run}, in order")


def head_actions(key: Key) -> list[Action]:
    """Return what a person can do about the head of *key*."""
    look = Action(what="see where the head stands", command=command("explain", key.head))
    if key.head_outcome != "quarantine":
        return [look]
    names = (key.head, key.group, key.topic)
    return [
        look,
        Action(what="send the head again, once its cause is mended", command=commands.redrive(*names)),
        Action(what="or give the head up", command=commands.discard(*names)),
    ]


def tell_paused_key(draft: Draft, key: Key, viewer: Viewer) -> None:
    """Write down that a person has paused the key."""
    by = f" by {key.paused_by}" if key.paused_by is not None else ""
    since = "" if key.paused_at is None else f" since {viewer.moment(key.paused_at)}"
    why = f": {key.paused_why}" if key.paused_why else "; no reason is on record"
    draft.waits.append(f"its key is paused{by}{since}{why}; it holds until somebody resumes it")
    draft.can.append(
        Action(
            what="let the key go on",
            command=command(
                "processor", "resume", group=key.group, topic=key.topic, key_hash=key.key_hash, why=WHY
            ),
        )
    )


def waiting_text(number: int) -> str:
    """
    Return how many messages wait, for people.

    >>> waiting_text(0), waiting_text(1), waiting_text(100_000)
    ('no message waits', '1 message waits', 'at least 100000 messages wait')
    """
    if number >= MOST_COUNTED:
        return f"at least {number} messages wait"
    return {0: "no message waits", 1: "1 message waits"}.get(number, f"{number} messages wait")
