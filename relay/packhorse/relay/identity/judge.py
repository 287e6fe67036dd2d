"""
Judge whether a saved position still means what it meant: `judge(facts, signs, memory) -> Verdict`, no I/O.

A position says by transaction ids what is published. On the server that it was saved on, after a crash of that server, and on
one that goes on from the same write-ahead log (a promoted standby, a restore to a point in time) the ids of rows and position
belong together. On any other server (a dump loaded elsewhere, a logical copy) ids start anew: rows written there may carry
ids that the position has as past. `pg_upgrade` makes a new system that goes on counting where the old one ended. What tells
them apart is the rows themselves: each save notes how far the outbox's sequence was drawn (`seq_high`), and what was drawn
after a save can't be published by it.
"""

from dataclasses import dataclass
from enum import StrEnum

from packhorse.relay.identity.facts import Facts, Memory, Signs, system_of, timeline_of

ADOPT = "`packhorse relay adopt --dry-run` shows what is to be done; docs/runbooks/database-restored.md"


class Kind(StrEnum):
    """What became of the server since the position was saved."""

    SAME = "same"
    FIRST = "first"
    TIMELINE = "timeline"
    SERVER = "server"
    WENT_BACK = "went_back"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """
    Whether the relay may go on from the saved position.

    Attributes:
        kind: What became of the server.
        refusal: Why it may not, and the next step; None: it may.
        text: What people should know although it goes on; None: nothing.
        alarm: `text` tells of messages that may be gone, not only of a move.
    """

    kind: Kind
    refusal: str | None = None
    text: str | None = None
    alarm: bool = False


def wants_signs(facts: Facts) -> bool:
    """Tell whether the rows have to be looked at: only when the server is not known to be the same."""
    return facts.reached and facts.here is not None and facts.saved != facts.here


def judge(facts: Facts, signs: Signs | None, memory: Memory | None = None) -> Verdict:
    """
    Return what the server is to the position; *signs* are needed when `wants_signs` says so.

    Nothing is passed over in silence: where the ids may not belong together and a row shows it, the relay is refused and the
    rows are named. Where no row shows it, going on is right whatever the server is.
    """
    assert facts.here is not None, "a standby is not judged: it takes no writes"
    if not facts.reached:
        return Verdict(kind=_kind(facts), refusal=_unreached(facts))
    if signs is not None and (refusal := _refusal(facts, signs)) is not None:
        return Verdict(kind=_kind(facts), refusal=refusal)
    if facts.saved is None:
        return Verdict(kind=Kind.FIRST)
    if facts.changed:
        return _moved(facts)
    if memory is not None and (facts.epoch, facts.published) < (memory.epoch, memory.published):
        return Verdict(kind=Kind.WENT_BACK, text=_went_back(facts, memory), alarm=True)
    return Verdict(kind=Kind.SAME)


def _kind(facts: Facts) -> Kind:
    if facts.saved is None:
        return Kind.FIRST
    if not facts.changed:
        return Kind.SAME
    return Kind.TIMELINE if facts.same_system else Kind.SERVER


def _unreached(facts: Facts) -> str:
    return (
        f"the horizon {facts.horizon} is ahead of this database, whose next transaction is {facts.counter}: it was saved on "
        f"another server, and new rows would count as published ({_servers(facts)}); {ADOPT}"
    )


def _refusal(facts: Facts, signs: Signs) -> str | None:
    """Return what shows that transaction ids don't mean the same here; the certain signs of lost rows come first."""
    if facts.saved is not None and signs.swallowed.count:
        return (
            f"{signs.swallowed} were written after the last save, and the horizon {facts.horizon} has them as published: "
            f"transaction ids of another server ({_servers(facts)}); nothing is published until this is mended: {ADOPT}"
        )
    if signs.ahead.count:
        return (
            f"{signs.ahead} carry transaction ids that this server has not reached (next: {facts.counter}), as if loaded from "
            f"another one; they would wait until it has ({_servers(facts)}): {ADOPT}"
        )
    if facts.saved is not None and signs.sequence < signs.highest:
        return (
            f"the sequence of outbox.seq stands at {signs.sequence} and seq {signs.highest} was drawn already, as after a logical "
            f"copy ({_servers(facts)}): order and position need one that goes on: {ADOPT}"
        )
    if facts.saved is not None and signs.running:
        return (
            f"{signs.running} open transactions have ids that the horizon {facts.horizon} has as past ({_servers(facts)}); "
            "what they write is looked for when they have ended, and the relay tries again by itself"
        )
    return None


def _servers(facts: Facts) -> str:
    return f"saved on {facts.saved or 'an unknown server'}, this is {facts.here}"


def _moved(facts: Facts) -> Verdict:
    assert facts.saved is not None
    assert facts.here is not None
    if not facts.same_system:
        text = (
            f"another server goes on with this outbox, as after pg_upgrade ({_servers(facts)}); every row's transaction id "
            "agrees with the horizon"
        )
        return Verdict(kind=Kind.SERVER, text=text)
    text = (
        f"the database goes on on timeline {timeline_of(facts.here)} instead of {timeline_of(facts.saved)}: a standby took over or it "
        f"was restored. What was published after the last save that it knows ({facts.saved_at or 'none'}) may be gone from it: "
        f"`packhorse relay verify --since '{facts.saved_at or 'TIME'}'` lists that; what it has is published"
    )
    return Verdict(kind=Kind.TIMELINE, text=text, alarm=True)


def _went_back(facts: Facts, memory: Memory) -> str:
    return (
        f"the database went back in time: {facts.published:,} rows published in epoch {facts.epoch} by its own count, and this process "
        f"knows of {memory.published:,} in epoch {memory.epoch}. What was published after {facts.saved_at or 'that'} may be gone "
        f"from it: `packhorse relay verify --since '{facts.saved_at or 'TIME'}'` lists that; what it has is published"
    )


def standing(facts: Facts) -> str:
    """Return which server this is and whether that changed, as `packhorse relay status` shows it."""
    assert facts.here is not None
    text = f"system {system_of(facts.here)}, timeline {timeline_of(facts.here)}"
    if facts.before is None or facts.moved_age is None:
        return text
    moved = f"taken on {facts.moved_age / 3600:.1f} h ago instead of "
    if not facts.moved_within_system:
        return f"{text}, {moved}system {system_of(facts.before)}"
    return (
        f"{text}, {moved}timeline {timeline_of(facts.before)}; `packhorse relay verify` lists what was published after "
        f"{facts.moved_saved_at or 'that'} and is gone"
    )
