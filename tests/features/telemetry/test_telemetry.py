"""Telemetry of the real program, received by a collector in this process."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from swecli.core.llm.scripted import parse_script
from tests.support.loopback import LoopbackServer
from tests.support.program import Ended, Program

pytest.importorskip("opentelemetry.exporter.otlp.proto.http")

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

pytestmark = pytest.mark.e2e

SCRIPT = """
[[step]]
call = [{ tool = "write_file", arguments = { path = "new.txt", content = "private" } }]
[[step]]
text = "All done, secretly."
"""


class Collector:
    """What was received, by path; ``stalls``: requests get no answer until the end."""

    def __init__(self, *, stalls: bool) -> None:
        self.received: list[tuple[str, bytes]] = []
        self.release = threading.Event()
        self.stalls = stalls
        self.url = ""

    def spans(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for path, body in self.received:
            if path == "/v1/traces":
                for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
                    for scope in resource.scope_spans:
                        found |= {span.name: span for span in scope.spans}
        return found

    def metrics(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for path, body in self.received:
            if path == "/v1/metrics":
                for resource in ExportMetricsServiceRequest.FromString(body).resource_metrics:
                    for scope in resource.scope_metrics:
                        found |= {metric.name: metric for metric in scope.metrics}
        return found


@contextmanager
def collecting(*, stalls: bool = False) -> Iterator[Collector]:
    collector = Collector(stalls=stalls)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.headers.get("Content-Encoding") == "gzip":
                import gzip

                body = gzip.decompress(body)
            collector.received.append((self.path, body))
            if collector.stalls:
                collector.release.wait()
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            """Nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    collector.url = f"http://127.0.0.1:{server.server_port}"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield collector
    finally:
        collector.release.set()
        server.shutdown()
        server.server_close()


def run(tmp_path: Path, settings: str) -> Ended:
    folder = tmp_path / "work"
    folder.mkdir(exist_ok=True)
    (tmp_path / "more.toml").write_text(settings)
    with LoopbackServer(parse_script(SCRIPT)) as provider:
        program = Program(folder, tmp_path / "home", provider.environment())
        more = ("--settings", str(tmp_path / "more.toml"), "--yolo")
        return program.run("-p", "write something confidential", "-m", "openai/m", *more)


def values(attributes: Any) -> dict[str, Any]:
    return {one.key: getattr(one.value, one.value.WhichOneof("value")) for one in attributes}


def test_a_session_is_a_trace_with_its_turn_requests_and_calls_and_no_text(tmp_path: Path) -> None:
    with collecting() as collector:
        ended = run(tmp_path, f'[telemetry]\nenabled = true\nendpoint = "{collector.url}"\n')
        assert ended.code == 0, ended.stderr
        spans, metrics = collector.spans(), collector.metrics()
    assert spans.keys() == {"session", "invoke_agent swecli", "chat m", "execute_tool write_file"}
    session, turn, request, call = (spans[name] for name in sorted(spans, key=["session", "invoke_agent swecli",
        "chat m", "execute_tool write_file"].index))  # fmt: skip
    assert turn.parent_span_id == session.span_id
    assert request.parent_span_id == call.parent_span_id == turn.span_id
    assert len({span.trace_id for span in spans.values()}) == 1
    assert all(0 < span.start_time_unix_nano <= span.end_time_unix_nano for span in spans.values())
    told = values(request.attributes)
    assert told["gen_ai.operation.name"] == "chat"
    assert told["gen_ai.request.model"] == "m"
    assert told["gen_ai.usage.output_tokens"] > 0
    assert values(call.attributes)["gen_ai.tool.name"] == "write_file"
    assert values(turn.attributes)["swecli.outcome"] == "done"
    assert {"gen_ai.client.token.usage", "gen_ai.client.operation.duration"} <= metrics.keys()
    everything = b"".join(body for _, body in collector.received)
    for text in (b"confidential", b"private", b"secretly", b"new.txt", str(tmp_path).encode()):
        assert text not in everything


def test_texts_are_sent_only_if_asked_for(tmp_path: Path) -> None:
    with collecting() as collector:
        run(tmp_path, f'[telemetry]\nenabled = true\ncontent = true\nendpoint = "{collector.url}"\n')
    everything = b"".join(body for _, body in collector.received)
    for text in (b"confidential", b"private", b"secretly"):
        assert text in everything


def test_nothing_is_sent_unless_turned_on(tmp_path: Path) -> None:
    with collecting() as collector:
        assert run(tmp_path, f'[telemetry]\nendpoint = "{collector.url}"\n').code == 0
    assert collector.received == []


@pytest.mark.parametrize("where", ["stalls", "away"])
def test_a_collector_that_does_not_answer_changes_nothing(tmp_path: Path, where: str) -> None:
    with collecting(stalls=True) as collector:
        url = collector.url if where == "stalls" else "http://127.0.0.1:1"
        ended = run(tmp_path, f'[telemetry]\nenabled = true\nendpoint = "{url}"\n')
        assert (ended.code, ended.stdout.strip()) == (0, "All done, secretly.")
        told = [line for line in ended.stderr.splitlines() if "context window" not in line]
        assert told == []
        assert (tmp_path / "work" / "new.txt").read_text() == "private"
        assert bool(collector.received) == (where == "stalls")
