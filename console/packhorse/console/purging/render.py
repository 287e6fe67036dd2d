"""What a purge did and what stays, for people and for programs; neither says who it was."""

from collections.abc import Iterator
from typing import Any

from packhorse.console.purging.model import Kind, Report, Stay

NAMED = 20
"""Rows that are named one by one; --json has all."""
_MEANS = {
    Kind.SOURCE: (
        "retention removes them with time; on a compacted topic emit a tombstone with the key through the outbox; what must be "
        "unreadable at once needs a key of encryption per person, thrown away"
    ),
    Kind.TIER: "tiers are trimmed behind what is done, within minutes while a processor of the group runs",
    Kind.QUARANTINE: (
        "quarantine topics keep copies for good: delete records up to the offset, once nothing below it waits "
        "(kafka-delete-records), or rely on disk encryption"
    ),
}


def report_json(report: Report) -> dict[str, Any]:
    """Return *report* for programs."""
    return {
        "run": report.run,
        "counts": report.counts,
        "left": [{"id": one.id, "aggregatetype": one.aggregatetype, "why": one.fate} for one in report.left],
        "parked_keys": report.keys,
        "unreadable": report.unreadable,
        "topics": [
            {
                "topic": stay.topic,
                "kind": stay.kind,
                "partition": stay.partition,
                "offsets": stay.offsets,
                "means": _MEANS[stay.kind],
            }
            for stay in report.stays
        ],
    }


def report_lines(report: Report, *, dry: bool) -> Iterator[str]:
    """Yield *report* for people."""
    if not report.counts:
        yield "nothing of the subject is in these tables"
    for name, count in report.counts.items():
        yield f"{count:>8}  {name}"
    yield from _left(report)
    yield "topics that may still hold records:" if report.stays else "no topic is known that holds records"
    for stay in report.stays:
        yield f"  {_where(stay)}"
    for kind in dict.fromkeys(stay.kind for stay in report.stays):
        yield f"{kind}: {_MEANS[kind]}"
    if dry:
        yield "nothing was changed; rows that are not published, or that a hold keeps, would stay. Erasers of applications are not asked"
    elif report.run is not None:
        yield f"on the record as run {report.run}: packhorse audit list --act purge"


def _left(report: Report) -> Iterator[str]:
    for left in report.left[:NAMED]:
        yield f"left: outbox row {left.id} ({left.aggregatetype}) is {_why(left.fate)}"
    if (more := len(report.left) - NAMED) > 0:
        yield f"left: {more} more"
    if report.keys:
        yield (
            f"left: {report.keys} parked keys; each goes once a processor of its group has looked, a paused one when it is resumed"
        )
    if report.unreadable:
        yield f"{report.unreadable} payloads could not be decoded, and so were not looked into"


def _why(fate: str) -> str:
    if fate == "held":
        return "kept by a hold of the relay; release or discard it, then purge again"
    return "not published yet; purge again when it is, or with --unpublished-too, which loses its message"


def _where(stay: Stay) -> str:
    partition = "any partition" if stay.partition is None else f"partition {stay.partition}"
    offsets = f", offsets {', '.join(map(str, stay.offsets[:NAMED]))}" if stay.offsets else ""
    more = f" and {len(stay.offsets) - NAMED} more" if len(stay.offsets) > NAMED else ""
    return f"{stay.topic}  {stay.kind}, {partition}{offsets}{more}"
