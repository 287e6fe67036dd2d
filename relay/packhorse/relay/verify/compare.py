"""Compare: ask the database first, fix the topics' ends, read them, then look for what is on one side alone."""

from collections.abc import Callable, Sequence
from datetime import datetime

from packhorse.core.errors import NotReady, SettingsError
from packhorse.core.jobs import REFERENCE_SUBJECT
from packhorse.core.naming import topic_name
from packhorse.relay.verify.model import (
    CLOCKS_APART,
    Found,
    Kept,
    Question,
    Report,
    Stretch,
    written_at,
)
from packhorse.relay.verify.ports import Ledger, Seen, Start, Topics

Progress = Callable[[int, int], None]
"""Hears how many records were read, and of how many at most."""


def compare(question: Question, ledger: Ledger, topics: Topics, *, progress: Progress) -> Report:
    """
    Return what *ledger* and *topics* do not agree on.

    The horizons are read before the topics' ends: a row behind them was confirmed before, so its record stands below those
    ends. Rows and records that come meanwhile are no finding of either kind.

    Raises:
        SettingsError: The time is none.
        NotReady: A topic that was named exists on neither side.
    """
    start = ledger.begin()
    until = start.now if question.until is None else question.until
    if until <= question.since:
        raise SettingsError(
            f"--since {question.since.isoformat()} is not before {until.isoformat()}, the database's own time"
        )
    known = [topics.describe(name) for name in _names(question, ledger, until)]
    _refuse_strangers(question, ledger, until, [topic.name for topic in known if not topic.partitions])
    stretches = [
        stretch
        for topic in known
        if topic.partitions
        for stretch in topics.stretches(topic, question.since - CLOCKS_APART)
    ]
    report = Report(
        since=question.since, until=until, incarnation=start.incarnation, topics=[topic.name for topic in known],
        absent_topics=[topic.name for topic in known if not topic.partitions],
    )  # fmt: skip
    kept = Kept(topics={topic.name: topic for topic in known}, since=_cut(stretches))
    _read(report, kept, ledger, topics, stretches, progress=progress)
    report.messages = ledger.messages()
    _find_gone(report, question, ledger, start)
    _find_missing(report, question, ledger, kept)
    return report


def _names(question: Question, ledger: Ledger, until: datetime) -> list[str]:
    if question.topics:
        return sorted(set(question.topics))
    names = {topic_name(question.namespace, kind) for kind in ledger.kinds(question.since, until)}
    subjects = {one.rpartition("-")[0] for one in ledger.subjects() if one != REFERENCE_SUBJECT}
    return sorted(names | {name for name in subjects if name.rpartition(".")[0] == question.namespace})


def _refuse_strangers(question: Question, ledger: Ledger, until: datetime, absent: Sequence[str]) -> None:
    """Refuse a topic that was named and that neither side knows: an answer about nothing would read as all being well."""
    kinds = ledger.kinds(question.since, until) if question.topics and absent else []
    known = {topic_name(question.namespace, kind) for kind in kinds}
    if question.topics and (strangers := [name for name in absent if name not in known]):
        raise NotReady(
            f"topic {strangers[0]} does not exist, and the outbox has no row for it from {question.since.isoformat()} on; "
            "is --topic mistyped? Without it all topics are compared"
        )


def _cut(stretches: Sequence[Stretch]) -> dict[tuple[str, int], datetime | None]:
    """Return the partitions that may have deleted something; when their first record was appended is learned by reading it."""
    return {(one.topic, one.partition): None for one in stretches if one.maybe_cut}


def _read(
    report: Report,
    kept: Kept,
    ledger: Ledger,
    topics: Topics,
    stretches: Sequence[Stretch],
    *,
    progress: Progress,
) -> None:
    names = report.topics
    total = sum(one.end - one.start for one in stretches)
    for batch in topics.read([one for one in stretches if not one.empty]):
        for seen in batch:
            place = seen.topic, seen.partition
            if place in kept.since and kept.since[place] is None:
                kept.since[place] = seen.at
        ours = [seen for seen in batch if seen.id is not None]
        report.records += len(batch)
        report.without_id += len(batch) - len(ours)
        ledger.note(names, ours)
        progress(report.records, total)


def _find_gone(report: Report, question: Question, ledger: Ledger, start: Start) -> None:
    report.outbox_since = ledger.outbox_since()
    # Without a bound in the question, what was appended while we looked counts too: it is in the outbox, or gone.
    latest = start.now + CLOCKS_APART if question.until is None else report.until
    for seen in ledger.gone(report.topics, question.since, latest):
        assert seen.id is not None
        if report.outbox_since is not None and written_at(seen.id, seen.at) < report.outbox_since:
            report.retired += 1
            continue
        report.gone += 1
        if len(report.gone_list) < question.listed:
            report.gone_list.append(_row(seen))


def _row(seen: Seen) -> dict[str, object]:
    return {
        "id": str(seen.id), "topic": seen.topic, "partition": seen.partition, "offset": seen.offset, "at": seen.at.isoformat(),
    }  # fmt: skip


def _find_missing(report: Report, question: Question, ledger: Ledger, kept: Kept) -> None:
    kinds = [question.aggregatetype(topic) for topic in report.topics]
    published, rows = ledger.counts(kinds, report.since, report.until)
    counted: dict[Found, int] = {}
    for row in ledger.absent(kinds, report.since, report.until):
        topic = topic_name(question.namespace, row.aggregatetype)
        found = kept.judge(row, topic)
        counted[found] = counted.get(found, 0) + 1
        if found is Found.MISSING:
            first, _ = report.missing_ranges.get(topic, (row.seq, row.seq))
            report.missing_ranges[topic] = first, row.seq
            if len(report.missing_list) < question.listed:
                report.missing_list.append({"id": row.id, "seq": row.seq, "topic": topic})
    report.rows = {
        "rows": rows, "published and there": published - sum(counted.values()), "waiting": rows - published,
        **{found.value: count for found, count in counted.items()},
    }  # fmt: skip


def default_since(start: Start) -> datetime:
    """
    Return from when to compare after the database's server has changed: its last save that was known then.

    Raises:
        SettingsError: It never has.
    """
    if start.moved_at is None:
        raise SettingsError(
            "--since is missing, and the database's server has not changed since it is watched; name a time"
        )
    return start.moved_at
