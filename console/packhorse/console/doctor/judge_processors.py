"""What the processes of the groups say of themselves, and what people have paused."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta

from packhorse.console.doctor.findings import Finding, failed, ok, skipped, warning
from packhorse.core.text import counted

ALIVE = timedelta(seconds=20)
"""A process writes every five seconds that it lives."""
SHOWN = 3
RUNBOOK = "docs/runbooks/stuck-partition.md"


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """
    How one group stands.

    Attributes:
        seen: How long ago each of its processes was seen, the dead of the last day too.
        wrong: What the living ones say is wrong.
        stalls: What the living ones say does not move, each with its cause.
        pauses: What people have paused, in words.
        paused_keys, parked_keys: How many keys.
    """

    group: str
    seen: Sequence[timedelta] = ()
    wrong: Sequence[str] = ()
    stalls: Sequence[str] = ()
    pauses: Sequence[str] = ()
    paused_keys: int = 0
    parked_keys: int = 0


def judge_processors(standings: Sequence[Standing]) -> Iterator[Finding]:
    """Yield what is to be said of each group: the worst first, and pauses apart, since a person wanted them."""
    if not standings:
        yield skipped("processors", "no processor has written itself down in this database")
    for one in standings:
        yield _processes(one)
        if one.pauses or one.paused_keys:
            yield _paused(one)


def _processes(one: Standing) -> Finding:
    name, alive = f"processors of {one.group}", sum(1 for age in one.seen if age <= ALIVE)
    status = f"packhorse processor status --group {one.group}"
    if one.wrong:
        return failed(
            name, _some(one.wrong), cause="the process says so itself", next_step=f"{status}; see {RUNBOOK}"
        )
    if one.stalls:
        return warning(
            name, _some(one.stalls), cause="see the cause that it names", next_step=f"{status}; see {RUNBOOK}"
        )
    if one.seen and not alive:
        return warning(
            name,
            f"none is alive; the last was seen {min(one.seen).total_seconds():.0f} s ago",
            cause="they were killed, or have lost the database",
            next_step=f"start one: packhorse processor run MODULE:APP; {status}",
        )
    return ok(name, f"{alive} alive, {counted(one.parked_keys, 'key')} parked")


def _paused(one: Standing) -> Finding:
    keys = (counted(one.paused_keys, "key"),) if one.paused_keys else ()
    return warning(
        f"pauses of {one.group}",
        _some((*one.pauses, *keys)),
        cause="a person ordered it; it holds until somebody resumes it",
        next_step=f"packhorse processor paused --group {one.group}; then packhorse processor resume",
    )


def _some(texts: Sequence[str]) -> str:
    more = len(texts) - SHOWN
    return "; ".join(texts[:SHOWN]) + (f"; and {more} more" if more > 0 else "")
