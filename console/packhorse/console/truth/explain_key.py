"""Explain in words how a group stands with a key. Pure: no I/O, no clock."""

from packhorse.console.truth.commands import command
from packhorse.console.truth.explain_obstacles import (
    head_actions,
    tell_crew,
    tell_pause,
    tell_paused_key,
    waiting_text,
)
from packhorse.console.truth.explanation import Action, Draft, Explanation
from packhorse.console.truth.keys import KeyFacts
from packhorse.console.truth.moments import Viewer


def explain_key(facts: KeyFacts, viewer: Viewer) -> Explanation:
    """Return the explanation of one key; it is known when the group reads the topic, or has the key parked."""
    draft = Draft(about=f"a key of {facts.topic} in group {facts.group} (hash {facts.key_hash})")
    known = facts.reads or facts.key is not None
    standing = "parked" if facts.key is not None else "not parked" if known else "unknown"
    if not known:
        draft.stands.append(
            f"unknown: group {facts.group} has no watermark of topic {facts.topic} in this database, so it has never read it here"
        )
        draft.can.append(
            Action(
                what="see which topics it reads", command=command("processor", "status", group=facts.group)
            )
        )
    elif facts.key is None:
        draft.stands.append(
            "not parked: no message of it has failed, and nobody has paused it; its next messages run as they come"
        )
        _around(draft, facts, None, viewer)
    else:
        _parked(draft, facts, viewer)
    return Explanation(known=known, standing=standing, parts=(draft.part(),))


def _parked(draft: Draft, facts: KeyFacts, viewer: Viewer) -> None:
    key = facts.key
    assert key is not None
    oldest = "" if key.oldest is None else f", the first since {viewer.moment(key.oldest)}"
    draft.stands.append(
        f"parked since {viewer.moment(key.parked_at)}: {waiting_text(key.waiting)} behind it{oldest}"
    )
    if key.paused:
        tell_paused_key(draft, key, viewer)
    if key.head is not None and key.head_open:
        _head(draft, facts, viewer)
    elif key.head is not None:
        draft.stands.append(f"its head, message {key.head}, is finished")
    if key.drainer is not None:
        draft.stands.append(f"{key.drainer} runs its followers now, in order")
        draft.next.append("it is let go once the last of them has ended")
    elif not key.paused and not key.head_open:
        draft.next.append(
            "a running processor runs what waits, in order, mostly within seconds, and then lets the key go"
        )
    elif key.paused:
        draft.next.append("nothing, until somebody resumes it; then what waits runs, in order")
    _around(draft, facts, key.partition, viewer)


def _head(draft: Draft, facts: KeyFacts, viewer: Viewer) -> None:
    key = facts.key
    assert key is not None
    reason = "" if key.head_reason is None else f", {key.head_reason}"
    draft.stands.append(f"its head is message {key.head} ({key.head_outcome}{reason})")
    draft.can += head_actions(key)
    if key.head_outcome == "retry":
        due = "" if key.head_due_at is None else f", due {viewer.moment(key.head_due_at)}"
        draft.waits.append(f"for the next attempt of its head{due}")
        draft.next.append(
            "when that ends well, what waits runs, in order; when it fails for good, the head goes to quarantine"
        )
        return
    draft.waits.append("for a person: the head does not go on by itself")
    draft.next.append("when the head is redriven and ends well, or is given up, what waits runs, in order")


def _around(draft: Draft, facts: KeyFacts, partition: int | None, viewer: Viewer) -> None:
    for pause in facts.pauses:
        whole = pause.topic == "" or (pause.topic == facts.topic and pause.partition < 0)
        if whole or (pause.topic == facts.topic and partition is not None and pause.partition == partition):
            tell_pause(draft, pause, viewer)
        elif pause.topic == facts.topic and partition is None:
            draft.waits.append(f"perhaps: {pause.what} is paused by {pause.by}, if the key belongs to it")
    tell_crew(draft, facts.crew, facts.topic, partition, viewer)
