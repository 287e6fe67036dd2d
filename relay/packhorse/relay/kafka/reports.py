"""What the client reports of rows that did not arrive, what the broker says of where they go, and whom that blames."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from confluent_kafka import KafkaError, Message

from packhorse.core.partitions import partition_of
from packhorse.relay.holds import Fault
from packhorse.relay.kafka.topics import Topic
from packhorse.relay.model import AGGREGATEID, AGGREGATETYPE, PAYLOAD, Row
from packhorse.relay.refusals import Blame, Refusal, fault_of, judged, partition_fault

Chain = tuple[KafkaError, Message, Any]
"""A report and the chain of those before it."""

DROPPED = frozenset({"_PURGE_QUEUE", "_PURGE_INFLIGHT"})
"""Of rows that the relay itself let the client drop."""


class Report(NamedTuple):
    """Why one row did not arrive; `partition` is below 0 when the client had not chosen one."""

    name: str
    said: str
    topic: str
    key: bytes | None
    value: bytes | None
    partition: int


def unchained(chain: Chain | None) -> Iterator[Report]:
    """Yield the reports of *chain*, the last one first."""
    while chain is not None:
        error, message, chain = chain
        yield Report(
            error.name(),
            f"{error.name()} ({error.str()})",
            message.topic() or "",
            _bytes(message.key()),
            _bytes(message.value()),
            -1 if (partition := message.partition()) is None else partition,
        )


def _bytes(value: str | bytes | None) -> bytes | None:
    return value.encode() if isinstance(value, str) else value


def _key(row: Row) -> bytes | None:
    return None if row[AGGREGATEID] is None else row[AGGREGATEID].encode()


def blamed(reports: Sequence[Report], handed: Sequence[Row], *, namespace: str) -> Fault | None:
    """
    Return whose fault the failure is: a topic's when a report names one, else the first row in the order of *handed*.

    A report has no id. Rows alike in topic, key and bytes share a key, so that it is no matter which of them is named.
    """
    found: dict[tuple[str, bytes | None, bytes | None], tuple[Refusal, str]] = {}
    for report in reports:
        if (refusal := judged(report.name)).blame is not Blame.NOBODY:
            found[report.topic, report.key, report.value] = refusal, report.said
    first: Fault | None = None
    for row in handed if found else ():
        topic = f"{namespace}.{row[AGGREGATETYPE]}"
        if (match := found.get((topic, _key(row), row[PAYLOAD]))) is None:
            continue
        refusal, said = match
        if refusal.blame is Blame.TOPIC:
            return fault_of(refusal, row, topic=topic, said=said)
        first = first or fault_of(refusal, row, topic=topic, said=said)
    return first


def silent(
    reports: Sequence[Report],
    handed: Sequence[Row],
    partitions: Mapping[str, int],
    *,
    namespace: str,
    broken: bool,
) -> list[Fault]:
    """
    Return the partitions of which no row was confirmed, and none refused, though rows of others were confirmed.

    Attributes:
        reports: All that the client reported; of rows that were confirmed it reports nothing.
        partitions: How many the topic of each aggregate type has.
        broken: A row failed before the rest was dropped. What waited in the client's queue says nothing then; a request that
            was out and brought no answer does.
    """
    if len(reports) >= len(handed):
        return []
    places: dict[tuple[str, str], int] = {}
    given: Counter[tuple[str, int]] = Counter()
    for row in handed:
        name, key = row[AGGREGATETYPE], row[AGGREGATEID]
        if key is not None and name in partitions:
            place = places.get((name, key))
            if place is None:
                place = places[name, key] = partition_of(key.encode(), partitions[name])
            given[name, place] += 1
    dropped: Counter[tuple[str, int]] = Counter()
    unanswered: set[tuple[str, int]] = set()
    for report in reports:
        name = report.topic.removeprefix(f"{namespace}.")
        if report.name in DROPPED and report.key is not None and name in partitions:
            at = report.partition if report.partition >= 0 else partition_of(report.key, partitions[name])
            dropped[name, at] += 1
            if report.name == "_PURGE_INFLIGHT" or not broken:
                unanswered.add((name, at))
    return [
        partition_fault(
            name, at, partitions[name], topic=f"{namespace}.{name}", code="silent",
            reason=f"partition {at} has a leader by the cluster's word, and it confirms nothing while others do; "
            "see to the broker that leads it: the relay goes on by itself",
        )
        for (name, at), count in sorted(given.items())
        if (name, at) in unanswered and dropped[name, at] >= count
    ]  # fmt: skip


def unled(topic: Topic, rows: Sequence[Row]) -> list[Fault]:
    """Return the partitions of *topic* that *rows* go to and nobody can write to."""
    count = len(topic.in_sync)
    keys = {row[AGGREGATEID] for row in rows if row[AGGREGATEID] is not None}
    asked = {partition_of(key.encode(), count) for key in keys}
    return [
        partition_fault(
            rows[0][AGGREGATETYPE], partition, count, topic=topic.name, code="no_leader", reason=trouble
        )
        for partition in sorted(asked)
        if (trouble := topic.trouble(partition)) is not None
    ]
