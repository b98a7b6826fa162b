"""Hooks that ask the model or send the event to an address."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from swecli.core.hooks.answer import read_answer
from swecli.core.hooks.asking import ask_model, post_event
from swecli.core.hooks.claude_settings import read_claude_settings
from swecli.core.hooks.hook import Hook
from tests.support.json_server import Reply, serve_json

EVENT = b'{"tool_input":{"command":"rm x"}}'


@pytest.mark.parametrize(
    ("said", "wish", "told"),
    [
        ('{"ok": true}', "none", ""),
        ('Sure: {"ok": false, "reason": "it deletes"}', "block", "it deletes"),
        ('{"ok": false}', "block", "the model gave no reason"),
        ("yes", "ask", "gave no verdict"),
        ('{"ok": "no"}', "ask", "gave no verdict"),
        (None, "ask", "the model gave no answer"),
    ],
)
async def test_the_models_verdict_blocks_or_the_user_is_asked(said: str | None, wish: str, told: str) -> None:
    asked: list[str] = []

    async def ask(system: str, question: str) -> str | None:
        asked.append(question)
        return said

    hook = Hook("PreToolUse", "Is this safe? $ARGUMENTS", kind="prompt")
    answer = read_answer("PreToolUse", await ask_model(hook, EVENT, ask, 60, asyncio.Event()))
    assert (answer.wish, told in answer.reason) == (wish, True)
    assert asked == [f"Is this safe? {EVENT.decode()}"]


async def test_a_question_that_takes_too_long_or_is_skipped_ends() -> None:
    async def ask(system: str, question: str) -> str | None:
        await asyncio.Event().wait()
        return None

    hook, skipped = Hook("PreToolUse", "x", kind="prompt"), asyncio.Event()
    assert (await ask_model(hook, EVENT, ask, 0.01, skipped)).ending == "timeout"
    skipped.set()
    assert (await ask_model(hook, EVENT, ask, 60, skipped)).ending == "skipped"
    assert (await ask_model(hook, EVENT, None, 60, skipped)).ending == "not started"


async def test_an_address_gets_the_event_and_decides() -> None:
    verdict = {"hookSpecificOutput": {"permissionDecision": "deny", "permissionDecisionReason": "no"}}
    routes = {"/yes": Reply(b""), "/no": verdict, "/broken": Reply(b"x", 500), "/far": Reply(b"", 302)}
    async with serve_json(routes) as server:

        async def answer(path: str, **more: object) -> tuple[str, str]:
            hook = Hook("PreToolUse", server.url + path, kind="http", **more)  # type: ignore[arg-type]
            ran = await post_event(hook, EVENT, {"T": "token", "OTHER": "secret"}, 60, asyncio.Event())
            found = read_answer("PreToolUse", ran, "it", 1)
            return found.wish, found.reason

        headers = (("Authorization", "Bearer $T"), ("X-Other", "${OTHER}"))
        assert await answer("/yes", headers=headers, variables=("T",)) == ("none", "")
        assert await answer("/no") == ("block", "no")
        assert (await answer("/broken"))[1].endswith("answered with status 500")
        assert (await answer("/far"))[0] == "ask"
        first = server.asked[0]
        assert (first.method, first.body) == ("POST", EVENT)
        sent = {name.lower(): value for name, value in first.headers.items()}
        assert (sent["authorization"], sent["x-other"]) == ("Bearer token", "")
    bad = Hook("PreToolUse", "http://127.0.0.1:1/", kind="http", headers=(("A", "$T"),), variables=("T",))
    ran = await post_event(bad, EVENT, {"T": "x\r\nB: y"}, 60, asyncio.Event())
    assert "control character" in ran.problem


def test_the_kinds_of_public_hooks_are_read(tmp_path: Path) -> None:
    entries = [
        {"type": "prompt", "prompt": "Safe? $ARGUMENTS"},
        {"type": "http", "url": "https://h/x", "headers": {"A": "$T"}, "allowedEnvVars": ["T"]},
        {"type": "command", "command": "x", "asyncRewake": True, "rewakeMessage": "Look:"},
        {"type": "http", "url": "ftp://h"},
        {"type": "agent", "prompt": "x"},
    ]
    file = tmp_path / "settings.json"
    file.write_text(json.dumps({"hooks": {"Stop": [{"hooks": entries}]}}))
    found = read_claude_settings(file, "project")
    assert [(hook.kind, hook.command, hook.wakes) for hook in found.hooks] == [
        ("prompt", "Safe? $ARGUMENTS", None), ("http", "https://h/x", None), ("command", "x", "Look:")
    ]  # fmt: skip
    assert (found.hooks[1].headers, found.hooks[1].variables) == ((("A", "$T"),), ("T",))
    assert found.hooks[2].background
    assert [notice.partition("ignored: ")[2] for notice in found.notices] == [
        "its url is no web address.", "swecli runs hooks of the types command, prompt and http, not 'agent'."
    ]  # fmt: skip
