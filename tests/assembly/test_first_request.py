"""The size of the first request, and the tools that a session offers, wherever it is continued."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from swecli.app import open_session
from swecli.core.context_management.counter import PieceEstimator
from swecli.core.llm.scripted import parse_script
from swecli.core.protocol.commands import Submit
from swecli.core.protocol.events import TurnEnded
from swecli.features.memory.command import MEMORY
from swecli.launch import LaunchOptions
from tests.support.loopback import LoopbackServer

COUNT = PieceEstimator().count
HELLO = '[[step]]\ntext = "Hello."\n'
MODEL = "anthropic/claude-opus-4-5"
MOST = 2_800
"""Tokens of the first request in an empty folder, with all tools as the model sees them."""
SCREEN: Mapping[str, Any] = {"headless": False}
HEADLESS: Mapping[str, Any] = {"headless": True}


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("OPENAI", "ANTHROPIC", "GEMINI"):
        monkeypatch.setenv(f"{name}_API_KEY", "not-a-key")
    monkeypatch.setenv("SWECLI_HOME", str(tmp_path / "home"))
    folder = tmp_path.resolve() / "work"
    folder.mkdir()
    return folder


async def request(folder: Path, monkeypatch: pytest.MonkeyPatch, model: str, **options: Any) -> dict[str, Any]:
    """The body of the request that one message of a session causes."""
    with LoopbackServer(parse_script(HELLO)) as server:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
        monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/v1")
        monkeypatch.setenv("GEMINI_BASE_URL", f"{server.url}/v1beta")
        session = await open_session(LaunchOptions(cwd=folder, model=model, **options))
        try:
            events = session.subscribe()
            session.send(Submit("hi"))
            async for event in events:
                if isinstance(event.body, TurnEnded):
                    break
        finally:
            await session.close()
        return next(sent.body for sent in server.requests if "tools" in sent.body)


def names(body: Mapping[str, Any]) -> list[str]:
    return [tool["name"] for tool in tools(body)]


def tools(body: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The tools as the model sees them, without what a protocol wraps around each."""
    return [
        tool for given in body["tools"] for tool in given.get("functionDeclarations", [given.get("function", given)])
    ]


@pytest.mark.parametrize("trust", [None, "session"])
@pytest.mark.parametrize("options", [SCREEN, HEADLESS])
@pytest.mark.parametrize("model", ["anthropic/claude-opus-4-5", "openai/gpt-5", "gemini/gemini-2.5-pro"])
async def test_a_greeting_in_an_empty_folder_costs_little(
    work: Path, monkeypatch: pytest.MonkeyPatch, model: str, options: dict[str, Any], trust: str | None
) -> None:
    body = await request(work, monkeypatch, model, trust=trust, **options)
    assert COUNT(json.dumps({**body, "tools": tools(body)}, separators=(",", ":"), ensure_ascii=False)) <= MOST


@pytest.mark.parametrize(
    ("options", "absent"),
    [
        (SCREEN, {"memory"}),
        (HEADLESS, {"ask_user", "memory"}),
        ({**SCREEN, "trust": "session"}, set[str]()),
        ({**HEADLESS, "trust": "session"}, {"ask_user"}),
        ({**HEADLESS, "trust": "session", "input_format": "stream-json"}, set[str]()),
        ({**SCREEN, "trust": "declined"}, {"memory"}),
    ],
)
async def test_a_tool_is_offered_only_where_it_can_be_used(
    work: Path, monkeypatch: pytest.MonkeyPatch, options: dict[str, Any], absent: set[str]
) -> None:
    body = await request(work, monkeypatch, MODEL, **options)
    assert {"ask_user", "memory"} - {*names(body)} == absent


FIRST: tuple[Mapping[str, Any], ...] = (HEADLESS, SCREEN, {**SCREEN, "trust": "session"})


@pytest.mark.parametrize("second", FIRST)
@pytest.mark.parametrize("first", FIRST)
async def test_a_session_keeps_the_tools_it_began_with(
    work: Path, monkeypatch: pytest.MonkeyPatch, first: dict[str, Any], second: dict[str, Any]
) -> None:
    began = await request(work, monkeypatch, MODEL, **first)
    continued = await request(work, monkeypatch, MODEL, continue_newest=True, **second)
    again = await request(work, monkeypatch, MODEL, continue_newest=True, **first)
    assert continued["tools"] == began["tools"]
    assert again["tools"] == began["tools"]
    assert continued["system"] == began["system"]


async def test_a_session_that_began_with_a_small_window_gets_all_tools_of_a_larger_one(
    work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (work.parent / "home").mkdir(exist_ok=True)
    (work.parent / "home" / "config.toml").write_text('[models.window]\n"anthropic/small" = 8192\n')
    small = await request(work, monkeypatch, "anthropic/small", **SCREEN)
    assert "ask_user" not in names(small)
    large = await request(work, monkeypatch, MODEL, continue_newest=True, **SCREEN)
    assert {"ask_user", "list_files"} <= {*names(large)}


AGENT = """---
name: taster
description: Tastes soup.
---
Taste it.
"""


async def test_agents_are_listed_once_the_user_has_own_ones(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def task(body: Mapping[str, Any]) -> str:
        return next(str(tool["description"]) for tool in tools(body) if tool["name"] == "task")

    assert "Agents:" not in task(await request(work, monkeypatch, MODEL))
    folder = work.parent / "home" / "agents"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "taster.md").write_text(AGENT)
    listed = task(await request(work, monkeypatch, MODEL))
    assert "- taster: Tastes soup." in listed
    assert "- explore: " in listed


async def test_the_user_changes_memories_where_the_model_is_not_offered_them(
    work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY")
    session = await open_session(LaunchOptions(cwd=work))
    try:
        await MEMORY.run(session, "write user/soup.md Salt it.")
    finally:
        await session.close()
    (written,) = (work.parent / "home").rglob("soup.md")
    assert "Salt it." in written.read_text()
