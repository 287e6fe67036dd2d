"""Set OpenTelemetry's SDK up for a daemon, from its standard environment variables and nothing of our own."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import entry_points
from typing import Any

from packhorse.core.errors import SettingsError
from packhorse.core.telemetry import NO_TELEMETRY, Telemetry

TRACES, METRICS = "OTEL_TRACES_EXPORTER", "OTEL_METRICS_EXPORTER"
_GROUPS = {TRACES: "opentelemetry_traces_exporter", METRICS: "opentelemetry_metrics_exporter"}
_PROTOCOL = "OTEL_EXPORTER_OTLP_PROTOCOL"
_OTLP = {"grpc": "otlp_proto_grpc", "http/protobuf": "otlp_proto_http"}


@contextmanager
def telemetry_from(environ: Mapping[str, str] | None = None, *, service: str) -> Iterator[Telemetry]:
    """
    Hand out the telemetry that *environ* (the process's own) asks for, and send what is left when the block ends.

    Without OTEL_TRACES_EXPORTER or OTEL_METRICS_EXPORTER, or with OTEL_SDK_DISABLED, nothing is recorded and no SDK is
    imported. Exporters are those that are installed: `console` comes with the SDK, others with their own packages. Sampler,
    resource and exporter read their own OTEL_… variables; *service* names the service unless OTEL_SERVICE_NAME does.

    Raises:
        SettingsError: An exporter is not installed; names it and those that are.
    """
    env = os.environ if environ is None else environ
    spans, readings = exporters(env, TRACES), exporters(env, METRICS)
    if not spans and not readings:
        yield NO_TELEMETRY
        return
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.resources import OTELResourceDetector, Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    from packhorse.producer.otel import OpenTelemetry

    resource = Resource.create({"service.name": service}).merge(OTELResourceDetector().detect())
    tracers = TracerProvider(resource=resource)
    for exporter in spans:
        tracers.add_span_processor(BatchSpanProcessor(exporter()))
    meters = MeterProvider(resource=resource, metric_readers=[_reader(each) for each in readings])
    try:
        yield OpenTelemetry(tracer_provider=tracers, meter_provider=meters)
    finally:
        tracers.shutdown()
        meters.shutdown()


def exporters(environ: Mapping[str, str], variable: str) -> list[Any]:
    """
    Return the classes of the exporters that *variable* names.

    Raises:
        SettingsError: One is not installed; names it and those that are.
    """
    if environ.get("OTEL_SDK_DISABLED", "").lower() == "true":
        return []
    names = [name.strip() for name in environ.get(variable, "").split(",")]
    installed = {point.name: point for point in entry_points(group=_GROUPS[variable])}
    found = []
    for name in names:
        if name in {"", "none"}:
            continue
        known = _OTLP.get(environ.get(_PROTOCOL, "grpc"), name) if name == "otlp" else name
        if known not in installed:
            raise SettingsError(
                f"{variable}={name}: no such exporter is installed; there are {', '.join(sorted(installed))}; install the "
                "package that brings it, e.g. opentelemetry-exporter-otlp"
            )
        found.append(installed[known].load())
    return found


def _reader(exporter: Any) -> Any:
    from opentelemetry.sdk.metrics.export import MetricReader, PeriodicExportingMetricReader

    return exporter() if issubclass(exporter, MetricReader) else PeriodicExportingMetricReader(exporter())
