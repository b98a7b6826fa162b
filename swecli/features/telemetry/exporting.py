"""The official SDK, set up to send to one collector by OTLP over HTTP.

The variables of OpenTelemetry (``OTEL_EXPORTER_OTLP_ENDPOINT``, ``OTEL_EXPORTER_OTLP_HEADERS``, ``OTEL_SERVICE_NAME``,
``OTEL_RESOURCE_ATTRIBUTES``, ``OTEL_SDK_DISABLED``) count; an address in the settings comes before that of the first.
"""

from __future__ import annotations

import logging

from opentelemetry.exporter.otlp.proto.http.metric_exporter import (  # pyright: ignore[reportMissingImports]
    OTLPMetricExporter,
)
from opentelemetry.exporter.otlp.proto.http.trace_exporter import (  # pyright: ignore[reportMissingImports]
    OTLPSpanExporter,
)
from opentelemetry.sdk.metrics import MeterProvider  # pyright: ignore[reportMissingImports]
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader  # pyright: ignore[reportMissingImports]
from opentelemetry.sdk.resources import Resource  # pyright: ignore[reportMissingImports]
from opentelemetry.sdk.trace import TracerProvider  # pyright: ignore[reportMissingImports]
from opentelemetry.sdk.trace.export import BatchSpanProcessor  # pyright: ignore[reportMissingImports]

from swecli import __version__

TIMEOUT = 5.0
"""Seconds of one request to the collector."""
SPANS_WAIT = 2_000
"""Milliseconds after which ended spans are sent."""
METRICS_WAIT = 15_000


class Export:
    """One session's tracer and meter. ``endpoint`` is the collector's base address; None: the SDK's."""

    def __init__(self, endpoint: str | None) -> None:
        logging.getLogger("opentelemetry").addHandler(logging.NullHandler())  # nothing on the screen
        logging.getLogger("opentelemetry").propagate = False
        resource = Resource.create({"service.name": "swecli", "service.version": __version__})
        base = endpoint.rstrip("/") if endpoint else None
        spans = OTLPSpanExporter(f"{base}/v1/traces" if base else None, timeout=TIMEOUT)
        metrics = OTLPMetricExporter(f"{base}/v1/metrics" if base else None, timeout=TIMEOUT)
        self._tracers = TracerProvider(resource=resource, shutdown_on_exit=False)
        self._tracers.add_span_processor(BatchSpanProcessor(spans, schedule_delay_millis=SPANS_WAIT))
        reader = PeriodicExportingMetricReader(metrics, METRICS_WAIT, TIMEOUT * 1000)
        self._meters = MeterProvider((reader,), resource=resource, shutdown_on_exit=False)
        self.tracer = self._tracers.get_tracer("swecli", __version__)
        self.meter = self._meters.get_meter("swecli", __version__)

    def close(self) -> None:
        """Send the rest. May take as long as the collector."""
        self._tracers.shutdown()
        self._meters.shutdown(TIMEOUT * 1000)
