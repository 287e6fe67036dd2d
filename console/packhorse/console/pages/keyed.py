"""Pauses of one key as a person meets them: what is offered, and how far it is. Pure: no I/O, no clock."""

from urllib.parse import urlencode

from packhorse.console.pages.offers import Offer, Stage
from packhorse.console.pages.steps import stamp
from packhorse.console.truth.keys import KeyFacts
from packhorse.core.rights import Right, Standing
from packhorse.core.text import counted


def address(group: str, topic: str, *, key: str | None, key_hash: str | None, **more: str) -> str:
    """
    Return where a key is seen, by the name that it was asked for with.

    >>> address("figures", "a.b", key="N 1", key_hash=None, asked="pause")
    '/keys?group=figures&topic=a.b&key=N+1&asked=pause'
    """
    named = {"key": key} if key is not None else {"key_hash": key_hash}
    return f"/keys?{urlencode({'group': group, 'topic': topic, **named, **more})}"


def pause_offer(facts: KeyFacts, key: str, standing: Standing) -> Offer:
    """Return what is offered to whoever wants *key* paused, by how it stands now."""
    waiting = 0 if facts.key is None else facts.key.waiting
    return Offer(
        title="Pause one key",
        happens=(
            "The order goes on the record, and holds over restarts and rebalances until somebody lets the key go on.",
            "Processes of the group follow within about a second: what has begun ends, and nothing new of the key begins.",
            "New messages of the key wait behind it, in their order; all other keys go on.",
        ),
        action="/keys/pause",
        button=f"Pause this key of {facts.topic}",
        back=address(facts.group, facts.topic, key=key, key_hash=None),
        may=Right.ACT in standing.rights,
        needs=Right.ACT.value,
        hidden={"group": facts.group, "topic": facts.topic, "key": key, "hash": facts.key_hash},
        facts=(
            ("Group", facts.group),
            ("Topic", facts.topic),
            ("Key", key),
            ("Stands now", _stands(facts)),
            ("Waits behind it", counted(waiting, "message")),
        ),
        warnings=tuple(_before_pause(facts)),
    )


def resume_offer(facts: KeyFacts, *, key: str | None, standing: Standing) -> Offer:
    """Return what is offered to whoever wants the key of *facts* to go on; *key* where it was named itself."""
    found = facts.key
    paused = found is not None and found.paused
    # A pause that begins after this look is none of what is ended here.
    since = found.paused_at if found is not None and paused else facts.now
    head = found is not None and found.head_open
    return Offer(
        title="Let one key go on",
        happens=(
            "The order goes on the record; the pause of this key ends with it.",
            "What waits behind it runs in its order, once its head is finished: a person's pause is not all that holds it."
            if head
            else "A running processor of the group looks within about a second, and runs what waits behind it, in its order.",
        ),
        action="/keys/resume",
        button=f"Let this key of {facts.topic} go on",
        back=address(facts.group, facts.topic, key=key, key_hash=facts.key_hash),
        may=Right.ACT in standing.rights,
        needs=Right.ACT.value,
        hidden={
            "group": facts.group,
            "topic": facts.topic,
            "key": key,
            "key_hash": None if key is not None else facts.key_hash,
            "hash": facts.key_hash,
            "since": None if since is None else since.isoformat(),
        },
        facts=(
            ("Group", facts.group),
            ("Topic", facts.topic),
            ("Key", key if key is not None else f"hash {facts.key_hash}"),
            ("Stands now", _stands(facts)),
            ("Waits behind it", counted(0 if found is None else found.waiting, "message")),
        ),
        warnings=()
        if paused
        else ("It is not paused: to ask for it changes nothing, and nothing goes on the record.",),
    )


def stages_of(facts: KeyFacts, asked: str) -> tuple[Stage, ...]:
    """Return how far an act on the key of *facts* is: *asked* is `pause` or `resume`."""
    return _paused(facts) if asked == "pause" else _resumed(facts)


def is_through(facts: KeyFacts, asked: str) -> bool:
    """Return whether nothing more is to be waited for after the act *asked*."""
    return all(stage.is_done or stage.went_wrong for stage in stages_of(facts, asked))


def _paused(facts: KeyFacts) -> tuple[Stage, ...]:
    key = facts.key
    if key is None or not key.paused:
        undone = Stage(
            name="Asked",
            is_done=False,
            went_wrong=True,
            said="it is not paused now: somebody has let it go on since",
        )
        return (undone,)
    by = "" if key.paused_by is None else f", by {key.paused_by}"
    since = "" if key.paused_at is None else f" since {stamp(key.paused_at)}"
    crew = facts.crew
    seen = bool(crew.alive and crew.seen_at and key.paused_at and crew.seen_at > key.paused_at)
    return (
        Stage(name="Asked", is_done=True, said=f"the pause stands in the database{since}{by}"),
        Stage(
            name="Taken up",
            is_done=seen,
            said="a process of the group has given a sign of life since, and reads the pause with each batch"
            if seen
            else "no process of the group has given a sign of life since; whoever starts holds to it",
        ),
        Stage(
            name="Proved",
            is_done=seen and key.drainer is None,
            said=f"{key.drainer} ends what it has in hand of it"
            if key.drainer is not None
            else "nobody runs what waits behind it" + ("" if seen else ", as nobody is at work"),
        ),
    )


def _resumed(facts: KeyFacts) -> tuple[Stage, ...]:
    key = facts.key
    if key is not None and key.paused:
        by = "somebody" if key.paused_by is None else key.paused_by
        again = Stage(name="Asked", is_done=False, went_wrong=True, said=f"it is paused now, by {by}")
        return (again,)
    asked = Stage(name="Asked", is_done=True, said="no pause of the key stands in the database")
    if key is None:
        return (
            asked,
            Stage(name="Taken up", is_done=True, said="nothing waits behind it any more"),
            Stage(name="Proved", is_done=True, said="the key is let go: its next messages run as they come"),
        )
    waits = counted(key.waiting, "message")
    if key.head_open:
        return (
            asked,
            Stage(
                name="Taken up",
                is_done=False,
                said=f"its head, message {key.head}, is not finished ({key.head_outcome}); that holds it, and no pause",
            ),
        )
    runs = key.drainer is not None
    return (
        asked,
        Stage(
            name="Taken up",
            is_done=runs,
            said=f"{key.drainer} runs what waits behind it"
            if runs
            else "a running processor of the group looks at it",
        ),
        Stage(
            name="Proved",
            is_done=False,
            said=f"once a running processor has let the key go: {waits} behind it now",
        ),
    )


def _stands(facts: KeyFacts) -> str:
    key = facts.key
    if key is None:
        return "not parked" if facts.reads else "the group has never read this topic here"
    if key.paused:
        return "paused" + ("" if key.paused_by is None else f" by {key.paused_by}")
    return f"parked behind message {key.head}" if key.head_open else "parked, its head is finished"


def _before_pause(facts: KeyFacts) -> list[str]:
    key = facts.key
    told = []
    if key is not None and key.paused:
        why = f": {key.paused_why}" if key.paused_why else ""
        told.append(
            f"It is paused already{why}. To ask again changes nothing; who paused it, and why, stay as they are."
        )
    if not facts.reads and key is None:
        told.append(
            "This group has never read this topic here. A mistyped name would hold nothing, so the server refuses it unless you "
            "say that you mean it."
        )
    return told
