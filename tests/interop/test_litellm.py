"""swecli against the LiteLLM proxy, which translates between the formats of providers. Run by ``make test-interop``."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from swecli.core.llm.scripted import parse_script
from tests.support.loopback import LoopbackServer
from tests.support.program import Ended, Program

PROXY = os.environ.get("SWECLI_INTEROP", "")
KEY = "sk-interop-0123456789"
STARTS_WITHIN = 120.0
"""Seconds."""

pytestmark = [pytest.mark.e2e, pytest.mark.skipif(not PROXY, reason="needs the proxy: make test-interop")]

CONFIG = """
model_list:
  - model_name: mock
    litellm_params: {{model: hosted_vllm/mock, api_key: unused, mock_response: "Hello from the proxy."}}
  - model_name: scripted
    litellm_params: {{model: hosted_vllm/scripted, api_key: unused, api_base: "http://127.0.0.1:{upstream}/v1"}}
litellm_settings: {{telemetry: false}}
general_settings: {{master_key: {key}}}
"""
SETTINGS = """
[providers.chat]
protocol = "openai-chat"
base_url = "http://127.0.0.1:{port}/v1"
api_key_env = "INTEROP_KEY"
[providers.responses]
protocol = "openai-responses"
base_url = "http://127.0.0.1:{port}/v1"
api_key_env = "INTEROP_KEY"
[providers.messages]
protocol = "anthropic-messages"
base_url = "http://127.0.0.1:{port}"
api_key_env = "INTEROP_KEY"
"""
TASK = """
[[step]]
text = "I look."
call = [{ tool = "read_file", arguments = { path = "a.txt" } }, { tool = "list_files", arguments = { path = "." } }]
[[step]]
expect = { last_result = "hello" }
call = [{ tool = "write_file", arguments = { path = "b.txt", content = "Größe: 5 → ok\\n" } }]
[[step]]
expect = { last_result = "b.txt" }
text = "It says hello."
"""
FORMATS = ("chat", "responses", "messages")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@dataclass(frozen=True, slots=True)
class Proxy:
    port: int
    upstream: int


@pytest.fixture(scope="module")
def proxy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxy]:
    folder = tmp_path_factory.mktemp("proxy")
    found = Proxy(free_port(), free_port())
    (folder / "config.yaml").write_text(CONFIG.format(upstream=found.upstream, key=KEY))
    environment = {**os.environ, "LITELLM_LOCAL_MODEL_COST_MAP": "True", "NO_PROXY": "127.0.0.1"}
    log = (folder / "log").open("wb")
    command = [PROXY, "--config", "config.yaml", "--host", "127.0.0.1", "--port", str(found.port)]
    process = subprocess.Popen(command, cwd=folder, env=environment, stdout=log, stderr=subprocess.STDOUT)
    try:
        _wait(f"http://127.0.0.1:{found.port}/health/liveliness", process, folder / "log")
        yield found
    finally:
        process.terminate()
        process.wait(20)
        log.close()


def _wait(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    end = time.monotonic() + STARTS_WITHIN
    while time.monotonic() < end:
        assert process.poll() is None, log.read_text("utf-8", "replace")[-3000:]
        try:
            with opener.open(url, timeout=5):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.5)
    pytest.fail(f"the proxy did not start: {log.read_text('utf-8', 'replace')[-3000:]}")


def run(folder: Path, proxy: Proxy, model: str, *arguments: str, key: str = KEY) -> Ended:
    (folder / "settings.toml").write_text(SETTINGS.format(port=proxy.port))
    project = folder / "project"
    project.mkdir(exist_ok=True)
    (project / "a.txt").write_text("hello\n")
    variables = {"SWECLI_CONFIG": str(folder / "settings.toml"), "INTEROP_KEY": key}
    program = Program(project, folder / "home", variables)
    return program.run("-p", "What does a.txt say?", "-m", model, "--yolo", "--output-format", "json", *arguments)


@pytest.mark.parametrize("form", ["chat", "messages"])  # the proxy's own mock can't stream Responses
def test_a_mock_answer_arrives(tmp_path: Path, proxy: Proxy, form: str) -> None:
    ended = run(tmp_path, proxy, f"{form}/mock")
    assert (ended.code, ended.result["text"]) == (0, "Hello from the proxy."), ended.stderr


@pytest.mark.parametrize("form", FORMATS)
def test_a_task_with_tools_is_streamed_through_the_proxy(tmp_path: Path, proxy: Proxy, form: str) -> None:
    with LoopbackServer(parse_script(TASK, python=sys.executable), port=proxy.upstream) as upstream:
        ended = run(tmp_path, proxy, f"{form}/scripted")
    assert ended.code == 0, ended.stderr
    assert ended.result["text"] == "It says hello."
    assert ended.result["usage"]["input_total"] > 0
    assert (tmp_path / "project" / "b.txt").read_text() == "Größe: 5 → ok\n"
    assert len(upstream.asked) == 3


@pytest.mark.parametrize("form", FORMATS)
def test_a_wrong_key_and_a_wrong_model_are_named(tmp_path: Path, proxy: Proxy, form: str) -> None:
    refused = run(tmp_path, proxy, f"{form}/scripted", key="sk-wrong-0123456789")
    assert (refused.code, refused.result["error"]["kind"]) == (41, "auth"), refused.stdout
    assert "sk-wrong-0123456789" not in refused.stdout + refused.stderr
    unknown = run(tmp_path, proxy, f"{form}/nothing")
    assert unknown.code in (1, 52), unknown.stdout
    assert "nothing" in unknown.result["error"]["message"]
