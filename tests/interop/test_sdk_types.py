"""Captured requests against the parameter types of the vendors' newest SDKs, and fields that are new in those.
Run by ``make test-interop``."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from swecli.core.llm.capabilities import Capabilities
from swecli.core.llm.providers import Overrides
from swecli.core.llm.types import Announcement, AnswerFormat, ServerClearing, WebSearch
from swecli.core.protocol.messages import ImagePart, Message, TextPart
from tests.core.llm.histories import TOOL, build, request, target, user
from tests.core.llm.talks import Talk, server_script
from tests.core.llm.test_echo import outputs
from tests.core.llm.test_web_searches import CALL, OPENED, SAID, SEARCHED, decode, message_of
from tests.support.loopback import LoopbackServer
from tests.support.strict_anthropic import AnthropicRules
from tests.support.strict_gemini import GeminiRules
from tests.support.strict_responses import ResponsesRules
from tests.support.strict_server import StrictServer

PYTHON = os.environ.get("SWECLI_INTEROP_SDK", "")
CHECKER = Path(__file__).with_name("sdk_types.py")
KNOWN = Path(__file__).with_name("request_fields.json")
"""All request fields of the SDKs when somebody last looked at them."""
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="

pytestmark = pytest.mark.skipif(not PYTHON, reason="needs the vendors' SDKs: make test-interop")


async def talk(server: LoopbackServer, model: str, overrides: Overrides | None = None) -> list[dict[str, Any]]:
    """The bodies of a conversation with images, calls, thoughts, changes of the effort and an edit."""
    settings = replace(overrides or Overrides(), cache_ttl=lambda info: info.capabilities.cache_ttl[-1])
    said = Talk(server, model, settings)
    said.messages[0] = replace(said.messages[0], parts=(TextPart("Look."), ImagePart("image/png", PIXEL)))
    for effort in ("low", "low", "low", "high"):
        await said.go_on(effort=effort, breakpoints=(0,), max_output_tokens=4_000, session="s1")
    said.edit(0, "Look elsewhere.")
    await said.go_on(effort="high", server_clearing=ServerClearing(), session="s1")
    await said.client.close()
    return [request.body for request in server.asked if request.status == 200]


async def captured() -> dict[str, list[dict[str, Any]]]:
    script = server_script(3)
    script = replace(script, steps=(*script.steps, *script.steps[:2]))
    with StrictServer(script, AnthropicRules()) as server:
        messages = await talk(server, "anthropic/claude-opus-5-5")
    with StrictServer(script, ResponsesRules()) as server:
        responses = await talk(server, "openai/gpt-6-sol", Overrides(protocol="openai-responses"))
    with StrictServer(script, GeminiRules()) as server:
        contents = await talk(server, "gemini/gemini-3.8-flash")
    with LoopbackServer(script) as server:
        chat = await talk(server, "openai/gpt-6-sol", Overrides(protocol="openai-chat"))
    said = Message("user", (TextPart("Tools changed."),), "n1", note="stays")
    change = Announcement("n1", ("new",), ("gone", TOOL.name), (TOOL,))
    to = target("anthropic-messages")
    to = replace(to, capabilities=Capabilities(system_messages=True, tool_changes=True))
    tools = (TOOL, replace(TOOL, name="new"), replace(TOOL, name="gone"))
    messages.append(build(request(user("Look."), said, tools=tools, announced=(change,)), to))
    return {
        "anthropic-messages": messages,
        "openai-responses": responses,
        "gemini-generate": json.loads(re.sub(r"signature-\d+", "c2lnbmF0dXJl", json.dumps(contents))),  # real: base64
        # Reasoning goes back to other servers only; OpenAI's own gets none in this protocol.
        "openai-chat": [
            json.loads(re.sub(r'"reasoning_content": "[^"]*", |, "reasoning_content": "[^"]*"', "", text))
            for text in map(json.dumps, chat)
        ],
    }


async def test_requests_fit_the_types_of_the_newest_sdks() -> None:
    bodies = await captured()
    assert all(len(requests) >= 5 for requests in bodies.values())
    answer = _checked(bodies)
    assert answer["problems"] == {protocol: [] for protocol in bodies}


SCHEMA = {"type": "object", "properties": {"count": {"type": "integer"}}, "required": ["count"]}
MODELS = {
    "anthropic-messages": "claude-opus-5-5",
    "openai-responses": "gpt-6-sol",
    "openai-chat": "gpt-6-sol",
    "gemini-generate": "gemini-3.8-flash",
}


def test_requests_with_search_and_answer_formats_fit_the_types() -> None:
    searches = (None, WebSearch(), WebSearch(left=0), WebSearch(allowed_domains=("example.org",)))
    able = Capabilities(output_format=True, web_search=True)
    bodies: dict[str, list[dict[str, Any]]] = {}
    for protocol, model in MODELS.items():
        to = replace(target(protocol, model=model), capabilities=able)
        bodies[protocol] = [
            build(request(user("hi"), tools=(TOOL,), web_search=search, answer_format=form), to)
            for search in searches
            for form in (None, AnswerFormat(SCHEMA))
        ]
    to = replace(target("anthropic-messages", model=MODELS["anthropic-messages"]), capabilities=able)
    answer = message_of(decode(to, SEARCHED))
    bodies["anthropic-messages"].append(build(request(user("hi"), answer, user("go on"), web_search=WebSearch()), to))
    to = replace(target("openai-responses", model=MODELS["openai-responses"]), capabilities=able)
    answer = message_of(decode(to, outputs(CALL, OPENED, SAID)))
    bodies["openai-responses"].append(build(request(user("hi"), answer, user("go on"), web_search=WebSearch()), to))
    assert _checked(bodies)["problems"] == {protocol: [] for protocol in bodies}


async def test_what_the_types_do_not_have_is_found() -> None:
    bodies = await captured()
    for requests in bodies.values():
        requests[0]["surprise"] = 1
    bodies["anthropic-messages"][0]["thinking"] = {"type": "adaptive", "display": "loud"}
    bodies["openai-responses"][0]["input"][0]["content"][0]["kind"] = "text"
    found = _checked(bodies)["problems"]
    assert all(any("surprise: unknown" in line for line in lines) for lines in found.values())
    assert any("thinking.display: 'loud' is none of" in line for line in found["anthropic-messages"])
    assert any(line.endswith(".kind: unknown") for line in found["openai-responses"])


def test_new_request_fields_are_seen() -> None:
    """A new field is a new ability of the API. Decide what swecli does with it, then add it to the file."""
    known = {protocol: set(names) for protocol, names in json.loads(KNOWN.read_text()).items()}
    now = _checked({})["fields"]
    new = {protocol: sorted(set(names) - known.get(protocol, set())) for protocol, names in now.items()}
    assert {protocol: names for protocol, names in new.items() if names} == {}


def _checked(bodies: Mapping[str, Any]) -> dict[str, Any]:
    done = subprocess.run([PYTHON, str(CHECKER)], input=json.dumps(bodies), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)
