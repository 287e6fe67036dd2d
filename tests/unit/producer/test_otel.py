from collections.abc import Iterator

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

from packhorse.core.errors import Undecodable
from packhorse.core.telemetry import Metric, Telemetry, TraceContext
from packhorse.producer.otel import OpenTelemetry

REMOTE = TraceContext(
    traceparent="00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", tracestate="vendor=one"
)


@pytest.fixture
def spans() -> InMemorySpanExporter:
    return InMemorySpanExporter()


@pytest.fixture
def reader() -> InMemoryMetricReader:
    return InMemoryMetricReader()


@pytest.fixture
def telemetry(spans: InMemorySpanExporter, reader: InMemoryMetricReader) -> Iterator[Telemetry]:
    tracers, meters = TracerProvider(), MeterProvider([reader])
    tracers.add_span_processor(SimpleSpanProcessor(spans))
    yield OpenTelemetry(tracer_provider=tracers, meter_provider=meters)
    tracers.shutdown()
    meters.shutdown()


def test_outside_a_span_there_is_no_context(telemetry: Telemetry) -> None:
    assert telemetry.current() is None


def test_a_remote_parent_gives_one_trace_with_its_state(
    telemetry: Telemetry, spans: InMemorySpanExporter
) -> None:
    with telemetry.span("handle", parent=REMOTE, attributes={"topic": "bank.account"}):
        inner = telemetry.current()
    (span,) = spans.get_finished_spans()
    assert inner is not None
    assert span.parent is not None
    assert f"{span.parent.trace_id:032x}" == "0af7651916cd43dd8448eb211c80319c"
    assert inner.traceparent.split("-")[1] == "0af7651916cd43dd8448eb211c80319c"
    assert inner.traceparent.split("-")[2] != "b7ad6b7169203331"
    assert inner.tracestate == "vendor=one"
    assert dict(span.attributes or {}) == {"topic": "bank.account"}


def test_links_name_other_traces_and_leave_broken_ones_out(
    telemetry: Telemetry, spans: InMemorySpanExporter
) -> None:
    with telemetry.span("publish", links=[REMOTE, TraceContext(traceparent="nonsense")]):
        pass
    (span,) = spans.get_finished_spans()
    assert [f"{link.context.span_id:016x}" for link in span.links] == ["b7ad6b7169203331"]
    assert span.parent is None


def test_a_broken_parent_starts_a_trace_of_its_own(telemetry: Telemetry, spans: InMemorySpanExporter) -> None:
    with telemetry.span("outer"), telemetry.span("handle", parent=TraceContext(traceparent="nonsense")):
        pass
    assert [span.parent for span in spans.get_finished_spans()] == [None, None]


@pytest.mark.case("X-07")
def test_an_error_marks_its_span_with_the_class_and_never_its_text(
    telemetry: Telemetry, spans: InMemorySpanExporter
) -> None:
    """Fails when record_exception or set_status_on_exception is left at OpenTelemetry's default, or the text is a status."""
    with pytest.raises(ValueError, match="Ada Lovelace"), telemetry.span("handle"):
        raise ValueError("no such owner: Ada Lovelace")
    (span,) = spans.get_finished_spans()
    assert span.status.status_code is StatusCode.ERROR
    assert span.attributes == {"error.type": "ValueError"}
    assert "Ada" not in span.to_json()


def test_a_fault_of_the_message_names_its_reason(telemetry: Telemetry, spans: InMemorySpanExporter) -> None:
    with pytest.raises(Undecodable), telemetry.span("decode"):
        raise Undecodable("first byte")
    (span,) = spans.get_finished_spans()
    assert span.attributes == {"error.type": "Undecodable", "packhorse.reason": "undecodable"}


def test_every_metric_is_recorded_under_its_name_kind_and_unit(
    telemetry: Telemetry, reader: InMemoryMetricReader
) -> None:
    for metric in Metric:
        telemetry.record(metric, 2, {"group": "figures"})
    data = reader.get_metrics_data()
    assert data is not None
    found = {
        metric.name: (metric.unit, metric.description)
        for resource in data.resource_metrics
        for scope in resource.scope_metrics
        for metric in scope.metrics
    }
    assert found == {metric.metric_name: (metric.unit, metric.description) for metric in Metric}
