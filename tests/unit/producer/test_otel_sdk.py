"""Telemetry from the standard environment: off by default, on by name, refused by name."""

import subprocess
import sys

import pytest

from packhorse.core.errors import SettingsError
from packhorse.core.telemetry import NO_TELEMETRY
from packhorse.producer.otel_sdk import telemetry_from


@pytest.mark.parametrize(
    "environ",
    [
        {},
        {"OTEL_TRACES_EXPORTER": "none"},
        {"OTEL_TRACES_EXPORTER": "console", "OTEL_SDK_DISABLED": "true"},
        {"OTEL_METRICS_EXPORTER": " , none"},
    ],
)
def test_nothing_is_recorded_unless_an_exporter_is_named(environ: dict[str, str]) -> None:
    with telemetry_from(environ, service="relay") as telemetry:
        assert telemetry is NO_TELEMETRY


def test_without_an_exporter_no_sdk_is_imported() -> None:
    script = (
        "import sys\nfrom packhorse.producer.otel_sdk import telemetry_from\n"
        "with telemetry_from({}, service='x'): pass\nassert 'opentelemetry' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)


def test_an_exporter_that_is_not_installed_is_named() -> None:
    with (
        pytest.raises(SettingsError, match=r"OTEL_TRACES_EXPORTER=zipkin.*there are.*console"),
        telemetry_from({"OTEL_TRACES_EXPORTER": "zipkin"}, service="relay"),
    ):
        pass


def test_what_is_left_is_sent_at_the_end() -> None:
    """In a process of its own: the console's exporters keep the standard output of the moment when they are imported."""
    code = """
from packhorse.core.telemetry import Metric
from packhorse.producer.otel_sdk import telemetry_from
environ = {"OTEL_TRACES_EXPORTER": "console", "OTEL_METRICS_EXPORTER": "console"}
with telemetry_from(environ, service="packhorse-relay") as telemetry:
    with telemetry.span("send"):
        pass
    telemetry.record(Metric.RELAY_PUBLISHED, 3)
"""
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert '"name": "send"' in told
    assert "packhorse.relay.published" in told
    assert "packhorse-relay" in told
