"""
The port to traces and metrics: a closed list of names, and an implementation that does nothing.

The adapter to OpenTelemetry is `packhorse.producer.otel`. No attribute carries a payload, a key or a credential.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

Attributes = Mapping[str, str | int | float | bool]


class Kind(Enum):
    """How a metric is recorded."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


class Metric(Enum):
    """
    List every metric of Packhorse: name, kind, unit (UCUM), description.

    Attributes are few and bounded: topic, partition, group, type, outcome, reason, part.
    """

    OUTBOX_EMITTED = ("packhorse.outbox.emitted", Kind.COUNTER, "{message}", "Messages written to the outbox")
    JOBS_SUBMITTED = ("packhorse.jobs.submitted", Kind.COUNTER, "{job}", "Jobs written, by type")
    RELAY_PUBLISHED = (
        "packhorse.relay.published",
        Kind.COUNTER,
        "{message}",
        "Rows that the broker confirmed",
    )
    RELAY_LAG_ROWS = ("packhorse.relay.lag.rows", Kind.GAUGE, "{message}", "Rows committed and not published")
    RELAY_LAG_SECONDS = (
        "packhorse.relay.lag.seconds",
        Kind.GAUGE,
        "s",
        "Age of the oldest row not published",
    )
    RELAY_SAVES = ("packhorse.relay.saves", Kind.COUNTER, "{save}", "Saves of horizon or progress")
    RELAY_OWNER = ("packhorse.relay.owner", Kind.GAUGE, "1", "1 while this process owns the shard")
    RELAY_PAUSES = ("packhorse.relay.pauses", Kind.COUNTER, "{pause}", "Times the relay paused, by reason")
    RELAY_HOLDS = (
        "packhorse.relay.holds",
        Kind.GAUGE,
        "{hold}",
        "Rows, keys, partitions and topics that are held",
    )
    RELAY_MOVES = (
        "packhorse.relay.moves",
        Kind.COUNTER,
        "{move}",
        "Changes between polling and the stream, by reason",
    )
    RELAY_SERVER_CHANGES = (
        "packhorse.relay.server.changes",
        Kind.COUNTER,
        "{change}",
        "Times another database server, timeline or earlier state answered, by reason",
    )
    RETENTION_RUNS = (
        "packhorse.retention.runs",
        Kind.COUNTER,
        "{run}",
        "Looks at what is due in the outbox, by outcome",
    )
    RETENTION_EMPTIED = (
        "packhorse.retention.emptied",
        Kind.COUNTER,
        "{partition}",
        "Day partitions of the outbox that were emptied",
    )
    RETENTION_OVERDUE = (
        "packhorse.retention.overdue",
        Kind.GAUGE,
        "{partition}",
        "Partitions of the outbox that stay past their time, for somebody to look at",
    )
    INBOX_REMOVED = (
        "packhorse.inbox.removed",
        Kind.COUNTER,
        "{row}",
        "Rows of the inbox, of failed attempts and of quarantine that were removed one by one once their time was over",
    )
    INBOX_DROPPED = (
        "packhorse.inbox.dropped",
        Kind.COUNTER,
        "{partition}",
        "Day partitions of the inbox that were dropped",
    )
    JOBS_REMOVED = (
        "packhorse.jobs.removed",
        Kind.COUNTER,
        "{job}",
        "Jobs that were removed, with their history, once their time was over",
    )
    JOB_RESULTS_REMOVED = (
        "packhorse.jobs.results_removed",
        Kind.COUNTER,
        "{job}",
        "Jobs whose input, result and answers were removed once their time was over",
    )
    PROCESSOR_DELIVERIES = (
        "packhorse.processor.deliveries",
        Kind.COUNTER,
        "{message}",
        "Records handed over, by outcome",
    )
    PROCESSOR_ATTEMPTS = (
        "packhorse.processor.attempts",
        Kind.COUNTER,
        "{attempt}",
        "Runs of a handler, by outcome",
    )
    PROCESSOR_BATCH = (
        "packhorse.processor.batch.size",
        Kind.HISTOGRAM,
        "{message}",
        "Messages in one group commit",
    )
    PROCESSOR_DURATION = (
        "packhorse.processor.batch.duration",
        Kind.HISTOGRAM,
        "s",
        "Time of one group commit",
    )
    PROCESSOR_AGE = (
        "packhorse.processor.age",
        Kind.HISTOGRAM,
        "s",
        "From the record's timestamp to the durable result",
    )
    PROCESSOR_PAUSES = (
        "packhorse.processor.pauses",
        Kind.COUNTER,
        "{pause}",
        "Times reading paused, by reason",
    )
    PROCESSOR_STALLED = (
        "packhorse.processor.stalled",
        Kind.GAUGE,
        "{stall}",
        "Partitions and handlers that do not move, by reason",
    )
    PROCESSOR_COMMITS = (
        "packhorse.processor.commits",
        Kind.COUNTER,
        "{commit}",
        "Offset commits, by outcome",
    )
    PROCESSOR_QUARANTINED = (
        "packhorse.processor.quarantined",
        Kind.COUNTER,
        "{message}",
        "Messages quarantined, by reason",
    )

    def __init__(self, metric_name: str, kind: Kind, unit: str, description: str) -> None:
        self.metric_name = metric_name
        self.kind = kind
        self.unit = unit
        self.description = description


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceContext:
    """W3C trace context as it travels in columns and headers."""

    traceparent: str
    tracestate: str | None = None


class Telemetry(Protocol):
    """Take spans and measurements; never raises, never blocks on the network."""

    def current(self) -> TraceContext | None:
        """Return the context of the span that is current in this thread or task; None outside one."""

    @contextmanager
    def span(
        self,
        name: str,
        *,
        parent: TraceContext | None = None,
        links: Sequence[TraceContext] = (),
        attributes: Attributes | None = None,
    ) -> Iterator[None]:
        """Run the block in a span; an exception that leaves it marks the span with the error's class alone."""

    def record(self, metric: Metric, value: float, attributes: Attributes | None = None) -> None:
        """Record one measurement."""


class NoTelemetry:
    """Record nothing."""

    def current(self) -> TraceContext | None:
        """Return None."""
        return None

    @contextmanager
    def span(
        self,
        name: str,
        *,
        parent: TraceContext | None = None,
        links: Sequence[TraceContext] = (),
        attributes: Attributes | None = None,
    ) -> Iterator[None]:
        """Run the block."""
        del name, parent, links, attributes
        yield

    def record(self, metric: Metric, value: float, attributes: Attributes | None = None) -> None:
        """Drop the measurement."""


NO_TELEMETRY = NoTelemetry()
