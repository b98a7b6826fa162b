"""The loopback server is as strict as the protocols that it speaks."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from swecli.core.llm.scripted import parse_script
from tests.support.loopback import LoopbackServer, Manners
from tests.support.waiting import PATIENCE

HELLO = parse_script('[[step]]\ntext = "hello"')
PATHS = {
    "responses": "/v1/responses",
    "gemini": "/v1beta/models/m:streamGenerateContent?alt=sse",
    "ollama": "/api/chat",
}

CALL = {"type": "function_call", "id": "fc_1_r_1", "call_id": "c", "name": "look", "arguments": "{}"}
OUTPUT = {"type": "function_call_output", "call_id": "c", "output": "seen"}
REASONING = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "encrypted-1"}
USER = {"role": "user", "content": [{"type": "input_text", "text": "hi"}]}
RESPONSES = {"model": "m", "stream": True, "store": False, "include": ["reasoning.encrypted_content"]}

SAID = {"role": "user", "parts": [{"text": "hi"}]}
SIGNED = {"functionCall": {"name": "look", "args": {}}, "thoughtSignature": "signature-1"}
SEEN = {"role": "user", "parts": [{"functionResponse": {"name": "look", "response": {"output": "seen"}}}]}

CHAT = {"model": "m", "options": {"num_ctx": 4096}, "truncate": False}
CALLED = {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "look", "arguments": {}}}]}
ASKED = {"role": "user", "content": "hi"}


@pytest.mark.parametrize(
    ("protocol", "body", "words"),
    [
        ("responses", {**RESPONSES, "input": [USER]}, ""),
        ("responses", {**RESPONSES, "input": [USER, REASONING, CALL, OUTPUT]}, ""),
        ("responses", {**RESPONSES, "input": [USER, CALL, OUTPUT]}, "without its required 'reasoning'"),
        ("responses", {**RESPONSES, "input": [USER, REASONING]}, "without its required following item"),
        ("responses", {**RESPONSES, "input": [USER, REASONING, CALL]}, "No tool output found"),
        ("responses", {**RESPONSES, "input": [USER, OUTPUT]}, "No tool call found"),
        (
            "responses",
            {**RESPONSES, "input": [{**REASONING, "encrypted_content": "x"}, CALL, OUTPUT]},
            "not be verified",
        ),
        ("responses", {**RESPONSES, "store": True, "input": [USER]}, "must not store"),
        ("gemini", {"contents": [SAID]}, ""),
        ("gemini", {"contents": [SAID, {"role": "model", "parts": [SIGNED]}, SEEN]}, ""),
        (
            "gemini",
            {"contents": [SAID, {"role": "model", "parts": [{"functionCall": {"name": "look"}}]}, SEEN]},
            "missing a thought_signature",
        ),
        ("gemini", {"contents": [SAID, {"role": "model", "parts": [SIGNED]}]}, "function response turn"),
        ("gemini", {"contents": [SAID, SAID]}, "alternate"),
        ("ollama", {**CHAT, "messages": [ASKED]}, ""),
        ("ollama", {**CHAT, "messages": [ASKED, CALLED, {"role": "tool", "tool_name": "look", "content": "x"}]}, ""),
        ("ollama", {**CHAT, "messages": [ASKED, CALLED]}, "no result of look"),
        ("ollama", {**CHAT, "messages": [ASKED], "options": {}}, "num_ctx"),
        ("ollama", {**CHAT, "messages": [ASKED], "truncate": True}, "cut silently"),
    ],
)
def test_a_request_that_a_provider_would_refuse_is_refused(protocol: str, body: dict[str, Any], words: str) -> None:
    server = LoopbackServer(HELLO, manners=Manners())
    with server:
        reply = httpx.post(server.url + PATHS[protocol], json=body, timeout=PATIENCE, trust_env=False)
        assert reply.status_code == (400 if words else 200)
        assert words in reply.text
        assert ("hello" in reply.text) == (not words)
        assert bool(server.failures) == bool(words)
        server.failures.clear()
