"""The words for the model: their size, and that they only speak of what there is."""

from __future__ import annotations

import json
import re
from typing import get_args

import pytest

from swecli.core.context_management.counter import PieceEstimator
from swecli.core.context_management.prompts import (
    LEAN_WINDOW,
    MINIMAL_WINDOW,
    PromptName,
    mode_note,
    note,
    profile_for,
    read_prompt,
    system_prompt,
)
from swecli.core.tools.registry import ToolRegistry, builtin_tools

TOOLS = {
    "read_file",
    "write_file",
    "edit_file",
    "list_files",
    "search",
    "run_command",
    "update_todos",
    "ask_user",
    "read_result",
    "recall",
}
COUNT = PieceEstimator().count


@pytest.mark.parametrize("name", get_args(PromptName))
def test_every_prompt_is_calm_plain_text(name: PromptName) -> None:
    text = read_prompt(name)
    assert text
    assert text == text.strip()
    assert not re.findall(r"\b(?:IMPORTANT|CRITICAL|NEVER|ALWAYS|MUST|WARNING)\b|!!", text)


@pytest.mark.parametrize(("name", "limit"), [("base", 1_100), ("lean", 350), ("mode_plan", 80), ("mode_auto", 60)])
def test_prompts_stay_within_their_budget(name: PromptName, limit: int) -> None:
    assert COUNT(read_prompt(name)) <= limit


def test_prompts_name_only_tools_that_exist() -> None:
    for name in ("base", "lean", "minimal", "instructions"):
        mentioned = {word for word in re.findall(r"`([a-z]+(?:_[a-z]+)*)`", read_prompt(name)) if "_" in word}
        assert mentioned <= TOOLS
    assert all(tool in read_prompt("base") for tool in TOOLS)


def test_a_small_window_gets_the_lean_prompt() -> None:
    sizes = (MINIMAL_WINDOW, MINIMAL_WINDOW + 1, LEAN_WINDOW, LEAN_WINDOW + 1)
    assert [profile_for(window) for window in sizes] == ["minimal", "lean", "lean", "full"]
    assert profile_for(2_048, "full") == "full"
    assert [system_prompt(name) for name in ("full", "lean")] == [read_prompt("base"), read_prompt("lean")]


def test_only_modes_that_change_the_work_are_told() -> None:
    assert mode_note("default") == mode_note("accept-edits") == ""
    assert "refused" in mode_note("plan")
    assert mode_note("auto")
    assert note("x") == "<swecli-note>\nx\n</swecli-note>"


def test_prompt_and_all_tools_leave_the_window_to_the_work() -> None:
    tools = [
        {"name": tool.name, "description": tool.description, "parameters": dict(tool.parameters)}
        for tool in ToolRegistry(builtin_tools()).schemas()
    ]
    assert {tool["name"] for tool in tools} >= TOOLS
    schemas = COUNT(json.dumps(tools, separators=(",", ":")))
    # The estimate may be a tenth too low.
    assert 1.1 * (COUNT(system_prompt("full")) + schemas) <= 3_000
    assert COUNT(system_prompt("lean")) + schemas <= 8_192 / 4
