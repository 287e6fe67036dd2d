"""What a purge did and what stays, for people and for programs; neither says who it was."""

from collections.abc import Iterator
from typing import Any

from packhorse.console.purging.model import Kind, Report, Stay
from packhorse.core.text import counted, inert

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
        "not_looked_into": [
            {"table": one.table, "schema_id": one.schema_id, "messages": one.count} for one in report.unknown
        ],
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
    yield from _left(report, dry=dry)
    yield from _unread(report)
    yield "topics that may still hold records:" if report.stays else "no topic is known that holds records"
    for stay in report.stays:
        yield f"  {_where(stay)}"
    for kind in dict.fromkeys(stay.kind for stay in report.stays):
        yield f"{kind}: {_MEANS[kind]}"
    if dry:
        yield "nothing was changed; erasers of applications were not asked"
    elif report.run is not None:
        yield f"on the record as run {report.run}: packhorse audit list --act purge"


def _left(report: Report, *, dry: bool) -> Iterator[str]:
    left = "would be left" if dry else "left"
    for one in report.left[:NAMED]:
        what = "job" if one.fate == "running" else "outbox row"
        yield f"{left}: {what} {one.id} ({inert(one.aggregatetype)}) is {_MEANT[one.fate]}"
    if (more := len(report.left) - NAMED) > 0:
        yield f"{left}: {more} more"
    if report.keys:
        yield (
            f"left: {report.keys} parked keys; each goes once a processor of its group has looked, a paused one when it is resumed"
        )


def _unread(report: Report) -> Iterator[str]:
    """Yield what nobody looked into, and may be the subject's."""
    for table in dict.fromkeys(one.table for one in report.unknown):
        here = [one for one in report.unknown if one.table is table]
        strange = [str(one.schema_id) for one in here if one.schema_id is not None]
        what = [f"schema ids {', '.join(strange)} are not registered in this database"] if strange else []
        if any(one.schema_id is None for one in here):
            what.append("some payloads name no schema")
        yield (
            f"{counted(sum(one.count for one in here), 'message')} in {table.value} could not be looked into: {'; '.join(what)}; register the "
            "schemas (`packhorse schemas register`) and purge again, or purge by --subject"
        )
    if report.unreadable:
        yield f"{report.unreadable} payloads could not be decoded, and so were not looked into"


_MEANT = {
    "held": "kept by a hold of the relay; release or discard it, then purge again",
    "streamed": "not published yet, and a stream may have it in hand; purge again when it is published",
    "running": "running, and its worker is asked to stop; purge again when it has ended",
    "unpublished": "not published yet; purge again when it is, or with --unpublished-too, which loses its message",
}


def _where(stay: Stay) -> str:
    partition = "any partition" if stay.partition is None else f"partition {stay.partition}"
    offsets = f", offsets {', '.join(map(str, stay.offsets[:NAMED]))}" if stay.offsets else ""
    more = f" and {len(stay.offsets) - NAMED} more" if len(stay.offsets) > NAMED else ""
    return f"{stay.topic}  {stay.kind}, {partition}{offsets}{more}"
