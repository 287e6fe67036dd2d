"""Spans for rows whose writer was traced; none for others, and none for idle polls."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from packhorse.core.message import HEADER_COLUMNS
from packhorse.core.telemetry import NO_TELEMETRY, Telemetry, TraceContext
from packhorse.relay.model import AGGREGATETYPE, FIRST_HEADER, ID, Row

MOST = 128
"""Traced rows of one batch that get a span and a link: what OpenTelemetry keeps of links by default."""
_PARENT = FIRST_HEADER + [name for name, _ in HEADER_COLUMNS].index("traceparent")
_STATE = _PARENT + 1
_TYPE = ID + 1
_SAMPLED = 0x01


def traced(rows: Sequence[Row]) -> list[tuple[Row, TraceContext]]:
    """Return those of *rows* that their writer sampled, at most MOST, each with its context."""
    found: list[tuple[Row, TraceContext]] = []
    for row in rows:
        parent = row[_PARENT]
        if parent is not None and _sampled(parent):
            found.append((row, TraceContext(traceparent=parent, tracestate=row[_STATE])))
            if len(found) == MOST:
                break
    return found


def _sampled(traceparent: str) -> bool:
    try:
        return len(traceparent) >= 55 and bool(int(traceparent[53:55], 16) & _SAMPLED)
    except ValueError:
        return False


@contextmanager
def sending(telemetry: Telemetry, rows: Sequence[Row]) -> Iterator[None]:
    """
    Run the block, which hands *rows* to the client, in one span with links to the writers' spans.

    Each traced row gets a span of its own in its writer's trace too, so that the relay stands in that trace between the
    writer and the handler. The header is not touched: the record carries the writer's context.
    """
    found = [] if telemetry is NO_TELEMETRY else traced(rows)
    if not found:
        yield
        return
    links = [context for _, context in found]
    with telemetry.span("relay batch", links=links, attributes={"packhorse.messages": len(rows)}):
        yield
    for row, context in found:
        with telemetry.span(f"send {row[_TYPE]}", parent=context, attributes=_about(row)):
            pass


def _about(row: Row) -> dict[str, str]:
    return {
        "messaging.system": "kafka",
        "messaging.operation.type": "send",
        "packhorse.aggregatetype": row[AGGREGATETYPE],
        "packhorse.message.id": row[ID],
    }
