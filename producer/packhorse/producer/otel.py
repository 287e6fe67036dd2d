"""Adapter to OpenTelemetry: spans, links and metrics through its API; where they go is the application's SDK to say."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from opentelemetry import context as otel_context
from opentelemetry import metrics, trace
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from packhorse.core.errors import MessageFault
from packhorse.core.telemetry import Attributes, Kind, Metric, TraceContext

NAME = "packhorse"
Record = Callable[[float, Attributes | None], None]


class OpenTelemetry:
    """
    Be `packhorse.core.telemetry.Telemetry` on the given providers, or on the global ones.

    Without an SDK all of it does nothing. An error marks its span with its class alone: its text may quote values.
    Safe to share between threads and tasks.
    """

    def __init__(
        self,
        *,
        tracer_provider: trace.TracerProvider | None = None,
        meter_provider: metrics.MeterProvider | None = None,
    ) -> None:
        self._tracer = trace.get_tracer(NAME, tracer_provider=tracer_provider)
        meter = metrics.get_meter(NAME, meter_provider=meter_provider)
        self._records = {metric: _record_of(meter, metric) for metric in Metric}

    def current(self) -> TraceContext | None:
        """Return the context of the span that is current in this thread or task; None outside one."""
        carrier: dict[str, str] = {}
        _PROPAGATOR.inject(carrier)
        if "traceparent" not in carrier:
            return None
        return TraceContext(traceparent=carrier["traceparent"], tracestate=carrier.get("tracestate"))

    @contextmanager
    def span(
        self,
        name: str,
        *,
        parent: TraceContext | None = None,
        links: Sequence[TraceContext] = (),
        attributes: Attributes | None = None,
    ) -> Iterator[None]:
        """Run the block in a span; *parent* wins over the current one; a parent or link that is no context is left out."""
        with self._tracer.start_as_current_span(
            name,
            context=_context_of(parent) if parent else None,
            links=[link for one in links if (link := _link_to(one))],
            attributes=attributes,
            record_exception=False,
            set_status_on_exception=False,
        ) as span:
            try:
                yield
            except Exception as error:
                span.set_attribute("error.type", type(error).__qualname__)
                if isinstance(error, MessageFault):
                    span.set_attribute("packhorse.reason", error.reason)
                span.set_status(trace.StatusCode.ERROR)
                raise

    def record(self, metric: Metric, value: float, attributes: Attributes | None = None) -> None:
        """Record one measurement."""
        self._records[metric](value, attributes)


_PROPAGATOR = TraceContextTextMapPropagator()


def _context_of(remote: TraceContext) -> otel_context.Context:
    carrier = {"traceparent": remote.traceparent}
    if remote.tracestate:
        carrier["tracestate"] = remote.tracestate
    return _PROPAGATOR.extract(carrier, otel_context.Context())


def _link_to(remote: TraceContext) -> trace.Link | None:
    context = trace.get_current_span(_context_of(remote)).get_span_context()
    return trace.Link(context) if context.is_valid else None


def _record_of(meter: metrics.Meter, metric: Metric) -> Record:
    name, unit, text = metric.metric_name, metric.unit, metric.description
    if metric.kind is Kind.COUNTER:
        return meter.create_counter(name, unit=unit, description=text).add
    if metric.kind is Kind.GAUGE:
        return meter.create_gauge(name, unit=unit, description=text).set
    return meter.create_histogram(name, unit=unit, description=text).record
