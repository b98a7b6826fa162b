"""What calls are named, also from arguments that are unfinished or no JSON at all."""

from __future__ import annotations

import pytest

from swecli.core.protocol.messages import target_of
from swecli.tool_words import call_title, words_for
from swecli.tui.transcript.block_rows import render_block
from swecli.tui.transcript.blocks import ToolBlock
from swecli.tui.transcript.palette import DARK


@pytest.mark.parametrize(
    ("name", "verb"),
    [
        ("read_file", "Read"),
        ("write_file", "Write"),
        ("edit_file", "Edit"),
        ("list_files", "List"),
        ("search", "Search"),
        ("run_command", "Run"),
        ("update_todos", "Todos"),
        ("ask_user", "Ask"),
        ("mcp__db__query", "mcp__db__query"),
    ],
)
def test_verbs(name: str, verb: str) -> None:
    assert words_for(name).verb == verb
    assert call_title(name, "x") == f"{verb} x"


@pytest.mark.parametrize(
    ("arguments", "target"),
    [
        ('{"path": "src/a.py"}', "src/a.py"),
        ('{"old": "x", "path": "src/a', "src/a"),
        ('{"command": "echo \\"hi\\" \\u00e9"}', 'echo "hi" é'),
        ('{"path": "a", "command": "b"}', "b"),
        ('{"path": "a\\', "a"),
        ("no json", ""),
        ("", ""),
        ('{"path": 7}', ""),
    ],
)
def test_targets(arguments: str, target: str) -> None:
    assert target_of(arguments) == target


@pytest.mark.parametrize(
    ("block", "head"),
    [
        (
            ToolBlock("t", "run_command", "pytest -q", "error", detail="exit 1", duration=2.31),
            "$ Run pytest -q   exit 1 · 2 s",
        ),
        (ToolBlock("t", "run_command", "true", "ok", detail="exit 0", duration=0.04), "$ Run true   exit 0"),
        (ToolBlock("t", "read_file", "a.py", "ok", detail="9 lines", duration=0.4), "◇ Read a.py   9 lines"),
        (ToolBlock("t", "read_file", "a.py", "ok", detail="9 lines", duration=75.0), "◇ Read a.py   9 lines · 1m15s"),
        (ToolBlock("t", "read_file", "a.py", "error"), "◇ Read a.py   failed"),
        (ToolBlock("t", "write_file", "a.py", "rejected", note="no"), "✎ Write a.py   rejected · no"),
        (
            ToolBlock("t", "write_file", "a.py", "rejected", detail="blocked by the hook no.py: not here"),
            "✎ Write a.py   blocked by the hook no.py: not here",
        ),
        (ToolBlock("t", "run_command", "x", "interrupted"), "$ Run x   interrupted"),
        (ToolBlock("t", "run_command", "x", "running"), "$ Run x   running"),
        (ToolBlock("t", "run_command", "x\ny", "waiting"), "$ Run x …   waiting for your approval"),
        (ToolBlock("t", "ask_user", "", "asking"), "? Ask   waiting for an answer"),
        (ToolBlock("t", "write_file", "", "pending"), "✎ Write …"),
        (ToolBlock("t", "write_file", "", "pending", "x" * 1200), "✎ Write …   writing · 1,200 characters"),
    ],
)
def test_heads(block: ToolBlock, head: str) -> None:
    assert render_block(block, 78, DARK)[0].text == head
