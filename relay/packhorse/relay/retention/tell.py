"""Say what came of a step, for people. Pure."""

from packhorse.relay.retention.model import Blocker, Code, KeptRow, Outcome

_PLAIN = {
    Code.MADE: "made",
    Code.THERE: "there already",
    Code.DROPPED: "dropped",
    Code.CHANGED: "stays for now: rows or holds came while it was looked at; the next run tries again",
    Code.YOUNG: "stays: not all of it is old",
    Code.GONE: "gone already",
    Code.FILLED: "stays: it holds rows again",
    Code.ELSEWHERE: "another process is at it; nothing more is done here",
    Code.NET: "not made: rows of that day lie in the default partition already, and stay there",
    Code.LARGE: "not made: the default partition holds more than 16 MiB, and its writers would wait while it is read; "
    "run `packhorse migrate up` in a quiet moment",
    Code.NO_HORIZON: "stays: the table relay has no horizon that belongs to this database, so nobody can say what is "
    "published; see docs/runbooks/relay-does-not-move.md",
}


def told(outcome: Outcome) -> str:
    """Return one sentence on *outcome*, with the next step where there is one."""
    match outcome.code:
        case Code.DUE:
            return f"would be {_verb(outcome)}"
        case Code.EMPTIED:
            return f"emptied, {size(outcome.size)} free"
        case Code.UNPUBLISHED | Code.HELD if outcome.row is not None:
            return _row(outcome.row)
        case Code.BUSY:
            return f"gave way: {_blocker(outcome.blocker)}; the next run tries again"
        case Code.DEPENDED:
            return f"not dropped: {outcome.text or 'another object needs it'}; drop that object, or leave the empty table"
        case Code.FAILED:
            return f"failed: {outcome.text or 'no reason was given'}; the next run tries again"
        case code:
            return _PLAIN.get(code, code.value)


def _verb(outcome: Outcome) -> str:
    return {"Make": "made", "Empty": "emptied", "Drop": "dropped"}[type(outcome.step).__name__]


def _row(row: KeptRow) -> str:
    what = f"stays: row {row.id} of {row.aggregatetype} (seq {row.seq}, written {row.created_at} UTC)"
    if row.hold is not None:
        return f"{what} waits in hold {row.hold}; see `packhorse relay holds`"
    return f"{what} is not published by shard {row.shard}; see `packhorse relay status`"


def _blocker(blocker: Blocker | None) -> str:
    if blocker is None:
        return "another transaction had a lock"
    who = f"pid {blocker.pid}" if blocker.pid is not None else f"prepared transaction {blocker.gid!r}"
    name = f" ({blocker.application})" if blocker.application else ""
    long = "" if blocker.seconds is None else f", open for {blocker.seconds} s,"
    what = "wrote rows that it has not committed" if blocker.wrote else "has a lock"
    return f"{who}{name}{long} {what}"


def size(count: int) -> str:
    """
    Return *count* bytes for people.

    >>> size(0), size(2048), size(5 * 1024**3)
    ('0 KiB', '2 KiB', '5.0 GiB')
    """
    if count < 1024**2:
        return f"{count // 1024} KiB"
    if count < 1024**3:
        return f"{count / 1024**2:.1f} MiB"
    return f"{count / 1024**3:.1f} GiB"
