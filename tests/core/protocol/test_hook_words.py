"""A hook's run in one line."""

from __future__ import annotations

import pytest

from swecli.core.protocol.events import HookRan
from swecli.core.protocol.hook_words import hook_line, running_words, short_command


@pytest.mark.parametrize(
    ("body", "line"),
    [
        (HookRan("Stop", "a.sh", "ok"), ""),
        (HookRan("Stop", "a.sh", "ok", "all\nwell"), "Stop hook a.sh: all well"),
        (HookRan("SessionStart", "a.sh", "context"), ""),
        (HookRan("PreToolUse", "/w/.claude/hooks/a.sh", "blocked", "no"), ""),
        (HookRan("Stop", "a.sh", "blocked", "test it"), "Stop hook a.sh keeps the turn going: test it"),
        (HookRan("UserPromptSubmit", "a.sh", "blocked", "no"), ""),
        (HookRan("PostToolUse", "a.sh", "problem", "exit 1"), "PostToolUse hook a.sh failed: exit 1"),
        (HookRan("Stop", "a.sh", "skipped", ""), "Stop hook a.sh was skipped"),
    ],
)
def test_only_what_says_something_has_a_line(body: HookRan, line: str) -> None:
    assert hook_line(body) == line


@pytest.mark.parametrize(
    ("command", "short"),
    [
        ('"$CLAUDE_PROJECT_DIR"/.claude/hooks/a.py', "a.py"),
        ("prettier --write x", "prettier --write x"),
        ("a" * 100, "a" * 59 + "…"),
        ("/", "/"),
    ],
)
def test_commands_are_short(command: str, short: str) -> None:
    assert short_command(command) == short


def test_what_is_waited_for_has_its_name() -> None:
    assert running_words("Stop", ["/w/.claude/hooks/a.sh"]) == "Running the Stop hook a.sh"
    assert running_words("PreToolUse", ["sleep 9", "b.sh", "c.sh"]) == "Running the PreToolUse hook sleep 9 (+2 more)"
