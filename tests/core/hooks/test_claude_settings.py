"""Claude Code's settings files, good and bad."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from swecli.core.config.documents import LARGEST
from swecli.core.hooks.claude_settings import read_claude_settings


def write(folder: Path, data: Any) -> Path:
    path = folder / "settings.json"
    path.write_text(data if isinstance(data, str) else json.dumps(data))
    return path


def test_hooks_are_read_as_they_are(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        {
            "permissions": {"allow": ["Bash"]},
            "hooks": {
                "PreToolUse": [
                    {"matcher": "Bash", "hooks": [{"type": "command", "command": "a.sh", "timeout": 5}]},
                    {"matcher": "Edit|Write", "hooks": [{"command": "b.sh"}, {"command": "c", "args": ["x y"]}]},
                ],
                "Stop": [{"hooks": [{"type": "command", "command": "d.sh", "timeout": "soon"}]}],
            },
        },
    )
    read = read_claude_settings(path, "project")
    found = [(hook.event, hook.matcher, hook.command, hook.timeout) for hook in read.hooks]
    assert found == [
        ("PreToolUse", "Bash", "a.sh", 5.0),
        ("PreToolUse", "Edit|Write", "b.sh", 60.0),
        ("PreToolUse", "Edit|Write", "c 'x y'", 60.0),
        ("Stop", "", "d.sh", 60.0),
    ]
    told = f"{path}:1: a hook for Stop: its timeout is not a number of seconds, so it is 60."
    assert (read.notices, read.disabled) == ((told,), False)
    assert all(hook.origin == f"{path}:1" for hook in read.hooks)


def test_rules_that_would_stop_a_call_are_told(tmp_path: Path) -> None:
    rules = {"allow": ["Bash"], "deny": ["Read(.env)", "WebFetch"], "ask": ["Bash(git push:*)"]}
    path = write(tmp_path, {"permissions": rules})
    assert read_claude_settings(path, "project").notices == (
        f"{path}: swecli does not apply permissions.deny (2 rules) and permissions.ask (1 rule); "
        "`swecli permissions import` shows and copies them.",
    )
    write(tmp_path, {"permissions": {"allow": ["Bash"], "deny": []}})
    assert read_claude_settings(path, "project").notices == ()


def test_a_file_can_turn_hooks_off(tmp_path: Path) -> None:
    assert read_claude_settings(write(tmp_path, {"disableAllHooks": True}), "project").disabled


@pytest.mark.parametrize(
    ("data", "notice"),
    [
        ("{", "settings.json:1: is not valid JSON"),
        ("[" * 100_000, "is nested too deeply"),
        ("x" * (LARGEST + 1), "is larger than"),
        ("", "is empty"),
        ("[]", "holds no object"),
        ("3", "holds no object"),
        ('{\n // no\n "hooks": {}}', "settings.json:2: is not valid JSON"),
        ({"hooks": []}, "settings.json:1: hooks is not an object"),
        ({"hooks": {"Stop": 3}}, "Stop of hooks.Stop is not a list"),
        ({"hooks": {"Stop": [3]}}, "an entry of hooks.Stop is not an object"),
        ({"hooks": {"Stop": [{"hooks": {}}]}}, "hooks of hooks.Stop is not a list"),
        ({"hooks": {"Stop": [{"hooks": ["x"]}]}}, "an entry of hooks.Stop is not an object"),
        ({"disableAllHooks": "yes"}, "disableAllHooks is neither true nor false"),
        ({"permissions": []}, "permissions is not an object"),
        ({"hooks": {"BeforeTool": [{"hooks": [{"command": "x"}]}]}}, "hooks.BeforeTool is ignored"),
        ({"hooks": {"Stop": [{"hooks": [{"type": "agent", "prompt": "x"}]}]}}, "not 'agent'"),
        ({"hooks": {"Stop": [{"hooks": [{"type": "command"}]}]}}, "no command"),
        ({"hooks": {"Stop": [{"matcher": 3, "hooks": [{"command": "x"}]}]}}, "matcher is not text"),
    ],
)
def test_what_can_not_be_understood_is_left_out_and_named(tmp_path: Path, data: Any, notice: str) -> None:
    read = read_claude_settings(write(tmp_path, data), "project")
    assert read.hooks == ()
    assert len(read.notices) == 1
    assert notice in read.notices[0]


def test_neither_a_missing_file_nor_a_link_nor_a_pipe_is_read(tmp_path: Path) -> None:
    assert read_claude_settings(tmp_path / "none.json", "project").notices == ()
    (tmp_path / "link.json").symlink_to("/etc/passwd")
    os.mkfifo(tmp_path / "pipe.json")
    for name in ("link.json", "pipe.json"):
        read = read_claude_settings(tmp_path / name, "project")
        assert read.hooks == ()
        assert len(read.notices) == 1


def test_what_has_no_effect_is_named(tmp_path: Path) -> None:
    entries = [
        {"type": "command", "command": "a", "if": "Bash(rm *)", "async": True, "statusMessage": "x"},
        {"type": "command", "command": "b", "shell": "bash", "once": True},
        {"type": "command", "command": "c", "if": "Bash(", "async": "yes"},
    ]
    entries.append({"type": "command", "command": "d", "if": 3})
    path = tmp_path / "settings.json"
    path.write_text(json.dumps({"hooks": {"PreToolUse": [{"hooks": entries}]}}))
    read = read_claude_settings(path, "project")
    assert [(hook.condition, hook.background) for hook in read.hooks] == [
        ("Bash(rm *)", True),
        ("", False),
        ("Bash(", False),
        ("", False),
    ]
    assert [notice.partition(": ")[2] for notice in read.notices] == [
        "a hook for PreToolUse: once has no effect.",
        "a hook for PreToolUse: async is neither true nor false, so swecli waits for it.",
        "a hook for PreToolUse: its condition is not text and has no effect.",
    ]
