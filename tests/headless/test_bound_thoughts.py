"""Runs against providers that bind thoughts to their conversation."""

from __future__ import annotations

import json
import sys
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from swecli.core.llm.scripted import parse_script
from tests.support.program import Program
from tests.support.strict_anthropic import AnthropicRules
from tests.support.strict_server import StrictServer

pytestmark = pytest.mark.e2e

SCRIPT = """
name = "claude-opus-5-5"

[[step]]
reasoning = "I have to list the files first."
call = [{ tool = "list_files", arguments = "{}" }]

[[step]]
reasoning = "Now I know them."
text = "There are none."

[[step]]
reasoning = "Once more."
text = "Still none."
"""


def program(tmp_path: Path, server: StrictServer[AnthropicRules]) -> Program:
    project = tmp_path / "project"
    project.mkdir(exist_ok=True)
    return Program(project, tmp_path / "home", {**server.environment(), "SWECLI_MODEL": "anthropic/claude-opus-5-5"})


def test_reasoning_is_readable_in_default_settings(tmp_path: Path) -> None:
    with StrictServer(parse_script(SCRIPT, python=sys.executable), AnthropicRules()) as server:
        ended = program(tmp_path, server).run("-p", "Look.", "--output-format", "stream-json")
        assert ended.code == 0, ended.stderr
        parts = [part for body in ended.events for part in body.get("parts", []) if part["type"] == "reasoning"]
        assert [part["text"] for part in parts] == ["I have to list the files first.", "Now I know them."]


def test_a_conversation_refused_once_says_so_in_each_later_request_and_run(tmp_path: Path) -> None:
    stamps = count()

    def stamped(body: dict[str, Any]) -> dict[str, Any]:
        body["system"] = [*body.get("system", []), {"type": "text", "text": f"Request {next(stamps)}"}]
        return body

    with StrictServer(parse_script(SCRIPT, python=sys.executable), AnthropicRules(rewrite=stamped)) as server:
        swecli = program(tmp_path, server)
        first = swecli.run("-p", "Look.", "--output-format", "stream-json")
        assert first.code == 0, first.stderr
        assert len(server.refused) == 1
        assert sum(body["type"] == "notice" and "reasoning" in body["text"] for body in first.events) == 1
        again = swecli.run("-p", "-c", "And now?", "--output-format", "stream-json")
        assert again.code == 0, again.stderr
        assert len(server.refused) == 1
        assert not any(body["type"] == "notice" and "reasoning" in body["text"] for body in again.events)
        answered = [request for request in server.asked if request.status == 200]
        assert ["block_binding" in request.body["thinking"] for request in answered] == [False, True, True]


def test_a_server_without_the_fields_refuses_them_in_the_first_session_only(tmp_path: Path) -> None:
    rules = AnthropicRules(fields=(), enforced=False, omits=False)
    with StrictServer(parse_script(SCRIPT, python=sys.executable), rules) as server:
        swecli = program(tmp_path, server)
        assert swecli.run("-p", "Look.").code == 0
        before = len(server.refused)
        assert before >= 1
        assert swecli.run("-p", "Again.").code == 0
        assert len(server.refused) == before
        stored = json.loads((tmp_path / "home" / "data" / "refused_fields.json").read_text())
        assert set(stored["hosts"][f"127.0.0.1:{server.port}"]) >= {"display", "diagnostics"}


def test_cache_shows_dropped_thoughts_and_the_providers_diagnosis(tmp_path: Path) -> None:
    stamps = count()

    def stamped(body: dict[str, Any]) -> dict[str, Any]:
        body["system"] = [*body.get("system", []), {"type": "text", "text": f"Request {next(stamps)}"}]
        return body

    with StrictServer(parse_script(SCRIPT, python=sys.executable), AnthropicRules(rewrite=stamped)) as server:
        swecli = program(tmp_path, server)
        assert swecli.run("-p", "Look.").code == 0
        shown = swecli.run("-p", "-c", "/cache").stdout
        assert "1 thought dropped by the provider: the messages before it changed" in shown
        assert "the provider's diagnosis: the system prompt changed" in shown
